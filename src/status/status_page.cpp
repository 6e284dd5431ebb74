#include "src/status/status_page.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/status/snapshot.h"

namespace elastic::status {
namespace {

constexpr std::size_t kMostMembers = 40;
constexpr std::size_t kMostFailures = 5;
constexpr std::size_t kMostText = 400;
constexpr std::size_t kIndent = 4;
constexpr std::size_t kMostBlanks = 8;
constexpr std::string_view kLeftOut =
    "Names and texts are left out. To see them send the job's token (ELASTIC_RUN_TOKEN or --rdzv-conf=token_file=FILE, "
    "as "
    "on its nodes), start the nodes with --status-open, or, where the job has no token, ask on the host itself.";

const Json kNull;

const Json& member(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  return found == nullptr ? kNull : *found;
}
std::string text(const Json& json, std::string_view name) { return printable(json.text_or_empty(name), kMostText); }
std::int64_t number(const Json& json, std::string_view name) { return member(json, name).as_integer().value_or(0); }
double seconds(const Json& json, std::string_view name) { return member(json, name).as_number().value_or(0); }
const Json::Array& list(const Json& json, std::string_view name) {
  static const Json::Array kNone;
  const Json::Array* found = member(json, name).as_array();
  return found == nullptr ? kNone : *found;
}
const Json::Object& members_of(const Json& json, std::string_view name) {
  static const Json::Object kNone;
  const Json::Object* found = member(json, name).as_object();
  return found == nullptr ? kNone : *found;
}

// "0.4 s", "29 s", "2 m 10 s", "3 h 5 m", "2 d 4 h".
std::string time_text(double value) {
  if (value < 10) return format("{:.1f} s", std::max(value, 0.0));
  const auto whole = static_cast<std::int64_t>(std::min(value, 1e15));
  if (whole < 60) return format("{} s", whole);
  if (whole < 3600) return format("{} m {} s", whole / 60, whole % 60);
  if (whole < 86'400) return format("{} h {} m", whole / 3600, whole % 3600 / 60);
  return format("{} d {} h", whole / 86'400, whole % 86'400 / 3600);
}

std::string words(std::string_view name) { return replace_all(printable(name), "_", " "); }

// The words for a cause of so many restarts; an unknown cause is shown unchanged.
std::string cause_words(std::int64_t count, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kMany[] = {{"worker_failure", "worker failures"},
                                                                     {"node_lost", "nodes lost"},
                                                                     {"membership_change", "membership changes"},
                                                                     {"check", "checks"},
                                                                     {"coordinator_lost", "losses of the coordinator"},
                                                                     {"false_alarm", "false alarms"},
                                                                     {"hang", "hangs"}};
  const auto* found = std::ranges::find(kMany, name, &std::pair<std::string_view, std::string_view>::first);
  return count == 1 || found == std::end(kMany) ? words(name) : std::string(found->second);
}

// "3 in round, 1 standby": lists the counts that are not 0; empty if all are. `say` makes the words for a number and a
// name.
template <class Say>
std::string counted(const Json& json, std::string_view name, const Say& say) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : members_of(json, name)) {
    const std::int64_t count = value.as_integer().value_or(0);
    if (count != 0) parts.push_back(format("{} {}", count, say(count, key)));
  }
  return join(parts, ", ");
}
std::string counted_nodes(const Json& job) {
  return counted(job, "nodes", [](std::int64_t, std::string_view name) { return words(name); });
}

std::int64_t sum(const Json& json, std::string_view name) {
  std::int64_t total = 0;
  for (const auto& [key, value] : members_of(json, name)) total += value.as_integer().value_or(0);
  return total;
}
double sum_seconds(const Json& json, std::string_view name) {
  double total = 0;
  for (const auto& [key, value] : members_of(json, name)) total += value.as_number().value_or(0);
  return total;
}

std::string nodes_wanted(const Json& job) {
  const std::int64_t least = number(job, "min_nodes");
  const std::int64_t most = number(job, "max_nodes");
  return least == most ? format("{}", least) : format("{} to {}", least, most);
}

// The share of the time that the job was in a round; empty where no time has passed. It is not goodput: workers that
// import modules, or hang, are in a round, too.
std::string time_in_round(const Json& job) {
  const double all = sum_seconds(job, "phase_seconds");
  if (all <= 0) return {};
  return format("{:.1f} %", 100 * member(member(job, "phase_seconds"), "running").as_number().value_or(0) / all);
}

bool is_wanted(const Json& job, std::string_view run_id) {
  const std::string* id = job.find_text("run_id");
  return run_id.empty() || (id != nullptr && *id == run_id);
}

class Page {
 public:
  explicit Page(std::size_t columns) : columns_(columns == 0 ? SIZE_MAX : std::max<std::size_t>(columns, 20)) {}

