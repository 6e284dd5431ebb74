#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/hang/bounds.h"
#include "health/hang/rank_runs.h"
#include "src/base/fields.h"

// What is known of a job that makes no progress: the facts of all its nodes, as plain values. Who reads them, and in
// which bytes they travel, is no concern of this room. Ranks are global. Everything may be missing: evidence is lost in
// exactly the jobs that hang, and what is not known must not look like what is known.
namespace elastic::hang {

// By what a rank has shown progress last.
enum class BeatKind : std::uint8_t {
  kNone,        // by nothing yet
  kStepLine,    // a line of its output with a number that rises
  kWord,        // the script's own word: ELASTIC_RUN_PROGRESS, a heartbeat, a section, a metrics file
  kRasCounts,   // NCCL RAS has counted further collectives
  kCollective,  // the flight recorder has
};
constexpr auto names_of(BeatKind) { return std::array{"none", "step line", "script", "RAS", "flight recorder"}; }

// What a script does, as far as it has said so.
enum class Phase : std::uint8_t { kUnknown, kSetup, kTrain, kEvaluate, kCheckpoint };
constexpr auto names_of(Phase) { return std::array{"unknown", "setup", "train", "eval", "checkpoint"}; }

// What the main thread of a rank does, by /proc/PID/stat.
enum class ThreadState : std::uint8_t {
  kUnknown,
  kRuns,     // R
  kSleeps,   // S, I
  kDisk,     // D: nothing but the kernel can end its wait
  kStopped,  // T, t
  kGone,     // Z, X, or no such process
};
constexpr auto names_of(ThreadState) { return std::array{"unknown", "run", "sleep", "disk", "stopped", "gone"}; }

// How far a source of evidence has come on a node.
enum class Source : std::uint8_t {
  kNotAsked,  // it is off, or this node has none of it
  kHad,
  kPartial,  // it has answered, and some of what it could say is not there
  kRefused,  // SourceFacts::why says by what: Yama, no such port
  kLate,     // it had not answered at its deadline
  kLost,     // it cannot be used any more
};
constexpr auto names_of(Source) { return std::array{"off", "ok", "partial", "refused", "late", "lost"}; }

struct SourceFacts {
  Source state = Source::kNotAsked;
  std::string why = {};  // a clause; may be empty
  bool operator==(const SourceFacts&) const = default;
  static void fields(auto& io, auto& v) {
    io("state", v.state);
    io("why", v.why, at_most(bounds::kReasonBytes));
  }
};

struct Frame {
  std::string function = {};
  std::string file = {};
  std::int32_t line = 0;
  bool operator==(const Frame&) const = default;
  static void fields(auto& io, auto& v) {
    io("function", v.function, at_most(bounds::kNameBytes));
    io("file", v.file, at_most(bounds::kNameBytes));
    io("line", v.line);
  }
};

// The innermost frames, the innermost first.
struct Stack {
  std::vector<Frame> frames = {};
  bool operator==(const Stack&) const = default;
  static void fields(auto& io, auto& v) { io("frames", v.frames, at_most(bounds::kFrames)); }
};

// One worker, by its node. A stack is a place in the node's list of different ones.
struct RankFacts {
  std::int32_t rank = 0;
  BeatKind beat = BeatKind::kNone;
  std::int64_t beat_age_ms = 0;  // without a beat: since the round began
  std::int64_t pid = 0;          // 0: unknown
  ThreadState state = ThreadState::kUnknown;
  std::int64_t state_ms = 0;                      // for how long it has been seen in this state at least
  std::string wchan = {};                         // the kernel's function that it waits in; empty: none, or unknown
  std::int32_t cpu_percent = -1;                  // of one core, of the main thread; -1: unknown
  std::optional<std::uint16_t> stack = {};        // of the main thread
  std::optional<std::uint16_t> stack_then = {};   // the same, at least 2 s earlier
  std::optional<std::uint16_t> child_stack = {};  // of a child whose stack is unlike those of its siblings
  SourceFacts recorder = {};                      // the flight recorder of this rank
  std::optional<double> gpu_watts = {};
  std::uint32_t gpu_model = 0;  // digest_of() its name; 0: unknown
  // A thread of PyTorch looks for /exception_dump in the worker store, and dumps the flight recorder when it is there.
  bool reads_dump_key = false;
  bool operator==(const RankFacts&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "rank", v.rank, "beat", v.beat, "beat_age_ms", v.beat_age_ms, "pid", v.pid);
    each(io, "state", v.state, "state_ms", v.state_ms);
    io("wchan", v.wchan, at_most(bounds::kNameBytes));
    each(io, "cpu_percent", v.cpu_percent, "stack", v.stack, "stack_then", v.stack_then);
    each(io, "child_stack", v.child_stack, "recorder", v.recorder, "gpu_watts", v.gpu_watts);
    each(io, "gpu_model", v.gpu_model, "reads_dump_key", v.reads_dump_key);
  }
};

