#include "src/report/failure_json.h"

#include <algorithm>

#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/base64.h"
#include "src/report/bounded_json.h"
#include "src/report/likely_cause.h"

namespace elastic::report {
namespace {

constexpr std::int64_t kLastMs = 253'402'300'799'999;  // the end of the year 9999
constexpr int kDaySeconds = 24 * 3600;

// --- Writing ---------------------------------------------------------------------------------

// Returns the worker with at most the last `max_bytes` of each of its long texts.
FailedWorker shortened(FailedWorker worker, std::size_t max_bytes) {
  const auto cut = [max_bytes](std::string& text) { text.erase(0, text.size() - last_bytes(text, max_bytes).size()); };
  StderrTail& tail = worker.tail;
  const std::string_view lost =
      std::string_view(tail.bytes).substr(0, tail.bytes.size() - last_bytes(tail.bytes, max_bytes).size());
  if (tail.lines_before) {
    *tail.lines_before += static_cast<std::uint64_t>(std::ranges::count(lost, '\n'));
  }
  cut(tail.bytes);
  cut(worker.kernel_log);
  if (worker.error) {
    cut(worker.error->message);
    cut(worker.error->traceback);
  }
  return worker;
}

Json tail_json(const StderrTail& tail) {
  Json out = Json::object();
  out.set("source", tail.source);
  out.set("none_because", tail.none_because);
  out.set("lines_before", tail.lines_before ? Json(static_cast<std::int64_t>(*tail.lines_before)) : Json());
  out.set("text", tail.bytes);
  if (!is_utf8(tail.bytes)) out.set("base64", base64(tail.bytes));
  return out;
}

Json error_json(const ErrorFile& error) {
  Json out = Json::object();
  out.set("message", error.message);
  out.set("traceback", error.traceback);
  out.set("timestamp_s", error.timestamp_s);
  out.set("error_code", error.error_code ? Json(*error.error_code) : Json());
  out.set("plain_message", error.plain_message);
  return out;
}

Json cause_json(const FailedWorker& worker) {
  const auto cause = likely_cause(worker);
  if (!cause) return {};
  Json out = Json::object();
  out.set("rule", cause->rule);
  out.set("sentence", cause->sentence);
  out.set("evidence", cause->evidence);
  out.set("source", cause->source);
  return out;
}

Json worker_json(const FailedWorker& whole, int utc_offset_s, std::size_t max_bytes) {
  const FailedWorker worker = shortened(whole, max_bytes);
  const bool by_signal = worker.exit.signal != 0;
  Json out = Json::object();
  out.set("rank", worker.rank);
  out.set("local_rank", worker.local_rank);
  out.set("node_rank", worker.node_rank);
  out.set("host", worker.host);
  out.set("pid", worker.pid);
  out.set("exit_code", by_signal ? Json() : Json(worker.exit.code));
  out.set("signal", by_signal ? Json(worker.exit.signal) : Json());
  out.set("signal_name", by_signal ? Json(signal_name(worker.exit.signal)) : Json());
  out.set("core_dumped", worker.exit.core_dumped);
  out.set("wall_ms", worker.wall_ms);
  out.set("time", wall_time_ms(worker.wall_ms, utc_offset_s));
  out.set("stopped_by_us", worker.stopped_by_us);
  out.set("error_came_first", worker.error_came_first);
  out.set("error_file", worker.error_file);
  out.set("error", worker.error ? error_json(*worker.error) : Json());
  out.set("error_file_problem", worker.error_file_problem);
  out.set("oom_evidence", worker.oom_evidence);
  out.set("kernel_log", worker.kernel_log);
  out.set("core_file", worker.core_file);
  out.set("likely_cause", cause_json(worker));
  out.set("stderr_tail", tail_json(worker.tail));
  return out;
}

Json last_failures_json(const JobReport& report) {
  Json out = Json::array();
  std::size_t own = 0;
  for (const FailedWorker& worker : report.failures) {
    std::size_t max_bytes = kJsonStoppedBytes;
    if (!worker.stopped_by_us) {
      max_bytes = own++ < kJsonWholeFailures ? kErrorFileBytes : kJsonShortBytes;
    }
    out.push(worker_json(worker, report.utc_offset_s, max_bytes));
  }
  return out;
}

Json round_json(const RoundReport& round, int utc_offset_s) {
  Json out = Json::object();
  out.set("round", static_cast<std::int64_t>(round.round));
  out.set("restart_count", round.restart_count);
  out.set("node_rank", round.node_rank);
  out.set("host", round.host);
  out.set("began_ms", round.began_ms);
  out.set("ended_ms", round.ended_ms);
  out.set("first_rank", round.first_rank);
  out.set("rank_count", round.rank_count);
  out.set("reason", round.reason);
  Json failures = Json::array();
  std::size_t written = 0;
  std::int64_t left_out = 0;
  for (const FailedWorker& worker : round.failures) {
    if (worker.stopped_by_us || written >= kJsonFailuresOfARound) {
      ++left_out;
    } else {
      failures.push(worker_json(worker, utc_offset_s, kJsonShortBytes));
      ++written;
    }
  }
  out.set("failures", std::move(failures));
  out.set("failures_left_out", left_out);
  return out;
}

// --- Reading ---------------------------------------------------------------------------------

int small_member(const Json& object, std::string_view name, int lowest = 0) {
  return static_cast<int>(int_member(object, name, 0, lowest, INT32_MAX));
}

StderrTail tail_of(const Json& json) {
  StderrTail tail{.bytes = json.text_or_empty("text"),
                  .source = json.text_or_empty("source"),
                  .none_because = json.text_or_empty("none_because"),
                  .lines_before = {}};
  if (auto bytes = base64_decoded(json.text_or_empty("base64")); bytes && !bytes->empty()) {
    tail.bytes = std::move(*bytes);
  }
  const std::int64_t before = int_member(json, "lines_before", -1, 0, INT64_MAX);
  if (before >= 0) tail.lines_before = static_cast<std::uint64_t>(before);
  return tail;
}

ErrorFile error_of(const Json& json) {
  ErrorFile error{.message = json.text_or_empty("message"),
                  .traceback = json.text_or_empty("traceback"),
                  .timestamp_s = int_member(json, "timestamp_s", 0, 0, kLastMs / 1000),
                  .plain_message = bool_member(json, "plain_message")};
  const std::int64_t code = int_member(json, "error_code", INT64_MIN, INT32_MIN, INT32_MAX);
  if (code != INT64_MIN) error.error_code = code;
  return error;
}

FailedWorker worker_of(const Json& json) {
  FailedWorker worker{.host = json.text_or_empty("host"),
                      .node_rank = small_member(json, "node_rank"),
                      .rank = small_member(json, "rank"),
                      .local_rank = small_member(json, "local_rank"),
                      .pid = int_member(json, "pid", 0, 0, INT64_MAX),
                      .exit = {.code = static_cast<int>(int_member(json, "exit_code", 0, 0, 255)),
                               .signal = static_cast<int>(int_member(json, "signal", 0, 0, 127)),
                               .core_dumped = bool_member(json, "core_dumped")},
                      .wall_ms = int_member(json, "wall_ms", 0, 0, kLastMs),
                      .stopped_by_us = bool_member(json, "stopped_by_us"),
                      .error_file = json.text_or_empty("error_file"),
                      .error_file_problem = json.text_or_empty("error_file_problem"),
                      .error_came_first = bool_member(json, "error_came_first"),
                      .oom_evidence = json.text_or_empty("oom_evidence"),
                      .kernel_log = json.text_or_empty("kernel_log"),
                      .core_file = json.text_or_empty("core_file")};
  if (const Json* error = json.find("error"); error != nullptr && error->as_object() != nullptr) {
    worker.error = error_of(*error);
  }
  if (const Json* tail = json.find("stderr_tail")) worker.tail = tail_of(*tail);
  return worker;
}

// Returns the objects of a list; none if the member is missing.
Result<std::vector<const Json*>> objects_of(const Json& json, std::string_view name, const std::string& what) {
  std::vector<const Json*> out;
  const Json* member = json.find(name);
  if (member == nullptr) return out;
  const Json::Array* list = member->as_array();
  if (list == nullptr) return fail("cannot read " + what, format("\"{}\" is not a list", name));
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i].as_object() == nullptr) {
      return fail("cannot read " + what, format("\"{}\"[{}] is not an object", name, i));
    }
    out.push_back(&(*list)[i]);
  }
  return out;
}

