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

// The end of a job here: it goes on under the next leader, or it has a result. From that until its nodes may end: which
// nodes have the result, what the node of the first failure reports, and how long the coordinator stays for nodes that
// may come back. It is told the job result, which nodes have heard it and which have gone; it says when all may be
// dismissed. Times are milliseconds of the coordinator's clock.
class JobEnding {
 public:
  // The job ends with this result.
  void begin(protocol::JobResult job_result, std::int64_t now_ms);
  // The coordinator stays until then at least, so that nodes that have lost their session can reconnect for the job
  // result: nobody could give it to them later. May be called before begin().
  void stay_until(std::int64_t until_ms);
  // The job result comes from an earlier coordinator, and some nodes may not have it yet: the coordinator stays until
  // then at least. Replaces an earlier time of stay_until().
  void stay_for_other_nodes(std::int64_t until_ms) { not_before_ms_ = until_ms; }

  // This coordinator has resigned because its process leaves: the job goes on under the next leader.
  void leave_to_next_leader() { is_left_ = true; }
  bool is_left_to_next_leader() const { return is_left_; }

  // The node has the job result. The first details of the first failure that a node reports are kept.
  void has_heard(protocol::AgentId node, const std::string& details);
  bool is_heard_by(protocol::AgentId node) const { return heard_.contains(node); }
  // The node has lost its session, before the end or in it, and is forgotten. If it comes back for the job result, it
  // does so by `back_by_ms`. `slots` are those of the last round.
  void has_gone(const membership::Node& node, const Slots& slots, std::int64_t back_by_ms);

  struct Decision {
    bool is_over = false;                            // all nodes are to be dismissed
    std::optional<std::int64_t> look_again_ms = {};  // all have the job result, but the coordinator stays until then
  };
  // `nodes` are in the job. By `caught_up_ms` everything is read that arrived while this process did not run.
  Decision decide(std::size_t nodes, std::int64_t caught_up_ms, std::int64_t now_ms) const;

  // Empty until the end begins.
  const std::optional<protocol::JobResult>& job_result() const { return job_result_; }
  // May be empty.
  const std::string& details() const { return details_; }

  // Called after each event: only nodes of the job have heard its result.
  void check_invariants(const membership::Roster& roster) const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  bool is_where_it_failed(const membership::Node& node, const Slots& slots) const;

  std::optional<protocol::JobResult> job_result_;
  bool is_left_ = false;
  std::set<protocol::AgentId> heard_;
  std::int64_t not_before_ms_ = 0;
  std::string details_;  // of the first failure
  // The node of the first failure, if it lost its session before it could send the details; the end waits until then.
  std::optional<protocol::AgentId> details_from_;
  std::int64_t details_until_ms_ = 0;
};

}  // namespace elastic::coordinator
