#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/coordinator/round_slots.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// The end of a job, from its verdict until its nodes may end: which nodes have got the verdict, what the node of the
// first failure reports of it, and how long the coordinator stays for nodes that may come back. It is told the verdict,
// which nodes have heard it and which have gone; it says when all may be dismissed. Times are milliseconds of the
// coordinator's clock.
class JobEnding {
 public:
  // The job ends so.
  void begin(protocol::JobResult job_result, std::int64_t now_ms);
  // The coordinator stays until then at least: nodes that have lost their session may reconnect to get the verdict,
  // which nobody could give them later. May be said before the end begins.
  void stay_until(std::int64_t until_ms);
  // The verdict comes from an earlier coordinator, some of whose nodes may not have it yet: the coordinator stays until
  // then, whatever was said before.
  void stay_for_other_nodes(std::int64_t until_ms) { not_before_ms_ = until_ms; }

  // The node has the verdict. The first details of the first failure that a node reports are kept.
  void has_heard(protocol::AgentId node, const std::string& details);
  bool is_heard_by(protocol::AgentId node) const { return heard_.contains(node); }
  // The node has lost its session, before the end or in it, and is forgotten. If it may come back for the verdict it
  // does so by `back_by_ms`. `seats` are those of the last round.
  void has_gone(const membership::Node& node, const Slots& slots, std::int64_t back_by_ms);

  struct Decision {
    bool is_over = false;                            // all nodes are to be dismissed
    std::optional<std::int64_t> look_again_ms = {};  // all have the verdict, but the coordinator stays until then
  };
  // `nodes` are in the job. By `caught_up_ms` everything is read that arrived while this process did not run.
  Decision decide(std::size_t nodes, std::int64_t caught_up_ms, std::int64_t now_ms) const;

  // Nothing until the end begins.
  const std::optional<protocol::JobResult>& job_result() const { return job_result_; }
  // May be empty.
  const std::string& details() const { return details_; }

  // Called after each event: only nodes of the job have got its verdict.
  void check_invariants(const membership::Roster& roster) const;

 private:
  friend struct CoordinatorBreaker;  // a test's

  bool is_where_it_failed(const membership::Node& node, const Slots& slots) const;

  std::optional<protocol::JobResult> job_result_;
  std::set<protocol::AgentId> heard_;
  std::int64_t not_before_ms_ = 0;
  std::string details_;  // of the first failure
  // The node of the first failure, if it lost its session before it could send them; the end waits for it until then.
  std::optional<protocol::AgentId> details_from_;
  std::int64_t details_until_ms_ = 0;
};

}  // namespace elastic::coordinator