Status read_failures(const Json& json, const std::string& what, std::vector<FailedWorker>& into) {
  const auto list = objects_of(json, "failures", what);
  if (!list) return std::unexpected(list.error());
  for (const Json* failure : *list) into.push_back(worker_of(*failure));
  return {};
}

Status read_rounds(const Json& json, const std::string& what, std::vector<RoundReport>& into) {
  const auto list = objects_of(json, "rounds", what);
  if (!list) return std::unexpected(list.error());
  for (const Json* round : *list) {
    into.push_back({.round = static_cast<std::uint32_t>(int_member(*round, "round", 0, 0, UINT32_MAX)),
                    .restart_count = small_member(*round, "restart_count"),
                    .node_rank = small_member(*round, "node_rank"),
                    .host = round->text_or_empty("host"),
                    .began_ms = int_member(*round, "began_ms", 0, 0, kLastMs),
                    .ended_ms = int_member(*round, "ended_ms", 0, 0, kLastMs),
                    .first_rank = small_member(*round, "first_rank"),
                    .rank_count = small_member(*round, "rank_count"),
                    .reason = round->text_or_empty("reason")});
    if (Status read = read_failures(*round, what, into.back().failures); !read) return read;
  }
  return {};
}

// Fails unless the text is a failure.json of our version.
Status check_kind(const Json& json, const std::string& what) {
  const std::string remedy = "name a failure.json that elastic-run wrote";
  if (json.as_object() == nullptr) {
    return fail("cannot read " + what, "it is not a JSON object", remedy);
  }
  const std::int64_t version = int_member(json, "version", 0, 1, INT32_MAX);
  if (version == 0) return fail("cannot read " + what, "it has no \"version\"", remedy);
  if (version != kFailureJsonVersion) {
    return fail("cannot read " + what,
                format("it is of version {}, this elastic-run reads version {}", version, kFailureJsonVersion),
                "use the elastic-run that wrote it");
  }
  return {};
}