// Ranks that communicate: a process group of torch, or a communicator of NCCL. Equal names, digests and sizes, on
// whatever nodes, are the same group; its members are those that any of them names. So a node need not name the
// thousand members that are not its own.
struct Group {
  std::string name = {};
  RankRuns members = {};     // some of them: its node's own at least
  std::uint32_t digest = 0;  // of the list of all members
  std::int32_t size = 0;     // how many there are; 0: no more than are named
  // There may be members that nobody names, and nobody knows how many: gloo's groups do not tell. Such a group is the
  // same on whatever nodes where the name is, which torch gives to one group only.
  bool is_open = false;
  bool operator==(const Group&) const = default;
  static void fields(auto& io, auto& v) {
    io("name", v.name, at_most(bounds::kNameBytes));
    each(io, "members", v.members, "digest", v.digest, "size", v.size, "open", v.is_open);
  }
};

// How far these ranks, all equal, are in a group.
struct GroupFact {
  std::uint32_t group = 0;  // its place in the list beside this one
  RankRuns ranks = {};
  std::int64_t enqueued = 0;                 // the number of the newest collective that was launched
  std::optional<std::int64_t> retired = {};  // the number of the newest one that is over; RAS does not know it
  std::string operation = {};                // the newest collective, or the newest send or recv; empty: unknown
  std::uint32_t digest = 0;                  // of its sizes and types, or of RAS's counts by type; 0: unknown
  std::optional<std::int32_t> partner = {};  // of a send or recv that is not over: the other rank
  bool operator==(const GroupFact&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "group", v.group, "ranks", v.ranks, "enqueued", v.enqueued, "retired", v.retired);
    io("operation", v.operation, at_most(bounds::kNameBytes));
    each(io, "digest", v.digest, "partner", v.partner);
  }
};

// What NCCL RAS says of the whole job; one node asks it. Only what two samples have in common is here.
struct RasFacts {
  std::vector<Group> groups = {};
  std::vector<GroupFact> counts = {};  // collectives launched, of all types
  RankRuns missing = {};               // ranks that do not respond, or are considered dead
  bool operator==(const RasFacts&) const = default;
  static void fields(auto& io, auto& v) {
    io("groups", v.groups, at_most(bounds::kGroups));
    io("counts", v.counts, at_most(bounds::kGroupFacts));
    io("missing", v.missing);
  }
};

// A key that is not in the workers' store, and who waits for it there.
struct StoreWait {
  std::string key = {};
  RankRuns ranks = {};       // those whose connection is known: they run on the store's node
  std::int32_t clients = 0;  // all of them
  bool operator==(const StoreWait&) const = default;
  static void fields(auto& io, auto& v) {
    io("key", v.key, at_most(bounds::kNameBytes));
    each(io, "ranks", v.ranks, "clients", v.clients);
  }
};

// What the workers' store says of the whole job; its node sends it.
struct StoreFacts {
  RankRuns absent = {};               // ranks without the key that each rank sets when it joins
  RankRuns waiting = {};              // ranks that wait for such a key
  std::vector<StoreWait> waits = {};  // all keys that are waited for, those with the most clients first
  bool operator==(const StoreFacts&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "absent", v.absent, "waiting", v.waiting);
    io("waits", v.waits, at_most(bounds::kStoreWaits));
  }
};

