#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "health/tuning/paral_config.h"
#include "src/base/fields.h"
#include "src/base/limits.h"

// What the nodes of a job tell each other about their data loaders: the node of group rank 0, which decides, which
// values it has chosen, and the others how they are. The coordinator relays it unread (docs/agent-protocol.md).
namespace elastic::tuning {

// One value of the loaders.
struct ChosenValue {
  std::int64_t start = 0;  // what the loader began with
  std::int64_t kept = 0;   // what holds
  std::int64_t now = 0;    // the same, or what is being tried
  bool operator==(const ChosenValue&) const = default;
  static void fields(auto& io, auto& v) { each(io, "start", v.start, "kept", v.kept, "now", v.now); }
};

// Another node may have told it.
constexpr bool is_sound(const ChosenValue& value) {
  return 0 <= value.start && value.start <= value.kept && value.start <= value.now && value.kept <= kMostSaid &&
         value.now <= kMostSaid;
}

// Those of a job. Both are missing until a loader has said them.
struct ChosenValues {
  std::int64_t version = 0;  // of the file with them, on the node that has chosen them
  std::optional<ChosenValue> workers = {};
  std::optional<ChosenValue> batch = {};
  bool are_there() const { return workers || batch; }
  bool are_sound() const { return (!workers || is_sound(*workers)) && (!batch || is_sound(*batch)); }
  bool operator==(const ChosenValues&) const = default;
  static void fields(auto& io, auto& v) { each(io, "version", v.version, "workers", v.workers, "batch", v.batch); }
};

// One of the nodes that do not decide.
struct NodeState {
  std::optional<std::int64_t> free_bytes = {};  // of its memory; nothing: it cannot be read
  int cpus = 1;                                 // that a rank may use
  std::int64_t version = 0;                     // of the last ChosenValues that a worker of the node has read
  bool operator==(const NodeState&) const = default;
  static void fields(auto& io, auto& v) { each(io, "free_bytes", v.free_bytes, "cpus", v.cpus, "version", v.version); }
};

// A rank of the node has failed by itself.
struct RankFailed {
  std::string memory = {};  // the rule by which it has died of memory; empty: it has not
  bool operator==(const RankFailed&) const = default;
  static void fields(auto& io, auto& v) { io("memory", v.memory, at_most(limits::kAgentNameBytes)); }
};

struct LoaderWord {
  std::optional<ChosenValues> values = {};
  std::optional<NodeState> node = {};
  std::optional<RankFailed> failed = {};
  bool operator==(const LoaderWord&) const = default;
  static void fields(auto& io, auto& v) { each(io, "values", v.values, "node", v.node, "failed", v.failed); }
};

}  // namespace elastic::tuning