Result<Outcome> outcome_of(const Json& json, const std::string& what) {
  using enum Outcome;
  const std::string name = json.text_or_empty("outcome");
  for (const Outcome outcome : {kSucceeded, kFailed, kStopped}) {
    if (name == name_of(outcome)) return outcome;
  }
  return fail("cannot read " + what,
              format("\"outcome\" is \"{}\", not succeeded, failed or stopped", printable(name)));
}

}  // namespace

std::string failure_json(const JobReport& report) {
  Json out = Json::object();
  out.set("version", kFailureJsonVersion);
  out.set("elastic_run", report.version);
  out.set("run_id", report.run_id);
  out.set("title", report.title);
  out.set("program", report.program);
  out.set("executable", report.executable);
  out.set("outcome", name_of(report.outcome));
  out.set("reason", report.reason);
  out.set("restarts_used", report.restarts_used);
  out.set("max_restarts", report.max_restarts);
  out.set("log_directory", report.log_directory);
  out.set("left_behind", report.left_behind);
  out.set("host", report.host);
  out.set("node_rank", report.node_rank);
  out.set("utc_offset_s", report.utc_offset_s);
  out.set("failures", last_failures_json(report));
  Json rounds = Json::array();
  const std::size_t skipped = report.rounds.size() - std::min(report.rounds.size(), kJsonRounds);
  for (std::size_t i = skipped; i < report.rounds.size(); ++i) {
    rounds.push(round_json(report.rounds[i], report.utc_offset_s));
  }
  out.set("rounds", std::move(rounds));
  out.set("rounds_left_out", static_cast<std::int64_t>(skipped));
  return out.dump(2) + "\n";
}

Result<JobReport> parse_failure_json(std::string_view text, std::string what) {
  const auto json = parse_bounded_json(text, kFailureJsonBytes, what);
  if (!json) return std::unexpected(json.error());
  if (const Status kind = check_kind(*json, what); !kind) return std::unexpected(kind.error());
  const auto outcome = outcome_of(*json, what);
  if (!outcome) return std::unexpected(outcome.error());
  JobReport report{.version = json->text_or_empty("elastic_run"),
                   .run_id = json->text_or_empty("run_id"),
                   .title = json->text_or_empty("title"),
                   .program = json->text_or_empty("program"),
                   .executable = json->text_or_empty("executable"),
                   .outcome = *outcome,
                   .reason = json->text_or_empty("reason"),
                   .restarts_used = small_member(*json, "restarts_used"),
                   .max_restarts = small_member(*json, "max_restarts"),
                   .log_directory = json->text_or_empty("log_directory"),
                   .left_behind = json->text_or_empty("left_behind"),
                   .host = json->text_or_empty("host"),
                   .node_rank = small_member(*json, "node_rank"),
                   .utc_offset_s = static_cast<int>(int_member(*json, "utc_offset_s", 0, -kDaySeconds, kDaySeconds))};
  if (Status read = read_failures(*json, what, report.failures); !read) {
    return std::unexpected(read.error());
  }
  if (Status read = read_rounds(*json, what, report.rounds); !read) {
    return std::unexpected(read.error());
  }
  return report;
}

}  // namespace elastic::report