// A port of InfiniBand or RoCE that is to be looked at.
struct LinkFault {
  std::string port = {};   // "port 1 of mlx5_0"
  std::string fault = {};  // what follows in a sentence: "is DOWN (Polling)"
  bool operator==(const LinkFault&) const = default;
  static void fields(auto& io, auto& v) {
    io("port", v.port, at_most(bounds::kNameBytes));
    io("fault", v.fault, at_most(bounds::kReasonBytes));
  }
};

struct NodeFacts {
  std::string name = {};
  RankRuns own_ranks = {};    // known of a node that does not answer, too
  bool has_answered = false;  // in time. Without it what follows, but `lost`, is empty
  std::string lost = {};      // why its session is lost or its lease over, as a clause; empty: neither
  SourceFacts stacks = {};
  SourceFacts ras_source = {};
  SourceFacts nvml = {};  // kLate: over its deadline. kLost: a GPU has gone
  SourceFacts store_source = {};
  std::optional<std::int32_t> xid = {};  // since the round began, of the GPU or its driver and not of a program
  bool storage_hangs = false;            // a process of its workers is in D in a network file system
  std::vector<Stack> different_stacks = {};
  std::vector<RankFacts> ranks = {};
  std::vector<Group> groups = {};
  std::vector<GroupFact> group_facts = {};  // by the flight recorders of its ranks
  std::optional<RasFacts> ras = {};
  std::optional<StoreFacts> store = {};
  SourceFacts links = {};  // the ports of InfiniBand and RoCE
  std::vector<LinkFault> link_faults = {};
  bool operator==(const NodeFacts&) const = default;
  static void fields(auto& io, auto& v) {
    io("name", v.name, at_most(bounds::kNameBytes));
    each(io, "own_ranks", v.own_ranks, "has_answered", v.has_answered);
    io("lost", v.lost, at_most(bounds::kReasonBytes));
    each(io, "stacks", v.stacks, "ras_source", v.ras_source, "nvml", v.nvml, "store_source", v.store_source);
    each(io, "xid", v.xid, "storage_hangs", v.storage_hangs);
    io("different_stacks", v.different_stacks, at_most(bounds::kStacks));
    io("ranks", v.ranks, at_most(bounds::kRanks));
    io("groups", v.groups, at_most(bounds::kGroups));
    io("group_facts", v.group_facts, at_most(bounds::kGroupFacts));
    each(io, "ras", v.ras, "store", v.store, "links", v.links);
    io("link_faults", v.link_faults, at_most(bounds::kLinkFaults));
  }
};

// Of a round, with all its nodes.
struct JobFacts {
  std::int32_t world_size = 0;
  std::vector<NodeFacts> nodes = {};
  bool operator==(const JobFacts&) const = default;
};

// The facts as they may be used: texts are printable and cut, lists have their bounds, a place in a list is in it, a
// rank is one of this world, and the ranks of a node are its own, each once. What is not so is left out, as if it had
// not been sent. Of a rank's facts about groups all are left out where one of them is: half of them would mislead.
NodeFacts within_bounds(NodeFacts facts, std::int32_t world_size);

// A number that equal sizes and types have in common, for GroupFact::digest; never 0.
std::uint32_t digest_of(std::string_view sizes_and_types);

// Flight recorders that nobody could ask, and that can be had all the same when a hang ends its round: by the key
// /exception_dump in the worker store. PyTorch's NCCL engine of up to torch 2.14 looks for it every second, dumps, and
// ends the process some minutes later, so that the key is for rounds that are over.

// The recorder of this rank was not had, and can be by the key.
bool can_still_dump(const RankFacts& rank);
// The key is worth being set: a rank can still dump, and a node of ours has the worker store.
bool want_dump_key(const JobFacts& facts);

}  // namespace elastic::hang
