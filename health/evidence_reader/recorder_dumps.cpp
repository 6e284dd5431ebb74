#include "health/evidence_reader/recorder_dumps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "health/evidence/flight_recorder.h"
#include "health/evidence_reader/control_socket.h"
#include "health/probe/attempt.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::evidence {
namespace {

using hang::Source;
using hang::SourceFacts;

constexpr std::int64_t kPatienceMs = 7'000;
// A stop waits 5 s in all, within which the answer has to be written, too.
constexpr std::int64_t kDumpsPatienceMs = 4'000;
constexpr auto kBetweenTries = std::chrono::milliseconds(50);
constexpr std::int64_t kNs = 1'000'000'000;

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * kNs + time.tv_nsec; }
std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return ns_of(now);
}

// A file's time is that of the kernel's last tick, which may be a little before the clock's.
constexpr std::int64_t kTickNs = 20'000'000;

// One rank while its dump is waited for.
struct Asked {
  hang::RankRecorder recorder = {};
  std::unique_ptr<ControlSocket> control = {};  // null: it is not asked
  bool has_answered = false;                    // its control server, or there is nothing to wait for there
  SourceFacts no_answer = {};
  std::int64_t not_before_ns = 0;  // an older file is of somebody else, or of another time
  bool was_triggered = false;      // to dump into a file
  std::int64_t seen_ns = 0;        // the time and the size of the file that was read last
  off_t seen_size = -1;
  bool is_done = false;
};

// Returns why the rank cannot be asked; empty: it was.
std::string trigger(const std::string& path) {
  const UniqueFd pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!pipe) {
    if (errno == ENXIO) return "nobody reads its pipe " + printable(path);
    if (errno == ENOENT) return "it has no pipe " + printable(path);
    return format("its pipe {} cannot be opened: {}", printable(path), errno_text(errno));
  }
  struct stat about {};
  if (fstat(pipe.get(), &about) != 0 || !S_ISFIFO(about.st_mode)) return printable(path) + " is no pipe";
  if (write(pipe.get(), "1", 1) != 1)
    return format("its pipe {} takes nothing: {}", printable(path), errno_text(errno));
  return {};
}

std::optional<std::string> content_of(int file, off_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t count = read(file, text.data() + have, text.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  text.resize(have);
  return text;
}

// Reads a file that has changed since the last look. Whether it is a whole dump says is_done.
void look_at(const std::string& path, Asked& asked) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return;
  const std::int64_t written_ns = ns_of(about.st_mtim);
  if (written_ns < asked.not_before_ns || (written_ns == asked.seen_ns && about.st_size == asked.seen_size)) return;
  asked.seen_ns = written_ns;
  asked.seen_size = about.st_size;
  if (about.st_size > static_cast<off_t>(kMostDumpBytes)) {
    asked.recorder.why_not = {Source::kRefused, format("its dump has more than {} MiB", kMostDumpBytes >> 20)};
    asked.is_done = true;
    return;
  }
  auto text = content_of(file.get(), about.st_size);
  if (!text) return;
  const bool is_json = text->starts_with('{');
  auto dump = is_json ? flight_facts_of_json(*text) : flight_facts_of_pickle(std::move(*text));
  if (!dump) {
    asked.recorder.dump.reset();
    asked.recorder.why_not = {Source::kLost, dump.error().reason};
    return;
  }
  asked.is_done = !dump->is_cut;
  asked.recorder.dump = std::move(*dump);
}

void look_at(const hang::RecorderPlaces& places, Asked& asked) {
  for (const std::string& prefix : places.files) {
    if (!asked.is_done) look_at(format("{}{}", prefix, asked.recorder.rank), asked);
  }
}

// What its control server says is newer than any file.
void hear(Asked& asked) {
  if (asked.has_answered) return;
  asked.control->go_on();
  if (asked.control->is_waited_for()) return;
  asked.has_answered = true;
  hang::RankRecorder said = asked.control->said();
  asked.no_answer = std::move(said.why_not);
  if (!said.dump) return;
  asked.recorder.dump = std::move(said.dump);
  asked.is_done = true;
}

// Why there is no dump, by all ways that were tried.
SourceFacts reason_of(const SourceFacts& first, const SourceFacts& second) {
  if (first.state == Source::kNotAsked) return second;
  if (second.state == Source::kNotAsked) return first;
  return {std::max(first.state, second.state), format("{}; {}", first.why, second.why)};
}

// When the round began, by the clock of files.
std::int64_t round_began_ns(const hang::EvidenceTask& task) {
  const std::int64_t age_ns = std::max<std::int64_t>(now_ns(CLOCK_MONOTONIC_RAW) - task.round_began_us * 1000, 0);
  return now_ns(CLOCK_REALTIME) - age_ns;
}

