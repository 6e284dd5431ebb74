#include "src/output/lines/stream_plan.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace elastic::output;
using Kind = StreamPlan::Kind;
using Ours = OurStreams::Kind;

namespace {

struct Case {
  OutputFlags flags;
  OurStreams ours;

  unsigned redirects() const { return flags.log_dir ? flags.redirects : 0; }
  unsigned tee() const { return flags.log_dir ? flags.tee : 0; }
  bool cut() const { return flags.log_dir && !flags.shown; }  // by --local-ranks-filter
  Ours kind(unsigned bit) const { return bit == kStdoutBit ? ours.out : ours.err; }
  bool filters(unsigned bit) const { return bit == kStdoutBit ? flags.filters_stdout : flags.filters_stderr; }
  bool logged(unsigned bit) const { return ((redirects() | tee()) & bit) != 0; }
  bool teed(unsigned bit) const { return (tee() & bit) != 0; }
  bool visible(unsigned bit) const { return !cut() && kind(bit) != Ours::kClosed; }
};

// Every combination of flags and of what our own descriptors can be.
std::vector<Case> all_cases() {
  std::vector<OurStreams> ours;
  const Ours kinds[] = {Ours::kClosed, Ours::kTerminal, Ours::kOther};
  for (const Ours out : kinds) {
    for (const Ours err : kinds) {
      for (const bool terminals : {false, true}) {
        ours.push_back({out, err, false, terminals});
        if (out == err && out != Ours::kClosed) ours.push_back({out, err, true, terminals});
      }
    }
  }
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 1u << 10; ++bits) {
    const OutputFlags flags{.redirects = bits & 3,
                            .tee = bits >> 2 & 3,
                            .shown = (bits & 16) != 0,
                            .filters_stdout = (bits & 32) != 0,
                            .filters_stderr = (bits & 64) != 0,
                            .log_dir = (bits & 128) != 0,
                            .stderr_tail = (bits & 256) != 0,
                            .rotated = (bits & 512) != 0};
    for (const OurStreams& each : ours) cases.push_back({flags, each});
  }
  return cases;
}

std::string describe(const Case& each) {
  const char* const kinds[] = {"closed", "terminal", "other"};
  return "-r" + std::to_string(each.flags.redirects) + " -t" + std::to_string(each.flags.tee) +
         (each.flags.shown ? "" : " cut") + (each.flags.filters_stdout ? " filter-out" : "") +
         (each.flags.filters_stderr ? " filter-err" : "") + (each.flags.log_dir ? "" : " no-log-dir") +
         (each.flags.stderr_tail ? "" : " tail=never") + (each.flags.rotated ? " rotated" : "") +
         " out=" + kinds[static_cast<int>(each.ours.out)] + " err=" + kinds[static_cast<int>(each.ours.err)] +
         (each.ours.same ? " same" : "") + (each.ours.can_make_terminals ? "" : " no-ptmx");
}

StreamPlan pipe(bool console, bool file, bool filtered, bool tail) {
  return {Kind::kPipe, console, file, filtered, tail, file};
}

// The plan of a stream that goes to its log file only: the worker writes it, unless the file is rotated.
StreamPlan file_only(const Case& each, unsigned bit) {
  if (!each.flags.rotated) return {.kind = Kind::kFile};
  return {.kind = Kind::kPipe, .to_file = true, .keeps_tail = bit == kStderrBit && each.flags.stderr_tail};
}

// The expected plan of one stream, by the first row that applies.
struct Row {
  const char* why;
  std::function<bool(const Case&, unsigned bit)> applies;
  std::function<StreamPlan(const Case&, unsigned bit)> expected;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"a redirect is the worker's own descriptor; the filters and the console are for --tee",
       [](const Case& c, unsigned bit) { return c.logged(bit) && !c.teed(bit); }, file_only},
      {"a rank that the filter cuts writes what it tees to its file only, and is not copied",
       [](const Case& c, unsigned bit) { return c.teed(bit) && c.cut(); }, file_only},
      {"with no console and no filtered file a tee is a redirect",
       [](const Case& c, unsigned bit) { return c.teed(bit) && !c.visible(bit) && !c.filters(bit); }, file_only},
      {"a tee is read by the launcher: console if there is one, file, filtered file; of stderr the "
       "tail",
       [](const Case& c, unsigned bit) { return c.teed(bit); },
       [](const Case& c, unsigned bit) {
         return pipe(c.visible(bit), true, c.filters(bit), bit == kStderrBit && c.flags.stderr_tail);
       }},
      {"stdout that nobody shows goes to /dev/null",
       [](const Case& c, unsigned bit) { return bit == kStdoutBit && !c.visible(bit); },
       [](const Case&, unsigned) { return StreamPlan{.kind = Kind::kNull}; }},
      {"stderr without a tail that nobody shows goes to /dev/null",
       [](const Case& c, unsigned bit) { return !c.flags.stderr_tail && !c.visible(bit); },
       [](const Case&, unsigned) { return StreamPlan{.kind = Kind::kNull}; }},
      {"stderr that nobody shows still says in the report why the rank failed",
       [](const Case& c, unsigned bit) { return !c.visible(bit); },
       [](const Case&, unsigned) { return pipe(false, false, false, true); }},
      {"stdout that shares the console with stderr shares its way, so that the order stays",
       [](const Case& c, unsigned bit) {
         return bit == kStdoutBit && c.ours.same && c.flags.stderr_tail && !c.logged(kStderrBit) &&
                (c.ours.out == Ours::kOther || c.ours.can_make_terminals);
       },
       [](const Case& c, unsigned) {
         return c.ours.out == Ours::kTerminal ? StreamPlan{Kind::kPty, true, false, false, true, false}
                                              : pipe(true, false, false, true);
       }},
      {"stdout is inherited otherwise", [](const Case&, unsigned bit) { return bit == kStdoutBit; },
       [](const Case&, unsigned) { return StreamPlan{.kind = Kind::kInherit}; }},
      {"stderr without a tail is inherited", [](const Case& c, unsigned) { return !c.flags.stderr_tail; },
       [](const Case&, unsigned) { return StreamPlan{.kind = Kind::kInherit}; }},
      {"where no pseudo-terminal can be made, a terminal is inherited",
       [](const Case& c, unsigned) { return c.ours.err == Ours::kTerminal && !c.ours.can_make_terminals; },
       [](const Case&, unsigned) { return StreamPlan{.kind = Kind::kInherit}; }},
      {"a terminal stays one for the worker", [](const Case& c, unsigned) { return c.ours.err == Ours::kTerminal; },
       [](const Case&, unsigned) { return StreamPlan{Kind::kPty, true, false, false, true, false}; }},
      {"stderr passes through the launcher, which keeps its end", [](const Case&, unsigned) { return true; },
       [](const Case&, unsigned) { return pipe(true, false, false, true); }},
  };
  return kRows;
}

