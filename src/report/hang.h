#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields.h"
#include "src/base/result.h"

// What was told of a job that made no progress, as every node keeps it: hang.json and the member `hang` of failure.json
// (docs/hangs.md). hang::hang_json() makes it of a verdict where the coordinator is. It reaches the nodes as a text,
// which may be anything. Times are seconds, as they stand in JSON.
namespace elastic::report {

// The version of hang.json. New members may come without a new version.
inline constexpr int kHangJsonVersion = 1;
// The longest text that hang_of() reads.
inline constexpr std::size_t kHangTextBytes = 1024 * 1024;
// Of a report: culprits, groups of ranks, and the frames of a stack.
inline constexpr std::size_t kHangCulprits = 64;
inline constexpr std::size_t kHangGroups = 64;
inline constexpr std::size_t kHangFrames = 64;

struct HangFrame {
  std::string function = {};
  std::string file = {};
  int line = 0;
  bool operator==(const HangFrame&) const = default;
  static void fields(auto& io, auto& v) { each(io, "function", v.function, "file", v.file, "line", v.line); }
};
using HangStack = std::vector<HangFrame>;  // the innermost first

// Ranks that stand at the same place.
struct HangGroup {
  std::string ranks = {};  // "0-4,6-7"
  std::int64_t count = 0;
  bool is_odd = false;                    // to be looked at first
  std::string state = "unknown";          // "run", "sleep", "disk", "stopped", "gone"
  std::optional<std::string> wchan = {};  // the kernel's function that the first of them waits in
  std::optional<std::string> op = {};     // the collective that they are in
  std::optional<std::int64_t> seq = {};   // the number of that in its group
  std::optional<HangStack> stack = {};
  std::optional<HangStack> child_stack = {};  // of a child process that is unlike its siblings
  bool operator==(const HangGroup&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "ranks", v.ranks, "count", v.count, "odd", v.is_odd, "state", v.state, "wchan", v.wchan);
    each(io, "op", v.op, "seq", v.seq);
    io("stack", v.stack, at_most(kHangFrames));
    io("child_stack", v.child_stack, at_most(kHangFrames));
  }
};

struct HangCulprit {
  std::optional<int> rank = {};  // not set: the node as a whole
  std::string node = {};
  std::optional<std::int64_t> pid = {};
  std::string why = {};  // a clause with the rank or the node as its subject
  bool operator==(const HangCulprit&) const = default;
  static void fields(auto& io, auto& v) { each(io, "rank", v.rank, "node", v.node, "pid", v.pid, "why", v.why); }
};

struct HangRule {
  int rule = 0;
  std::string name = {};
  bool operator==(const HangRule&) const = default;
  static void fields(auto& io, auto& v) { each(io, "rule", v.rule, "name", v.name); }
};

// How far each source of evidence has come, the worst of all nodes: "ok", "off", "refused", "late", ...
struct HangSources {
  std::string stacks = "off";
  std::string ras = "off";
  std::string fr = "off";
  std::string nvml = "off";
  std::string links = "off";
  std::string store = "off";
  bool operator==(const HangSources&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "stacks", v.stacks, "ras", v.ras, "fr", v.fr, "nvml", v.nvml, "links", v.links);
    io("store", v.store);
  }
};

// What became of a hang.
enum class HangEnd : std::uint8_t {
  kOpen,       // nothing yet: there is no progress
  kRecovered,  // progress has come
  kEnded,      // its round has ended without, and another one has begun
};
constexpr auto names_of(HangEnd) { return std::array{"open", "recovered", "ended"}; }

struct Hang {
  // Added by the node that keeps the hang.
  std::int64_t round = 0;
  std::int64_t wall_ms = 0;  // when it was told: Unix time in ms by the node's clock; 0: not known
  HangEnd end = HangEnd::kOpen;
  std::optional<double> recovered_after_s = {};  // how long there was no progress in all
  // The verdict and what led to it.
  double silent_s = 0;  // without progress until the verdict
  double limit_s = 0;
  std::string limit_from = "none";
  std::optional<std::string> section = {};  // of --progress-sections, whose limit it is
  std::optional<int> section_rank = {};     // the rank that is in it, and has been silent the longest
  std::string phase = "unknown";
  double longest_gap_s = 0;  // before; 0: none was seen
  HangRule verdict = {};
  std::string fault = "none";  // "none", "script", "soft", "hard"
  std::string cause = {};      // a clause
  std::optional<std::string> others = {};
  std::optional<std::string> remedy = {};
  std::vector<HangCulprit> culprits = {};
  std::vector<HangGroup> groups = {};  // those to look at first, then the smallest
  std::int64_t groups_left_out = 0;
  std::string without_evidence = {};  // ranks of which nothing is known
  HangSources sources = {};
  std::optional<std::string> last_line = {};  // the last line that was progress, and its rank
  std::optional<int> last_rank = {};
  std::optional<std::string> evidence = {};  // the directory with the files, on the node that keeps this
  std::optional<std::string> action = {};    // what is done about it
  bool operator==(const Hang&) const = default;
  static void fields(auto& io, auto& v) {
    io("round", v.round);
    io("wall_ms", v.wall_ms, Bounds{0, 253'402'300'799'999});
    each(io, "state", v.end, "recovered_after_s", v.recovered_after_s);
    each(io, "silent_s", v.silent_s, "limit_s", v.limit_s, "limit_from", v.limit_from, "phase", v.phase);
    each(io, "section", v.section, "section_rank", v.section_rank);
    each(io, "longest_gap_s", v.longest_gap_s, "verdict", v.verdict, "fault", v.fault, "cause", v.cause);
    each(io, "others", v.others, "remedy", v.remedy);
    io("culprits", v.culprits, at_most(kHangCulprits));
    io("groups", v.groups, at_most(kHangGroups));
    each(io, "groups_left_out", v.groups_left_out, "without_evidence", v.without_evidence, "sources", v.sources);
    each(io, "last_line", v.last_line, "last_rank", v.last_rank, "evidence", v.evidence, "action", v.action);
  }
};

// Seconds as they stand in a report, in milliseconds: no less than 0, and no more than a year has.
std::int64_t ms_of(double seconds);

// Reads what hang::hang_json() has made, from any sender: a member that is missing or wrong has its initial value, and
// texts are printable. Fails on a text that is longer than kHangTextBytes or is no JSON object.
Result<Hang> hang_of(std::string_view text);

// The content of hang.json: an object with the version, the job's id and the report as its member `hang`, with a line
// end at its end.
std::string hang_json(const Hang& hang, std::string_view run_id);

}  // namespace elastic::report