  // Wraps a line that is too long; its continuation is indented like the line.
  void line(const std::string& text) { put("", text); }
  void row(std::string_view name, const std::string& value) {
    if (!value.empty()) put(format("  {:<10}", name), value);
  }
  void blank() {
    if (!out_.empty()) out_ += "\n";
  }
  std::string take() { return std::move(out_); }

 private:
  void put(const std::string& before, const std::string& text) {
    if (before.size() + character_count(text) <= columns_) {
      out_ += before + text + "\n";
      return;
    }
    const std::size_t blanks = std::min(text.find_first_not_of(' '), kMostBlanks);
    const std::size_t indent = before.empty() ? blanks + kIndent : before.size();
    const std::size_t room = columns_ - std::min(columns_ - 1, before.empty() ? blanks : before.size());
    const std::string folded = wrap(text, room, before.empty() ? kIndent : 0);
    out_ += (before.empty() ? std::string(blanks, ' ') : before) +
            replace_all(folded, "\n", "\n" + std::string(indent - (before.empty() ? kIndent : 0), ' ')) + "\n";
  }

  std::size_t columns_;
  std::string out_;
};

// "step 118, 2.3 steps/s, 4.0 s ago (rank 7, megatron)"
std::string progress_words(const Json& progress) {
  std::vector<std::string> parts;
  if (const auto step = member(progress, "step").as_integer()) parts.push_back(format("step {}", *step));
  if (const auto rate = member(progress, "steps_per_second").as_number()) {
    parts.push_back(format("{:.3g} steps/s", *rate));
  }
  parts.push_back(format("{} ago", time_text(seconds(progress, "age_seconds"))));
  std::vector<std::string> how;
  if (const auto rank = member(progress, "rank").as_integer()) how.push_back(format("rank {}", *rank));
  how.push_back(text(progress, "source"));
  if (text(progress, "phase") != "unknown") how.push_back(text(progress, "phase"));
  return format("{} ({})", join(parts, ", "), join(how, ", "));
}

constexpr std::string_view kNotSeen =
    "not seen; show elastic-run the steps: pass the output through it (--tee=3 or --redirects=3), name the line "
    "(--progress-pattern=RE), or let the script write step=N to the file $ELASTIC_RUN_PROGRESS";

void put_progress(Page& page, const Json& job) {
  const Json& newest = member(job, "progress");
  if (newest.is_null()) {
    const bool runs = text(job, "phase") == "running";
    return page.row("progress", runs ? std::string(kNotSeen) : "");
  }
  std::string out = progress_words(newest);
  const Json& oldest = member(job, "progress_oldest");
  const auto rank = member(oldest, "rank").as_integer();
  if (number(job, "progress_ranks") > 1 && rank) {
    out += format("; of {} ranks rank {} is the last, {} ago", number(job, "progress_ranks"), *rank,
                  time_text(seconds(oldest, "age_seconds")));
  }
  page.row("progress", out);
}

// "rank 5 is at fault by rule 7 (behind)", where texts are left out.
std::string cause_of(const Json& hang) {
  if (const std::string cause = text(hang, "cause"); !cause.empty()) return cause;
  std::vector<std::string> ranks;
  for (const Json& rank : list(hang, "ranks")) ranks.push_back(format("{}", rank.as_integer().value_or(0)));
  const std::string rule = format("rule {} ({})", number(hang, "rule"), text(hang, "verdict"));
  if (ranks.empty()) return rule;
  return format("{} {} by {}", plural("rank", ranks.size()), some_of(ranks), rule);
}

// Whether the job makes progress, by the watch for hangs; nothing where it is off.
void put_hang(Page& page, const Json& job) {
  const Json& hang = member(job, "hang");
  const std::string state = text(hang, "state");
  const Json& last = member(hang, "last");
  const auto limit = member(hang, "limit_seconds").as_number();
  const std::string silent = time_text(seconds(hang, "silent_seconds"));
  const std::string of_limit = limit ? format("limit {}, {}", time_text(*limit), text(hang, "limit_from")) : "no limit";
  const bool is_told = state == "judged";
  if (is_told) {
    page.row("HANG", format("no progress for {} ({}): {}", silent, of_limit, cause_of(last)));
  } else if (state == "suspect" || state == "confirmed" || state == "collecting") {
    page.row("hang", format("SUSPECTED: no progress for {} ({}); evidence is collected", silent, of_limit));
  } else if (state == "armed" || (state == "starting" && limit)) {
    page.row("hang", format("none; {} without progress ({})", silent, of_limit));
  } else if (state == "starting") {
    page.row("hang", "not watched yet: this round has shown no progress");
  }
  if (!last.is_null() && !is_told) {
    page.row("last hang",
             format("round {}, {} ago, {}: {}", number(last, "round"), time_text(seconds(last, "age_seconds")),
                    member(last, "over").as_bool().value_or(false) ? "over" : "not over", cause_of(last)));
  }
}

void put_members(Page& page, const Json& job) {
  const Json::Array& members = list(job, "members");
  for (std::size_t i = 0; i < std::min(members.size(), kMostMembers); ++i) {
    const Json& each = members[i];
    const auto rank = member(each, "node_rank").as_integer();
    const std::int64_t workers = number(each, "workers");
    std::string out = format("  {:>6}  {:<10} {:>3} {:<7}  {}", rank ? format("{}", *rank) : std::string("-"),
                             words(text(each, "state")), workers, plural("worker", workers), text(each, "name"));
    if (member(each, "hosts_coordinator").as_bool().value_or(false)) {
      out += text(each, "name").empty() ? "hosts the coordinator" : ", hosts the coordinator";
    }
    if (const std::string peer_address = text(each, "door"); !peer_address.empty()) {
      out += format("{}door {}", text(each, "name").empty() ? "" : ", ", peer_address);
    }
    page.line(out.substr(0, out.find_last_not_of(' ') + 1));
  }
  const std::size_t left = members.size() - std::min(members.size(), kMostMembers) +
                           static_cast<std::size_t>(std::max<std::int64_t>(number(job, "members_left_out"), 0));
  if (left > 0) page.line(format("  and {} more {}", left, plural("node", left)));
}

// The failure's text, or, where texts are left out, its kind and its node.
std::string failure_words(const Json& failure) {
  if (const std::string said = text(failure, "text"); !said.empty()) return said;
  std::string out = words(text(failure, "cause"));
  if (const auto rank = member(failure, "rank").as_integer()) return out + format(", rank {}", *rank);
  if (const auto node_rank = member(failure, "node_rank").as_integer()) out += format(", node {}", *node_rank);
  return out;
}

void put_failures(Page& page, const Json& job) {
  const Json::Array& failures = list(job, "failures");
  if (failures.empty()) return;
  page.line("  last failures:");
  for (std::size_t i = 0; i < std::min(failures.size(), kMostFailures); ++i) {
    const Json& each = failures[i];
    page.line(format("    round {}, {} ago: {}", number(each, "round"), time_text(seconds(each, "age_seconds")),
                     failure_words(each)));
  }
  if (failures.size() > kMostFailures) page.line(format("    and {} more", failures.size() - kMostFailures));
}

void put_check(Page& page, const Json& job) {
  const Json& check = member(job, "check");
  if (check.is_null()) return;
  std::string out =
      format("{} fit, {} slow, {} faulty, {} undetermined, in {}", number(check, "fit"), number(check, "slow"),
             number(check, "faulty"), number(check, "undetermined"), time_text(seconds(check, "duration_seconds")));
  if (const auto busbw = member(check, "slowest_busbw_bytes_per_second").as_number()) {
    out += format("; slowest busbw {:.2f} GB/s", *busbw / 1e9);
  }
  page.row("check", out);
}

void put_job(Page& page, const Json& job) {
  page.blank();
  page.line(format("job {}: {} for {}", text(job, "run_id"), text(job, "phase"),
                   time_text(seconds(job, "phase_for_seconds"))));
  if (const auto round = member(job, "round").as_integer()) {
    const std::string because = text(job, "because");
    page.row("round", format("{}, world size {}{}", *round, number(job, "world_size"),
                             because.empty() ? "" : ", because " + because));
  }
  page.row("nodes", format("{}; wanted: {}", counted_nodes(job), nodes_wanted(job)));
  std::string restarts = format("{}", sum(job, "restarts"));
  if (const std::string causes = counted(job, "restarts", cause_words); !causes.empty())
    restarts += format(" ({})", causes);
  page.row("restarts",
           format("{}; {} of {} charged", restarts, number(job, "restarts_charged"), number(job, "max_restarts")));
  std::vector<std::string> times;
  for (const auto& [phase, spent] : members_of(job, "phase_seconds")) {
    const double value = spent.as_number().value_or(0);
    if (value > 0) times.push_back(format("{} {}", words(phase), time_text(value)));
  }
  const std::string share = time_in_round(job);
  page.row("time", (share.empty() ? "" : share + " in a round (imports and hangs count): ") + join(times, ", "));
  if (const double lost = sum_seconds(job, "lost_work_seconds"); lost > 0) {
    page.row("lost work", format("at most {}", time_text(lost)));
  }
  put_check(page, job);
  put_progress(page, job);
  put_hang(page, job);
  put_members(page, job);
  put_failures(page, job);
}

std::string node_words(const Json& node) {
  const std::string name = text(node, "name");
  return name.empty() ? "this node" : "node " + name;
}

// How the round's workers were started, and whether the next round's will be warm; nothing without --warm-workers.
void put_warmth(Page& page, const Json& node) {
  const Json& warm = member(node, "warm_workers");
  const std::string state = text(warm, "state");
  if (state.empty() || state == "off") return;
  const std::int64_t started = number(node, "workers_started_warm");
  if (const std::string start = text(node, "start"); !start.empty()) {
    page.row("start",
             started == 0
                 ? start
                 : format("{}; {} of {} workers were started warm, which has spared {} of processor time", start,
                          started, number(node, "workers_started"), time_text(seconds(node, "spared_cpu_seconds"))));
  }
  const std::string why = text(warm, "why");
  const std::int64_t waiting = number(warm, "waiting");
  page.row("warm", state == "ready"
                       ? format("ready: {} {} for the next round",
                                elastic::counted(static_cast<int>(waiting), "worker"), waiting == 1 ? "waits" : "wait")
                   : why.empty() ? state
                                 : format("{}: {}", state, why));
}

void put_node(Page& page, const Json& node) {
  page.blank();
  const std::string waits = text(node, "waits_for");
  page.line(format("{}: {}{}", node_words(node), text(node, "state"), waits.empty() ? "" : ", " + waits));
  page.row("job", text(node, "run_id"));
  if (const auto round = member(node, "round").as_integer()) {
    page.row("round", format("{}, node rank {} of {}, restart {} of {}", *round, number(node, "node_rank"),
                             number(node, "node_count"), number(node, "restart_count"), number(node, "max_restarts")));
  }
  std::vector<std::string> running;
  for (const Json& worker : list(node, "workers")) {
    if (!member(worker, "running").as_bool().value_or(false)) continue;
    const auto pid = member(worker, "pid").as_integer();
    running.push_back(format("rank {}{}", number(worker, "rank"), pid ? format(" (pid {})", *pid) : std::string()));
  }
  page.row("workers", running.empty() ? "none running" : some_of(running));
  put_warmth(page, node);
  if (!running.empty()) {
    const Json& progress = member(node, "progress");
    page.row("progress", progress.is_null() ? "not seen" : progress_words(progress));
  }
  const std::string endpoint = text(node, "endpoint");
  if (endpoint.empty()) return;
  const std::string at = text(node, "coordinator_at");
  const std::string connected = member(node, "connected").as_bool().value_or(false) ? "connected" : "NOT connected";
  page.row("endpoint", format("{}, {}{}", endpoint, connected,
                              at.empty() || endpoint.ends_with(at) ? "" : format("; the coordinator is at {}", at)));
}

void put_document(Page& page, const Json& document, std::string_view run_id) {
  page.line(
      format("elastic-run {}, up for {}", text(document, "version"), time_text(seconds(document, "uptime_seconds"))));
  const Json& coordinator = member(document, "coordinator");
  const Json::Array& jobs = list(coordinator, "jobs");
  for (const Json& job : jobs) {
    if (is_wanted(job, run_id)) put_job(page, job);
  }
  if (!coordinator.is_null() && jobs.empty()) page.line("no jobs");
  const Json& node = member(document, "node");
  if (!node.is_null() && is_wanted(node, run_id)) put_node(page, node);
  if (!run_id.empty()) return;
  bool is_first = true;
  for (const Json& ended : list(coordinator, "last_ended")) {
    if (is_first) page.blank();
    is_first = false;
    const std::string reason = text(ended, "reason");
    page.line(format("job {} ended: {}{}", text(ended, "run_id"), text(ended, "outcome"),
                     reason.empty() ? "" : ": " + reason));
  }
}

}  // namespace

