#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "rendezvous/coordinator/recording.h"
#include "src/base/limits.h"
#include "src/base/text.h"

// Names and bounds of every member that a recording has. One list serves the writer and the reader, which are the
// archives of recording.cpp.
namespace elastic::coordinator::recorded {

using namespace protocol;

// The range of a whole number. Numbers that a coordinator checks itself have the range of their type, since it may have
// received any. Those that it calculates with unchecked have a smaller one, so that no recording makes it overflow.
struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
template <class T>
inline constexpr Bounds kAny = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
inline constexpr Bounds kMs = {0, 1LL << 53};
inline constexpr Bounds kSignedMs = {-(1LL << 53), 1LL << 53};
inline constexpr Bounds kRoundNodes = {0, static_cast<std::int64_t>(limits::kNodesPerJob)};
inline constexpr Bounds kCount = {0, limits::kMaxRestarts};
inline constexpr Bounds kClaims = {0, std::numeric_limits<int>::max() - 1};

// --- Names, in the order of their values. --------------------------------------------------------------

template <class Enum>
struct Names;
template <>
struct Names<FailureKind> {
  static constexpr std::array kWords = {"killed", "traceback", "other", "communication"};
};
template <>
struct Names<Outcome> {
  static constexpr const auto& kWords = kOutcomeNames;
};
template <>
struct Names<JobRules::ScaleUp> {
  static constexpr std::array kWords = {"now", "after", "on-restart", "never"};
};
template <>
struct Names<JobRules::CrashLoop> {
  static constexpr std::array kWords = {"stop", "restart"};
};
template <>
struct Names<Crash::Kind> {
  static constexpr std::array kWords = {"import", "syntax", "missing-file"};
};
template <>
struct Names<CheckRules::When> {
  static constexpr std::array kWords = {"never", "first", "suspect", "always"};
};
template <>
struct Names<CheckPlan::Unfit::Kind> {
  static constexpr std::array kWords = {"faulty", "undetermined", "straggler", "link"};
};
template <>
struct Names<AgentFacts::Activity> {
  static constexpr std::array kWords = {"idle", "preparing", "running", "succeeded", "stopping"};
};
// The names of a variant's alternatives.
template <>
struct Names<Event> {
  static constexpr std::array kWords = {"said", "heard", "session-ended", "introduced", "node-emptied", "time-passed"};
};
template <>
struct Names<AgentMessage> {
  static constexpr std::array kWords = {"node-joins",        "store-is-open",   "worker-failed",
                                        "workers-succeeded", "node-cannot-run", "node-stopped",
                                        "node-leaves",       "check-done",      "verdict-heard"};
};
template <>
struct Names<CheckAnswer> {
  static constexpr std::array kWords = {"phases", "orders", "unfit"};
};
static_assert(Names<Event>::kWords.size() == std::variant_size_v<Event>);
static_assert(Names<AgentMessage>::kWords.size() == std::variant_size_v<AgentMessage>);
static_assert(Names<CheckAnswer>::kWords.size() == std::variant_size_v<CheckAnswer>);

template <class Named>
std::optional<std::size_t> find_name(const std::string& word) {
  for (std::size_t i = 0; i < Names<Named>::kWords.size(); ++i) {
    if (word == Names<Named>::kWords[i]) return i;
  }
  return {};
}

template <class Named>
std::string all_names() {
  return join({Names<Named>::kWords.begin(), Names<Named>::kWords.end()}, ", ");
}

// --- The members of each value, for writing and for reading. ----------------------------------------------

// A value that the archive writes, or one that it reads into.
template <class Archive, class T>
using Of = std::conditional_t<Archive::kWrites, const T, T>;

template <class A>
void fields(A& a, Of<A, StoreEndpoint>& v) {
  a("address", v.address);
  a("port", v.port);
}
template <class A>
void fields(A& a, Of<A, ExitStatus>& v) {
  a("code", v.code);
  a("signal", v.signal);
  a("core_dumped", v.core_dumped);
}
template <class A>
void fields(A& a, Of<A, WorkerFailure>& v) {
  a("rank", v.rank);
  a("local_rank", v.local_rank);
  a("node_rank", v.node_rank);
  a("pid", v.pid);
  a("exit", v.exit);
  a("wall_ms", v.wall_ms);
  a("stopped_by_us", v.stopped_by_us);
  a("kind", v.kind);
  a("host", v.host);
}
template <class A>
void fields(A& a, Of<A, NodePlace>& v) {
  a("node_rank", v.node_rank);
  a("node_count", v.node_count);
  a("base_rank", v.base_rank);
  a("world_size", v.world_size);
  a("base_role_rank", v.base_role_rank);
  a("role_world_size", v.role_world_size);
}
template <class A>
void fields(A& a, Of<A, Verdict>& v) {
  a("outcome", v.outcome);
  a("reason", v.reason);
  a("round", v.round);
  a("restarts_used", v.restarts_used, kCount);
  a("signal", v.signal);
  a("failures", v.failures);
  a("left_behind", v.left_behind);
  a.unless_new("is_deterministic", v.is_deterministic);
}
template <class A>
void fields(A& a, Of<A, Crash>& v) {
  a("kind", v.kind);
  a("digest", v.digest);
}
template <class A>
void fields(A& a, Of<A, JobTerms>& v) {
  a("min_nodes", v.min_nodes);
  a("max_nodes", v.max_nodes);
  a("node_unit", v.node_unit);
  a("max_restarts", v.max_restarts);
}
template <class A>
void fields(A& a, Of<A, JobRules>& v) {
  a("last_call_ms", v.last_call_ms, kMs);
  a("join_timeout_ms", v.join_timeout_ms, kMs);
  a("replacement_grace_ms", v.replacement_grace_ms, kMs);
  a("scale_up", v.scale_up);
  a("scale_up_after_ms", v.scale_up_after_ms, kMs);
  a("node_losses", v.node_losses);
  a("loss_window_ms", v.loss_window_ms, kMs);
  a("keep_out_ms", v.keep_out_ms, kMs);
  a("job_losses", v.job_losses);
  a("replacement_wait_ms", v.replacement_wait_ms, kMs);
  a.unless_new("crash_loop", v.crash_loop);
}
template <class A>
void fields(A& a, Of<A, CheckRules>& v) {
  a("when", v.when);
  a("excludes_stragglers", v.excludes_stragglers);
  a("only", v.only);
  a("measures_all", v.measures_all);
}
template <class A>
void fields(A& a, Of<A, AgentFacts>& v) {
  a("incarnation", v.incarnation);
  a("term", v.term);
  a("round", v.round);
  a("activity", v.activity);
  a("place", v.place);
  a("restart_count", v.restart_count, kCount);
  a("losses", v.losses, kCount);
  a("membership", v.membership);
  a("failures", v.failures);
  a("verdict", v.verdict);
}
template <class A>
void fields(A& a, Of<A, NodeJoins>& v) {
  a("address", v.address);
  a("agent", v.agent);
  a("local_world_size", v.local_world_size);
  a("role", v.role);
  a("node_rank", v.node_rank, kClaims);
  a("hosts_coordinator", v.hosts_coordinator);
  a("terms", v.terms);
  a("rules", v.rules);
  a.unless_new("facts", v.facts);
  a.unless_new("addresses", v.addresses);
  a.unless_new("check_rules", v.check);
  a.unless_new("session", v.session);
  a.unless_new("group", v.group);
}
template <class A>
void fields(A& a, Of<A, StoreIsOpen>& v) {
  a("round", v.round);
  a("endpoint", v.endpoint);
}
template <class A>
void fields(A& a, Of<A, WorkerFailed>& v) {
  a("round", v.round);
  a("failure", v.failure);
}
template <class A>
void fields(A& a, Of<A, WorkersSucceeded>& v) {
  a("round", v.round);
}
template <class A>
void fields(A& a, Of<A, NodeCannotRun>& v) {
  a("round", v.round);
  a("reason", v.reason);
}
template <class A>
void fields(A& a, Of<A, NodeStopped>& v) {
  a("round", v.round);
  a("failures", v.failures);
  a("crash", v.crash);
}
template <class A>
void fields(A& a, Of<A, NodeLeaves>& v) {
  a("signal", v.signal);
}
template <class A>
void fields(A& a, Of<A, CheckDone>& v) {
  a("round", v.round);
  a("phase", v.phase);
  a("result", v.result);
}
template <class A>
void fields(A& a, Of<A, VerdictHeard>& v) {
  a.unless_new("details", v.details);
}

template <class A>
void fields(A& a, Of<A, MessageReceived>& v) {
  a("from", v.from);
  a.one_of("message", v.message);
}
template <class A>
void fields(A& a, Of<A, KeepAliveReceived>& v) {
  a("from", v.from);
}
template <class A>
void fields(A& a, Of<A, SessionEnded>& v) {
  a("from", v.from);
  a("how", v.how);
  a.unless_new("by_us", v.by_us);
}
template <class A>
void fields(A& a, Of<A, Introduced>& v) {
  a("incarnation", v.incarnation);
  a("term", v.term);
}
template <class A>
void fields(A& a, Of<A, NodeEmptied>& v) {
  a("agent", v.agent);
  a("incarnation", v.incarnation);
  a("round", v.round);
}
template <class A>
void fields(A&, Of<A, TimePassed>&) {}
template <class A>
void fields(A& a, Of<A, RecordedEvent>& v) {
  a("at_ms", v.at_ms, kSignedMs);
  a.one_of("event", v.event);
}

template <class A>
void fields(A& a, Of<A, CheckPlan::Unfit>& v) {
  a("node_rank", v.node_rank, kRoundNodes);
  a("why", v.why);
  a.unless_new("kind", v.kind);
}
template <class A>
void fields(A& a, Of<A, CheckPhases>& v) {
  a("phases", v.phases, kCount);
}
template <class A>
void fields(A& a, Of<A, CheckOrders>& v) {
  a("orders", v.orders);
}
template <class A>
void fields(A& a, Of<A, CheckUnfit>& v) {
  a("unfit", v.unfit);
}

template <class A>
void fields(A& a, Of<A, CoordinatorConfig>& v) {
  a("term", v.term);
  a("incarnation", v.incarnation);
  a("loss_timeout_ms", v.lease.loss_timeout_ms, kMs);
  a("now_ms", v.now_ms, kSignedMs);
  a.unless_new("random", v.random);
  a.unless_new("is_claimed", v.is_claimed);
}
template <class A>
void fields(A& a, Of<A, RecordingHead>& v) {
  a("job", v.job);
  a("program", v.program);
  a("birth", v.config);
  a("has_check", v.has_check);
}

}  // namespace elastic::coordinator::recorded