void check_stream(const Case& each, unsigned bit, const StreamPlan& plan, std::vector<int>& uses) {
  for (std::size_t i = 0; i < rows().size(); ++i) {
    if (!rows()[i].applies(each, bit)) continue;
    ++uses[i];
    if (plan == rows()[i].expected(each, bit)) return;
    FAIL_CHECK(describe(each), bit == kStdoutBit ? ": stdout: " : ": stderr: ", rows()[i].why, ", not kind ",
               static_cast<int>(plan.kind));
    return;
  }
}

TailSource expected_tail(const Case& each, const StreamPlan& err) {
  if (!each.flags.stderr_tail) return TailSource::kNone;
  if (err.kind == Kind::kFile) return TailSource::kFile;
  return err.kind == Kind::kInherit ? TailSource::kUnavailable : TailSource::kKept;
}

}  // namespace

TEST_CASE("each stream is what the flags and our own descriptors make it, in every combination") {
  std::vector<int> uses(rows().size());
  for (const Case& each : all_cases()) {
    const RankStreams plan = plan_streams(each.flags, each.ours);
    check_stream(each, kStdoutBit, plan.out, uses);
    check_stream(each, kStderrBit, plan.err, uses);
    if (plan.tail != expected_tail(each, plan.err)) {
      FAIL_CHECK(describe(each), ": wrong source of the tail");
    }
    const bool one_way = plan.out.kind != Kind::kInherit && plan.out.keeps_tail;
    if (plan.shared != one_way) FAIL_CHECK(describe(each), ": shared is ", plan.shared);
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    CAPTURE(rows()[i].why);
    CHECK(uses[i] > 0);
  }
}

TEST_CASE("by default on one terminal both streams pass through one pseudo-terminal") {
  const RankStreams plan = plan_streams({}, {.out = Ours::kTerminal, .err = Ours::kTerminal, .same = true});
  CHECK(plan.shared);
  CHECK(plan.out.kind == Kind::kPty);
  CHECK(plan.err == plan.out);
  CHECK(plan.tail == TailSource::kKept);
}

TEST_CASE("by default with stdout in a pipe of its own only stderr passes through the launcher") {
  const RankStreams plan = plan_streams({}, {.out = Ours::kOther, .err = Ours::kTerminal});
  CHECK(plan.out.kind == Kind::kInherit);
  CHECK(plan.err.kind == Kind::kPty);
  CHECK_FALSE(plan.shared);
}

TEST_CASE("--stderr-tail=never leaves both streams alone") {
  const RankStreams plan = plan_streams({.stderr_tail = false}, {.same = true});
  CHECK(plan.out.kind == Kind::kInherit);
  CHECK(plan.err.kind == Kind::kInherit);
  CHECK_FALSE(plan.shared);
  CHECK(plan.tail == TailSource::kNone);
}

TEST_CASE("a redirect whose file is rotated passes through the launcher, which then keeps the end of stderr") {
  const RankStreams plan = plan_streams({.redirects = 3, .rotated = true}, {});
  CHECK(plan.out == StreamPlan{.kind = Kind::kPipe, .to_file = true});
  CHECK(plan.err == StreamPlan{.kind = Kind::kPipe, .to_file = true, .keeps_tail = true});
  CHECK(plan.tail == TailSource::kKept);
}

TEST_CASE("--log-dir=/dev/null switches redirects, tee and the ranks filter off") {
  const OutputFlags flags{.redirects = 3, .tee = 3, .shown = false, .filters_stdout = true, .log_dir = false};
  const RankStreams plan = plan_streams(flags, {});
  CHECK(plan.out.kind == Kind::kInherit);
  CHECK(plan.err == pipe(true, false, false, true));
}
