#include "src/report/likely_cause.h"

#include <csignal>

#include "src/base/program_name.h"
#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/cause_rules.h"
#include "src/report/python_traceback.h"
#include "src/report/xid.h"

namespace elastic::report {
namespace {

// A text that is searched, and its name.
struct Place {
  std::string_view text;
  std::string_view name;
};

std::string_view line_around(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

// Quotes up to kEvidenceBytes of one line; of a long line the part that begins a little before `needle`.
std::string quote(std::string_view line, std::string_view needle) {
  constexpr std::size_t kBefore = 80;
  std::string shown = screen_text(trim(line));
  std::size_t at = shown.find(needle);
  if (at == std::string::npos) at = 0;
  if (shown.size() > kEvidenceBytes && at > kBefore) {
    std::size_t cut = at - kBefore;
    while (cut < at && (static_cast<unsigned char>(shown[cut]) & 0xC0) == 0x80) ++cut;
    shown = "..." + shown.substr(cut);
  }
  return printable(shown, kEvidenceBytes);
}

// Returns the rest of the line behind `mark`, or the next line if that is empty.
std::string_view behind(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  return trim(line_around(trim(text.substr(at + mark.size())), 0));
}

struct Found {
  std::size_t at;
  std::string_view needle;
};

// Finds the last line with the first of the rule's needles that the text contains.
std::optional<Found> find_last(const CauseRule& rule, std::string_view text) {
  for (const Needle& needle : rule.needles) {
    // This is much faster than rfind(), and most needles are not found.
    if (!text.contains(needle.text)) continue;
    for (std::size_t from = text.size();;) {
      const std::size_t at = text.rfind(needle.text, from);
      if (at == std::string_view::npos) break;
      const std::string_view line = line_around(text, at);
      if (needle.also.empty() || line.contains(needle.also)) return Found{at, needle.text};
      // This line does not match: continue with the line before it.
      if (line.data() == text.data()) break;
      from = static_cast<std::size_t>(line.data() - text.data()) - 1;
    }
  }
  return {};
}

std::optional<Cause> apply(const CauseRule& rule, const Place& place) {
  const auto found = find_last(rule, place.text);
  if (!found) return {};
  Cause cause{.rule = rule.name,
              .sentence = std::string(rule.sentence),
              .evidence = quote(line_around(place.text, found->at), found->needle),
              .source = std::string(place.name),
              .lost_peer = rule.lost_peer};
  if (!rule.detail_behind.empty()) {
    const std::string_view detail = behind(place.text.substr(found->at), rule.detail_behind);
    if (!detail.empty()) {
      cause.evidence = printable(cause.evidence, kEvidenceBytes / 2) + " / " +
                       printable(screen_text(detail), kEvidenceBytes / 2 - 6);
    }
  }
  return cause;
}

Cause of_xid(const Xid& xid) {
  const std::string_view remedy =
      xid.weight == XidWeight::kHardware ? "; remove the node until the GPU has been checked" : "";
  return Cause{.rule = "gpu-xid",
               .sentence = format("Xid {}: {}{}", xid.number, xid.meaning, remedy),
               .evidence = quote(xid.line, "NVRM"),
               .source = "kernel log"};
}

// Finds causes that the worker's output does not show: it was killed for memory, or its hardware has failed.
std::optional<Cause> from_kernel(const FailedWorker& worker) {
  const std::string_view oom = worker.oom_evidence;
  if (!oom.empty()) {
    const bool in_log = oom.contains("Out of memory") || oom.contains("out of memory") || oom.contains("oom-kill:");
    return Cause{
        .rule = "killed-for-memory",
        .sentence = format("the kernel killed {} because its host or container ran out of memory: give it more memory, "
                           "or let the job use less (data loader workers, checkpoints held in memory)",
                           worker.exit.signal != 0 ? "it" : "one of its processes"),
        .evidence = quote(oom, {}),
        .source = in_log ? "kernel log" : "cgroup"};
  }
  const auto xid = worst_xid(worker.kernel_log);
  if (xid && xid->weight == XidWeight::kHardware) return of_xid(*xid);
  return {};
}

// elastic-run itself has ended it, as the script had asked for.
Cause of_timer(const FailedWorker& worker) {
  const ExpiredTimer& timer = *worker.timer;
  const std::string place = timer_place(timer);
  return Cause{
      .rule = "timer-expired",
      .sentence = in_our_name(format("{} expired (file timer), and elastic-run sent {} {} {} later",
                                     timer_name(timer, worker.pid), timer.pid == worker.pid ? "it" : "that process",
                                     signal_name(timer.signal), span_text(timer.late_ms))),
      .evidence = place.empty() ? quote("not known: " + timer.problem, {}) : quote("at " + place, {}),
      .source = "Python stack"};
}

// Finds a cause by the exit status alone, where nothing else says anything.
std::optional<Cause> from_exit(const FailedWorker& worker) {
  const auto cause = [&](std::string_view rule, std::string_view sentence) {
    return Cause{
        .rule = rule, .sentence = std::string(sentence), .evidence = worker.exit.text(), .source = "exit status"};
  };
  switch (worker.exit.signal) {
    case SIGKILL:
      return cause("killed",
                   in_our_name("it was killed, but not by elastic-run: by the kernel for lack of memory (see dmesg), "
                               "by the container runtime, or by a person"));
    case SIGSEGV:
      return cause("segmentation-fault",
                   "it accessed invalid memory, most often because of a bug in an extension module; "
                   "set PYTHONFAULTHANDLER=1 to see where");
    case SIGBUS:
      return cause("bus-error",
                   "a bus error, most often a full /dev/shm or a file that was truncated while it was mapped");
    case SIGILL:
      return cause("illegal-instruction",
                   "the CPU does not support an instruction: the program or a library was built for a "
                   "newer CPU");
    case SIGFPE: return cause("arithmetic-error", "an arithmetic error outside Python, most often a division by zero");
    case SIGABRT: return cause("aborted", "the program or a library called abort(); the lines before say why");
    default: break;
  }
  if (worker.exit.signal == 0 && worker.exit.code == 126) {
    return cause("not-executable", "the program could not be executed (no permission, or not a program)");
  }
  if (worker.exit.signal == 0 && worker.exit.code == 127) {
    return cause("command-not-found", "a command was not found");
  }
  return {};
}

}  // namespace

std::optional<Cause> cause_in_output(const FailedWorker& worker) {
  const std::string plain = without_colours(worker.tail.bytes);
  const std::string_view tail = plain;
  const auto traceback = last_traceback(tail);
  std::string said;
  if (worker.error) said = worker.error->message + "\n" + worker.error->traceback;
  // A signal may end a worker at any moment; an exception that ends it is the last thing it prints.
  const bool by_exception = (worker.exit.signal == 0 || worker.error_came_first) && (traceback || worker.error);
  std::string_view end = tail;
  if (by_exception && traceback) end.remove_prefix(traceback->begin);
  if (by_exception && !traceback) end = {};
  for (const CauseRule& rule : cause_rules()) {
    if (auto cause = apply(rule, {said, "error.json"})) return cause;
    const std::string_view where = rule.where == CauseRule::Where::kAnywhere ? tail : end;
    if (auto cause = apply(rule, {where, "stderr"})) return cause;
  }
  return {};
}

std::optional<Cause> likely_cause(const FailedWorker& worker) {
  if (worker.stopped_by_us) return {};
  if (auto cause = from_kernel(worker)) return cause;
  if (worker.timer) return of_timer(worker);
  if (auto cause = cause_in_output(worker)) return cause;
  const auto xid = worst_xid(worker.kernel_log);
  if (xid && xid->weight != XidWeight::kConsequence) return of_xid(*xid);
  return from_exit(worker);
}

}  // namespace elastic::report
