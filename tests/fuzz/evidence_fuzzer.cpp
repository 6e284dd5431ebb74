// libFuzzer's entry for the readers of evidence (evidence_input.h): whatever another program, another host or a broken
// disk gives them, nothing may crash, and:
// - the time is in proportion to the bytes, and what is kept has its bounds;
// - every refusal has a reason;
// - a dump that is cut off says so, and never says more than the whole one;
// - RAS's client, the answers of a control server, the monitor that NVRx's client meets, and file timers are the same
//   in whatever pieces what they hear comes;
// - each message of NVRx's client has one answer.
// ELASTIC_FUZZ_TRACE=1 in the environment tells what was read on stderr.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/evidence/control_answer.h"
#include "health/evidence/flight_recorder.h"
#include "health/evidence/process_state.h"
#include "health/evidence/ras_client.h"
#include "health/evidence/ras_comparison.h"
#include "health/evidence/ras_report.h"
#include "health/evidence/store_waiters.h"
#include "health/progress/nvrx_session.h"
#include "health/timers/limits.h"
#include "health/timers/timer_table.h"
#include "src/base/text.h"
#include "tests/fuzz/byte_reader.h"
#include "tests/fuzz/evidence_input.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace elastic {
namespace {

using namespace evidence;
using namespace evidence_input;

// CPU time, a hundred times what it takes with sanitizers.
constexpr double kSecondsPerByte = 100e-6;
constexpr double kSecondsForAny = 1;
constexpr std::size_t kMostSummaryBytes = 2048;
constexpr std::size_t kCutParts = 256;

[[noreturn]] void found(const std::string& what) { fuzz::end_with("evidence_fuzzer", what); }
void trace(const std::string& line) {
  if (fuzz::tracing()) std::fprintf(stderr, "%s\n", line.c_str());
}

// The value, or nothing where it was refused with a reason.
template <class T>
std::optional<T> read(Result<T> result) {
  if (result) return std::move(*result);
  if (result.error().what.empty() || result.error().reason.empty()) found("a refusal has no reason");
  trace(result.error().text());
  return {};
}

std::vector<std::string_view> parts_of(std::string_view content, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = content.find(separator); end != std::string_view::npos; end = content.find(separator)) {
    parts.push_back(content.substr(0, end));
    content.remove_prefix(end + 1);
  }
  parts.push_back(content);
  return parts;
}

void check_flight(const FlightFacts& facts) {
  if (facts.groups.size() > kFlightGroups || facts.entries > kFlightEntries)
    found("more is kept of a dump than may be");
  for (const FlightGroup& group : facts.groups) {
    trace(format("group {} ({}): enqueued {}, completed {}, {}", group.name, group.description,
                 group.enqueued.value_or(-1), group.completed.value_or(-1),
                 group.newest ? group.newest->name : "nothing"));
    if (!group.newest) found("a group of a dump has no entry");
    if (group.completed && group.started < group.completed) found("a collective is over and has not started");
    if (group.started && group.enqueued < group.started) found("a collective has started and was not enqueued");
    if (group.members.size() > kFlightMembers) found("a group has more members than may be");
  }
}

void play_pickle(std::string_view content, std::uint8_t settings) {
  const auto whole = read(flight_facts_of_pickle(std::string(content)));
  if (whole) check_flight(*whole);
  const std::string_view cut = content.substr(0, content.size() * settings / kCutParts);
  const auto part = read(flight_facts_of_pickle(std::string(cut)));
  if (part) check_flight(*part);
  if (!whole || !part) return;
  // What stands behind the end of a pickle is not read, so that both may be whole.
  if (part->entries > whole->entries + whole->entries_left_out)
    found("a dump that is cut off has more entries than the whole");
  if (whole->is_cut && !part->is_cut) found("a part of a dump that is cut off is whole");
}

