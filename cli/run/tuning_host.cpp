#include "cli/run/tuning_host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "cli/run/whole_file.h"
#include "health/host/read_facts.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::run {
namespace {

constexpr const char* kVariable = "DLROVER_PARAL_CONFIG_PATH";

tuning::NodeTuner::Place place_in(const protocol::PrepareRound& round) {
  return {.node_rank = round.place.node_rank, .node_count = round.place.node_count};
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

void log_note(const tuning::Note& note) {
  const std::string text = "auto-tunning: " + note.text;
  Json fields = Json::object();
  fields.set("what", tuning::name_of(note.what));
  fields.set("value", note.value ? Json(tuning::name_of(*note.value)) : Json());
  fields.set("from", note.value ? Json(note.from) : Json());
  fields.set("to", note.value ? Json(note.to) : Json());
  fields.set("speed_before", number(note.speed_before));
  fields.set("speed_after", number(note.speed_after));
  const bool is_warning = note.what == tuning::Note::What::kNothing;
  if (is_warning) return log::write_event(log::Level::kWarning, "auto_tunning", text, fields);
  log::write_event(log::Level::kInfo, "auto_tunning", text, fields);
}

}  // namespace

// What the thread does, and finds.
struct TuningHost::Look {
  std::string path;
  std::optional<std::string> unsaved;
  int write_error = 0;
  std::string text = {};
  bool was_read = false;
  bool tells_no_reader = false;  // its file system does not
  std::optional<std::uint64_t> free_bytes = {};

  void run() {
    if (unsaved) write_error = replace_unread_file(path, *unsaved);
    free_bytes = health::free_memory("");
    // Our own reading is not to count as a worker's.
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME));
    struct stat facts {};
    struct statvfs place {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    tells_no_reader = fstatvfs(file.get(), &place) == 0 && (place.f_flag & ST_NOATIME) != 0;
    text.resize(tuning::kConfigBytes + 1);
    const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    was_read = run::was_read(facts);
  }
};

TuningHost::TuningHost(net::Loop& loop, const TuningSettings& settings, const std::string& directory, Handlers handlers)
    : loop_(loop),
      settings_(settings),
      handlers_(std::move(handlers)),
      tuner_(settings.cpus),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }),
      timer_(loop) {
  if (!settings_.gives_file) return;
  if (directory.empty()) {
    stop("there is no directory for temporary files that can be written");
  } else {
    path_ = directory + "/auto_paral_config.json";
  }
}

std::vector<Variable> TuningHost::variables() const {
  if (path_.empty()) return {};
  return {{kVariable, path_}};
}

void TuningHost::lead_round(const protocol::PrepareRound& round) {
  if (path_.empty()) return;
  round_ = round.round;
  perform(tuner_.lead_round(place_in(round), loop_.now_ms()));
}

// The directory is ours, and other files in it are made here, too.
void TuningHost::begin_round(const protocol::PrepareRound& round) {
  if (path_.empty()) return;
  round_ = round.round;
  ++rounds_;
  thread_.wait(kLookEndsMs);  // a look that began before this must not write now
  unsaved_.reset();
  perform(tuner_.begin_round(place_in(round), round.restart_count < round.max_restarts, loop_.now_ms()));
  const std::string text = std::exchange(unsaved_, {}).value_or(tuning::first_config());
  if (const int error = replace_unread_file(path_, text); error != 0) {
    return stop(format("cannot write {}: {}", printable(path_), errno_text(error)));
  }
  is_running_ = true;
  if (!is_stopped_) plan_look(kLookMs);
}

void TuningHost::rank_failed(protocol::RoundNumber round, std::string_view memory) {
  if (is_running_ && round == round_) perform(tuner_.rank_failed(memory));
}

void TuningHost::end_round(bool rank_failed) {
  if (!std::exchange(is_running_, false)) return;
  timer_.stop();
  perform(tuner_.end_round(rank_failed));
}

void TuningHost::finish() { perform(tuner_.finish()); }

void TuningHost::perform(const agent::HearLoader& effect) {
  if (path_.empty()) return;
  perform(tuner_.heard(effect.told.node_rank, effect.told.word, loop_.now_ms()));
  if (is_running_ && !is_stopped_ && effect.told.word.values) plan_look(0);
}

void TuningHost::plan_look(std::int64_t after_ms) {
  timer_.start(after_ms, [this] { look_at_file(); });
}

void TuningHost::look_at_file() {
  plan_look(kLookMs);
  if (std::exchange(is_looking_, true)) return;
  const auto look = std::make_shared<Look>(Look{.path = path_, .unsaved = std::exchange(unsaved_, {})});
  thread_.post(
      "the file of the loaders' parameters", [look] { look->run(); },
      [this, look, round = rounds_] {
        is_looking_ = false;
        if (is_running_ && round == rounds_) use_look(*look);
      });
}

void TuningHost::use_look(const Look& look) {
  if (look.write_error != 0) {
    return stop(format("cannot write {}: {}", printable(path_), errno_text(look.write_error)));
  }
  if (look.tells_no_reader) {
    return stop(format("the file system of {} does not tell whether a file was read (noatime)", printable(path_)));
  }
  tuning::Look found{.now_ms = loop_.now_ms(), .step = handlers_.last_step(), .free_bytes = look.free_bytes};
  if (const auto config = tuning::read_config(look.text)) {
    text_ = look.text;
    found.file = *config;
    found.was_read = look.was_read;
  }
  perform(tuner_.weigh_look(found));
  if (unsaved_) plan_look(0);
}

void TuningHost::perform(const tuning::NodeTuner::Effects& effects) {
  if (effects.write) unsaved_ = tuning::with_order(text_, *effects.write);
  for (const tuning::Note& note : effects.notes) log_note(note);
  for (const tuning::LoaderWord& word : effects.tell) handlers_.say({.round = round_, .word = word});
}

void TuningHost::stop(const std::string& why) {
  is_stopped_ = true;
  timer_.stop();
  log_note({.what = tuning::Note::What::kNothing, .text = "nothing is changed: " + why});
}

}  // namespace elastic::run
