#include "src/report/failure_json.h"

#include <algorithm>
#include <cstdint>

#include "src/base/json_archive.h"
#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/bounded_json.h"
#include "src/report/likely_cause.h"

namespace elastic::report {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

// --- The lists of fields. What follows from other members, as the name of a signal, is added by worker_json(), in the
// --- places that io.leads() keeps for it.

constexpr Bounds kUnixMs = {0, 253'402'300'799'999};  // to the end of the year 9999
constexpr int kDaySeconds = 24 * 3600;

void fields(auto& io, Is<StderrTail> auto& v) {
  each(io, "source", v.source, "none_because", v.none_because, "lines_before", v.lines_before, "text", v.bytes);
}
void fields(auto& io, Is<ErrorFile> auto& v) {
  each(io, "message", v.message, "traceback", v.traceback);
  io("timestamp_s", v.timestamp_s, Bounds{0, kUnixMs.most / 1000});
  io("error_code", v.error_code, Bounds{INT32_MIN, INT32_MAX});
  io("plain_message", v.plain_message);
}
void fields(auto& io, Is<Cause> auto& v) {
  each(io, "rule", v.rule, "sentence", v.sentence, "evidence", v.evidence, "source", v.source);
}
void fields(auto& io, Is<FailedWorker> auto& v) {
  each(io, "rank", v.rank, "local_rank", v.local_rank, "node_rank", v.node_rank, "host", v.host, "pid", v.pid);
  io("exit_code", v.exit.code, at_most(255));
  io("signal", v.exit.signal, at_most(127));
  io.leads("signal_name");
  io("core_dumped", v.exit.core_dumped);
  io("wall_ms", v.wall_ms, kUnixMs);
  io.leads("time");
  each(io, "stopped_by_us", v.stopped_by_us, "start", v.start);
  each(io, "error_came_first", v.error_came_first, "error_file", v.error_file);
  each(io, "error", v.error, "error_file_problem", v.error_file_problem, "oom_evidence", v.oom_evidence);
  each(io, "kernel_log", v.kernel_log, "core_file", v.core_file, "timer", v.timer);
  io.leads("likely_cause");
  io("stderr_tail", v.tail);
}
void fields(auto& io, Is<RoundReport> auto& v) {
  each(io, "round", v.round, "restart_count", v.restart_count, "node_rank", v.node_rank, "host", v.host);
  io("began_ms", v.began_ms, kUnixMs);
  io("ended_ms", v.ended_ms, kUnixMs);
  each(io, "first_rank", v.first_rank, "rank_count", v.rank_count, "start", v.start, "reason", v.reason);
}
void fields(auto& io, Is<JobReport> auto& v) {
  each(io, "elastic_run", v.version, "run_id", v.run_id, "title", v.title, "program", v.program);
  each(io, "executable", v.executable, "outcome", v.outcome, "reason", v.reason, "restarts_used", v.restarts_used);
  each(io, "max_restarts", v.max_restarts, "log_directory", v.log_directory, "left_behind", v.left_behind);
  each(io, "host", v.host, "node_rank", v.node_rank);
  io("utc_offset_s", v.utc_offset_s, Bounds{-kDaySeconds, kDaySeconds});
  io("hang", v.hang);
}

namespace {

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
  if (worker.timer) shorten_stack(*worker.timer, max_bytes);
  if (worker.error) {
    cut(worker.error->message);
    cut(worker.error->traceback);
  }
  return worker;
}

Json worker_json(const FailedWorker& whole, int utc_offset_s, std::size_t max_bytes) {
  const FailedWorker worker = shortened(whole, max_bytes);
  const bool by_signal = worker.exit.signal != 0;
  Json out = write_json(worker, JsonForm::kPlain);
  out.set(by_signal ? "exit_code" : "signal", Json());
  if (by_signal) out.set("signal_name", signal_name(worker.exit.signal));
  out.set("time", wall_time_ms(worker.wall_ms, utc_offset_s));
  const auto cause = likely_cause(worker);
  out.set("likely_cause", cause ? write_json(*cause, JsonForm::kPlain) : Json());
  if (!is_utf8(worker.tail.bytes)) {
    Json tail = write_json(worker.tail, JsonForm::kPlain);
    out.set("stderr_tail", std::move(tail.set("base64", base64(worker.tail.bytes))));
  }
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
  Json out = write_json(round, JsonForm::kPlain);
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

FailedWorker worker_of(const Json& json) {
  FailedWorker worker;
  const Json* tail = json.find("stderr_tail");
  if (tail != nullptr) worker.tail.lines_before.reset();
  static_cast<void>(read_json(json, worker, JsonForm::kPlain));
  auto bytes = tail != nullptr ? base64_decoded(tail->text_or_empty("base64")) : std::nullopt;
  if (bytes && !bytes->empty()) worker.tail.bytes = std::move(*bytes);
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
    static_cast<void>(read_json(*round, into.emplace_back(), JsonForm::kPlain));
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

}  // namespace

std::string failure_json(const JobReport& report) {
  Json out = Json::object();
  out.set("version", kFailureJsonVersion);
  JsonWriter writer(out, JsonForm::kPlain);
  fields(writer, report);
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
  JobReport report;
  static_cast<void>(read_json(*json, report, JsonForm::kPlain));
  const std::string outcome = json->text_or_empty("outcome");
  if (outcome != name_of(report.outcome)) {
    return fail("cannot read " + what,
                format("\"outcome\" is \"{}\", not succeeded, failed or stopped", printable(outcome)));
  }
  if (Status read = read_failures(*json, what, report.failures); !read) {
    return std::unexpected(read.error());
  }
  if (Status read = read_rounds(*json, what, report.rounds); !read) {
    return std::unexpected(read.error());
  }
  return report;
}

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = (group << 8) | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0u);
    }
    const std::size_t digits = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (std::size_t j = 0; j < 4; ++j) out += j < digits ? kDigits[(group >> (18 - 6 * j)) & 0x3F] : '=';
  }
  return out;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>((group >> bits) & 0xFF);
    group &= (1u << bits) - 1;
  }
  return out;
}

}  // namespace elastic::report