void play_ras_reports(std::string_view content) {
  const std::size_t end = content.find('\0');
  const auto first = read(read_ras_report(content.substr(0, end)));
  const auto second = read(read_ras_report(end == std::string_view::npos ? content : content.substr(end + 1)));
  if (!first || !second) return;
  const std::vector<RasWorker> ours = {{{"10.0.0.1", 100}, 40}, {{"10.0.0.1", 101}, 41}};
  for (const auto& workers : {std::vector<RasWorker>(), ours}) {
    const auto comparison = compare_ras(*first, *second, workers);
    if (comparison.moved && !comparison.has_counts) found("something moves of which no counts are known");
    const auto lines = ras_summary(comparison);
    if (lines.empty() || lines.size() > 8) found("a summary has no lines, or too many");
    for (const std::string& line : lines) {
      trace(line);
      if (line.size() > kMostSummaryBytes) found("a line of a summary is too long");
    }
  }
}

// What the client says in all, and how it ends.
std::string told_by_client(std::string_view answers, std::size_t piece) {
  RasClient client(5);
  std::string said = client.start();
  while (!answers.empty()) {
    const auto next = client.feed(answers.substr(0, piece));
    if (!read(Result<std::string>(next))) return "failed";
    said += *next;
    answers.remove_prefix(std::min(piece, answers.size()));
  }
  if (client.late().reason.empty()) found("it is late without a reason");
  const auto report = client.closed();
  return said + (read(Result<std::string>(report)) ? "report: " + *report : "failed");
}

void play_ras_answers(std::string_view content, std::uint8_t settings) {
  const std::string at_once = told_by_client(content, std::max<std::size_t>(content.size(), 1));
  trace(at_once);
  if (told_by_client(content, std::max<std::size_t>(settings, 1)) != at_once)
    found("the client says something else in pieces");
}

void play_process(std::string_view content, std::uint8_t settings) {
  std::vector<std::string_view> parts = parts_of(content, '\0');
  parts.resize(10);
  const auto first = read_process({parts[0], parts[1], parts[2], parts[3], parts[4]});
  const auto second = read_process({parts[5], parts[6], parts[7], parts[8], parts[9]});
  const auto what = class_of(first, second, settings);
  const std::string text = describe(what, second);
  trace(text);
  if (text.size() > 2 * kWaitNameBytes + 64) found("the description of a process is too long");
  if (what == ProcessClass::kGone && first.state == 'S' && second.state == 'S' &&
      first.started_ticks == second.started_ticks) {
    found("a process that sleeps is gone");
  }
}

void play_store(std::string_view content, std::uint8_t settings) {
  const std::size_t end = content.find('\0');
  const auto keys = parts_of(content.substr(0, end), '\n');
  std::vector<StoreWait> waits;
  if (end != std::string_view::npos) {
    for (const std::string_view key : parts_of(content.substr(end + 1), '\n')) {
      waits.push_back({.rank = static_cast<int>(waits.size()), .keys = {std::string(key)}});
    }
  }
  const auto facts = store_facts(keys, waits, settings);
  for (const AwaitedKey& awaited : facts.awaited) trace(format("{} awaits {}", awaited.clients, awaited.key));
  if (facts.awaited.size() > kAwaitedKeys) found("more awaited keys are kept than may be");
  for (const int rank : facts.never_came) {
    if (rank < 0 || rank >= settings) found("a rank that is not in the world never came");
    if (std::ranges::binary_search(facts.came, rank)) found("a rank came and never came");
  }
}

struct Talk {
  std::string answers;
  std::string problem;
  std::vector<progress::NvrxWord> words;
  bool operator==(const Talk&) const = default;
};

Talk talk_with_monitor(std::string_view sent, std::size_t piece) {
  const std::vector<std::string> sections = {"setup", "step"};
  progress::NvrxSession session(sections);
  Talk talk;
  while (!sent.empty() && talk.problem.empty()) {
    const auto answer =
        session.feed(sent.substr(0, piece), [&](const progress::NvrxWord& word) { talk.words.push_back(word); });
    talk.answers += answer.bytes;
    talk.problem = answer.problem;
    sent.remove_prefix(std::min(piece, sent.size()));
  }
  return talk;
}

