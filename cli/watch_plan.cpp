#include "cli/plan_parts.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr std::int64_t kHangRestarts = 3;
constexpr std::size_t kShownBytes = 4096;

class WatchPlanner {
 public:
  WatchPlanner(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment, LaunchPlan& plan)
      : flags_(flags), checked_(checked), environment_(environment), plan_(plan) {}

  // By what they write.
  void plan_progress() {
    run::ProgressSettings& progress = plan_.settings.progress;
    const std::string& from = flags_.text(FlagId::kProgressFrom);
    progress.pattern = flags_.text(FlagId::kProgressPattern);
    if (!progress.pattern.empty())
      entry("progress pattern", printable(progress.pattern, kShownBytes), flags_.origin_text(FlagId::kProgressPattern));
    const bool is_dlrovers = from == "dlrover" || flags_.on(FlagId::kAutoTunning);
    progress.reads_metrics_file = is_dlrovers && !is_set("RUNTIME_METRICS_PATH");
    progress.serves_nvrx = from == "nvrx" && !is_set("FT_RANK_MONITOR_IPC_SOCKET") && !is_set("FT_LAUNCHER_IPC_SOCKET");
    if (flags_.is_given(FlagId::kProgressSections) && from != "nvrx") {
      warn(format("{}: it is ignored without --progress-from=nvrx", flags_.input(FlagId::kProgressSections)));
    }
    if (!progress.serves_nvrx) return;
    for (const CheckedFlags::Section& section : checked_.progress_sections) {
      progress.nvrx_sections.push_back(section.name);
    }
  }

  // Of the data loader, by DLRover's file.
  void plan_tuning() {
    if (!flags_.on(FlagId::kAutoTunning)) return;
    run::TuningSettings& tuning = plan_.settings.tuning;
    const std::string origin = flags_.origin_text(FlagId::kAutoTunning);
    const std::string input = flags_.input(FlagId::kAutoTunning);
    if (is_set("DLROVER_PARAL_CONFIG_PATH")) {
      warn(format("{}: nothing is changed, as DLROVER_PARAL_CONFIG_PATH is set already", input));
      return entry("auto-tunning", "no", "environment: DLROVER_PARAL_CONFIG_PATH");
    }
    tuning.gives_file = true;
    entry("auto-tunning", "num_workers, batch_size", origin);
  }

  // When a job that shows no progress is taken for one that hangs.
  void plan_hang() {
    protocol::JobRules& rules = plan_.settings.node.rules;
    const std::string& hang = flags_.text(FlagId::kHang);
    const auto restarts = checked_.rdzv_conf.integer("hang_restarts");
    if (restarts && hang != "restart")
      warn(format("{}: hang_restarts is ignored without --hang=restart", flags_.input(FlagId::kRdzvConf)));
    if (hang == "off") {
      if (have_limits())
        warn(format("{}: limits are ignored with --hang=off", flags_.input(FlagId::kProgressSections)));
      return entry("hangs", "nobody looks for them", flags_.origin_text(FlagId::kHang));
    }
    rules.hang = protocol::JobRules::Hang::kReport;
    if (hang == "restart") {
      rules.hang_restarts = static_cast<int>(restarts.value_or(kHangRestarts));
      entry("hangs", format("end in another round, at most {}", counted(*rules.hang_restarts, "time")),
            flags_.origin_text(FlagId::kHang));
    }
    if (const auto seconds = checked_.hang_timeout_seconds) {
      rules.hang_timeout_ms = *seconds * 1000;
      entry("hang", format("no step for {} s", *seconds), flags_.origin_text(FlagId::kHangTimeout));
    }
    if (const auto seconds = checked_.hang_first_timeout_seconds) {
      rules.hang_first_timeout_ms = *seconds * 1000;
      entry("hang at first", format("no first step for {} s", *seconds), flags_.origin_text(FlagId::kHangFirstTimeout));
    }
    plan_sections(rules.hang_sections);
  }

  void plan_file_timers() {
    if (lookup(environment_, "TORCHELASTIC_ENABLE_FILE_TIMER") != "1") return;
    const std::string path = lookup(environment_, "TORCHELASTIC_TIMER_FILE").value_or("");
    plan_.settings.file_timers = {.are_served = true, .path = path};
    entry("file timers", path.empty() ? "served" : printable(path, kShownBytes),
          path.empty() ? "environment: TORCHELASTIC_ENABLE_FILE_TIMER" : "environment: TORCHELASTIC_TIMER_FILE");
  }

 private:
  bool have_limits() const {
    return std::ranges::any_of(checked_.progress_sections,
                               [](const CheckedFlags::Section& section) { return section.limit_seconds.has_value(); });
  }
  // Sections are of NVRx's client.
  void plan_sections(hang::SectionLimits& limits) {
    if (!plan_.settings.progress.serves_nvrx) return;
    for (const CheckedFlags::Section& section : checked_.progress_sections) {
      if (section.limit_seconds) limits.push_back({section.name, *section.limit_seconds * 1000});
    }
    if (!limits.empty()) {
      entry("hang in sections", "no sign for " + hang::text_of(limits), flags_.origin_text(FlagId::kProgressSections));
    }
  }
  bool is_set(std::string_view name) const { return lookup(environment_, name).has_value(); }
  void entry(std::string name, std::string value, std::string origin) {
    plan_.entry(std::move(name), std::move(value), std::move(origin));
  }
  void warn(std::string text) { plan_.warn(std::move(text)); }

  const ParsedFlags& flags_;
  const CheckedFlags& checked_;
  const Environment& environment_;
  LaunchPlan& plan_;
};

}  // namespace

void plan_watching(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                   LaunchPlan& plan) {
  WatchPlanner planner(flags, checked, environment, plan);
  planner.plan_progress();
  planner.plan_tuning();
  planner.plan_hang();
  planner.plan_file_timers();
}

}  // namespace elastic::cli