bool is_status(const Json& document) { return member(document, "format").as_integer().has_value(); }

bool has_job(const Json& document, std::string_view run_id) {
  if (run_id.empty()) return true;
  const Json::Array& jobs = list(member(document, "coordinator"), "jobs");
  return std::ranges::any_of(jobs, [&](const Json& job) { return is_wanted(job, run_id); }) ||
         is_wanted(member(document, "node"), run_id);
}

std::vector<std::string> peer_addresses(const Json& document, std::string_view run_id) {
  std::vector<std::string> out;
  for (const Json& job : list(member(document, "coordinator"), "jobs")) {
    if (!is_wanted(job, run_id)) continue;
    for (const Json& each : list(job, "members")) {
      if (std::string peer_address = text(each, "door"); !peer_address.empty()) out.push_back(std::move(peer_address));
    }
  }
  return out;
}

std::string status_page(const Json& document, std::string_view run_id, std::size_t columns) {
  Page page(columns);
  put_document(page, document, run_id);
  if (member(document, "counts_only").as_bool().value_or(false)) {
    page.blank();
    page.line(std::string(kLeftOut));
  }
  return page.take();
}

std::string status_line(const Json& document, std::string_view run_id) {
  std::vector<std::string> parts;
  for (const Json& job : list(member(document, "coordinator"), "jobs")) {
    if (!is_wanted(job, run_id)) continue;
    const auto round = member(job, "round").as_integer();
    const bool hangs = text(member(job, "hang"), "state") == "judged";
    parts.push_back(format("job {}: {}{}{}; nodes: {}; restarts: {}; in a round: {}", text(job, "run_id"),
                           text(job, "phase"), hangs ? ", HANGS" : "",
                           round ? format(", round {}", *round) : std::string(), counted_nodes(job),
                           sum(job, "restarts"), time_in_round(job).empty() ? "-" : time_in_round(job)));
  }
  const Json& node = member(document, "node");
  if (parts.empty() && !node.is_null() && is_wanted(node, run_id)) {
    parts.push_back(format("{}: {}", node_words(node), text(node, "state")));
  }
  return (parts.empty() ? "no jobs" : join(parts, " | ")) + "\n";
}

}  // namespace elastic::status