void play_nvrx(std::string_view content, std::uint8_t settings) {
  const Talk at_once = talk_with_monitor(content, std::max<std::size_t>(content.size(), 1));
  trace(format("{} words; {}", at_once.words.size(), at_once.problem));
  if (talk_with_monitor(content, std::max<std::size_t>(settings, 1)) != at_once)
    found("the monitor says something else in pieces");
  std::size_t answers = 0;
  for (std::string_view rest = at_once.answers; !rest.empty(); ++answers) {
    if (rest.size() < progress::nvrx::kLengthBytes) found("an answer is cut off");
    const std::size_t size = progress::nvrx::kLengthBytes + progress::nvrx::length_of(rest);
    if (rest.size() < size) found("an answer is shorter than it says");
    rest.remove_prefix(size);
  }
  if (at_once.words.size() > answers) found("a word has no answer");
  if (content.size() > progress::nvrx::kLengthBytes) {
    (void)progress::nvrx::read_request(content.substr(progress::nvrx::kLengthBytes));
  }
}

std::vector<timers::TimerRequest> timer_requests(std::string_view said, std::size_t piece) {
  timers::TimerLines lines;
  std::vector<timers::TimerRequest> requests;
  while (!said.empty()) {
    lines.push(said.substr(0, piece), [&](std::string_view line) {
      if (auto request = timers::read_timer_request(line)) requests.push_back(std::move(*request));
    });
    said.remove_prefix(std::min(piece, said.size()));
  }
  return requests;
}

void play_timers(std::string_view content, std::uint8_t settings) {
  const auto requests = timer_requests(content, std::max<std::size_t>(content.size(), 1));
  trace(format("{} requests", requests.size()));
  if (timer_requests(content, std::max<std::size_t>(settings, 1)) != requests)
    found("timers are others when they come in pieces");
  timers::TimerTable table;
  for (const timers::TimerRequest& request : requests) {
    if (request.pid <= 0 || request.signal < 0) found("a request has no pid, or a signal below 0");
    table.note_request(request, 1'000, 0);
    if (table.size() > limits::kFileTimers) found("there are too many timers");
  }
  while (const auto next = table.next_ms()) {
    if (table.take_expired(*next - 1).size() > 0) found("a timer expires too early");
    for (const timers::Expired& expired : table.take_expired(*next)) {
      if (table.has(expired.pid)) found("a process has timers after one has expired");
    }
  }
}

// What a control server's answer says, in short.
std::string control_answer(std::string_view text, std::size_t piece) {
  ControlAnswer answer;
  std::optional<ControlAnswer::Dump> said;
  for (; !text.empty() && !said; text.remove_prefix(std::min(piece, text.size()))) {
    said = answer.feed(text.substr(0, piece));
  }
  const auto dump = read(said ? *std::move(said) : answer.closed());
  if (!dump) return "refused";
  if (!*dump) return "no recorder";
  check_flight(**dump);
  check_flight(of_both_recorders(**dump, **dump));
  return format("{} entries", (*dump)->entries);
}

void play_control(std::string_view content, std::uint8_t settings) {
  const std::string at_once = control_answer(content, std::max<std::size_t>(content.size(), 1));
  trace(at_once);
  if (control_answer(content, std::max<std::size_t>(settings, 1)) != at_once)
    found("a control server's answer says something else in pieces");
}

void play(std::string_view input) {
  fuzz::ByteReader bytes(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  const auto reader = static_cast<Reader>(bytes.byte() % kReaders);
  const std::uint8_t settings = bytes.byte();
  const std::string_view content = bytes.bytes(input.size());
  const double begin = fuzz::cpu_seconds();
  switch (reader) {
    case kPickle: play_pickle(content, settings); break;
    case kJson:
      if (const auto facts = read(flight_facts_of_json(content))) check_flight(*facts);
      break;
    case kRasReports: play_ras_reports(content); break;
    case kRasAnswers: play_ras_answers(content, settings); break;
    case kProcess: play_process(content, settings); break;
    case kNvrx: play_nvrx(content, settings); break;
    case kControl: play_control(content, settings); break;
    case kTimers: play_timers(content, settings); break;
    default: play_store(content, settings);
  }
  const double seconds = fuzz::cpu_seconds() - begin;
  if (seconds > kSecondsForAny + kSecondsPerByte * static_cast<double>(content.size())) {
    found(format("{} bytes took {} s", content.size(), seconds));
  }
}

}  // namespace
}  // namespace elastic

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::play({reinterpret_cast<const char*>(data), size});
  return 0;
}