std::vector<Asked> ask_all(const hang::EvidenceTask& task, const hang::RecorderPlaces& places) {
  const std::int64_t now = now_ns(CLOCK_REALTIME);
  const std::int64_t began_ns = round_began_ns(task);
  std::vector<Asked> all;
  for (const hang::EvidenceTask::Worker& worker : task.workers) {
    Asked& asked = all.emplace_back();
    asked.recorder.rank = worker.rank;
    asked.not_before_ns = began_ns;
    if (!places.pipe) continue;
    const std::string why = trigger(format("{}{}.pipe", *places.pipe, worker.rank));
    asked.was_triggered = why.empty();
    asked.recorder.why_not = {Source::kRefused, why};
    if (why.empty()) asked.not_before_ns = now - kTickNs;
  }
  // The environment of a worker may be locked by one that waits uninterruptibly: the pipes have been written to before.
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].control = std::make_unique<ControlSocket>(task.workers[i], places.control);
  }
  return all;
}

// Those that have been asked by now, until `patience_ms` are over, and for `least_ms` at least.
std::vector<hang::RankRecorder> read_all(std::vector<Asked> all, const hang::RecorderPlaces& places,
                                         std::int64_t patience_ms, std::int64_t least_ms,
                                         const std::function<Status()>& before_reading) {
  const Status may_read = before_reading ? before_reading() : Status();
  const health::Deadline deadline(patience_ms);
  const health::Deadline least(least_ms);
  while (may_read) {
    const bool is_over = deadline.has_passed();
    bool is_waiting = !least.has_passed();
    for (Asked& asked : all) {
      if (is_over && asked.control) asked.control->give_up(deadline.span());
      hear(asked);
      if (asked.has_answered) look_at(places, asked);
      is_waiting = is_waiting || !asked.has_answered || (asked.was_triggered && !asked.is_done);
    }
    if (!is_waiting || is_over) break;
    std::this_thread::sleep_for(kBetweenTries);
  }
  std::vector<hang::RankRecorder> recorders;
  for (Asked& asked : all) {
    const bool is_silent = asked.was_triggered && asked.seen_size < 0;
    if (is_silent) asked.recorder.why_not = {Source::kLate, "it has written no dump within " + deadline.span()};
    asked.recorder.why_not = reason_of(asked.recorder.why_not, asked.no_answer);
    if (!may_read) asked.recorder.why_not = {Source::kRefused, may_read.error().text()};
    recorders.push_back(std::move(asked.recorder));
  }
  return recorders;
}

hang::EvidenceAnswer answer_of(const std::vector<hang::RankRecorder>& recorders, std::int32_t world_size) {
  hang::EvidenceAnswer answer;
  answer.facts = hang::recorder_facts_of(recorders, world_size);
  answer.lines = hang::recorder_lines(recorders);
  return answer;
}

}  // namespace

std::vector<hang::RankRecorder> read_recorders(const hang::EvidenceTask& task, const hang::RecorderPlaces& places,
                                               std::int64_t patience_ms,
                                               const std::function<Status()>& before_reading) {
  return read_all(ask_all(task, places), places, patience_ms, 0, before_reading);
}

std::vector<hang::RankRecorder> await_dumps(const hang::EvidenceTask& task, const hang::RecorderPlaces& places,
                                            std::int64_t patience_ms, std::int64_t least_ms,
                                            const std::function<Status()>& before_reading) {
  std::vector<Asked> all;
  for (const hang::EvidenceTask::Worker& worker : task.workers) {
    Asked& asked = all.emplace_back();
    asked.recorder.rank = worker.rank;
    asked.not_before_ns = round_began_ns(task);
    asked.has_answered = true;
    asked.was_triggered = true;
  }
  return read_all(std::move(all), places, patience_ms, least_ms, before_reading);
}

hang::EvidenceAnswer ask_recorders(const hang::EvidenceTask& task, const Environment& environment,
                                   const std::function<Status()>& before_reading) {
  return answer_of(read_recorders(task, hang::recorder_places(environment), kPatienceMs, before_reading),
                   task.world_size);
}

hang::EvidenceAnswer await_recorders(const hang::EvidenceTask& task, const Environment& environment,
                                     const std::function<Status()>& before_reading) {
  return answer_of(
      await_dumps(task, hang::recorder_places(environment), kDumpsPatienceMs, task.least_ms, before_reading),
      task.world_size);
}

}  // namespace elastic::evidence
