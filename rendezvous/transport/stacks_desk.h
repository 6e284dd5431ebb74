#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "health/stacks/document.h"
#include "health/stacks/groups.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::transport {

// Collects what the workers of a job are doing (docs/stacks.md). There is one collection at a time; requests that come
// meanwhile get its result, too. Then there is a pause, in which requests wait for the next one. A node that does not
// answer in time is named with the reason.
//
// It decides nothing about the job. So the coordinator does not know of it, and no recording has it.
class StacksDesk {
 public:
  // | `--stacks` of a job: the time for the nodes' answers; from one collection to the next | {kAnswerMs}; {kPauseMs} |
  // the node is named without stacks; whoever asks waits |
  static constexpr std::int64_t kAnswerMs = 15'000;  // a node takes 10 s at most
  static constexpr std::int64_t kPauseMs = 5'000;

  // The number of a request; the caller gives each one another number.
  using Ticket = std::uint64_t;
  struct Node {
    std::string name = {};
    std::optional<protocol::NodeId> session = {};  // not set: it is not asked
    std::string problem = {};                      // then why, as a clause
  };
  using Nodes = std::function<std::vector<Node>()>;
  struct Step {
    std::vector<protocol::NodeId> asked = {};  // these sessions get `wanted`
    protocol::StacksWanted wanted = {};
    std::vector<Ticket> answered = {};  // these get the document, as JSON (stacks::json_of)
    std::string document = {};
    std::string note = {};  // for the log; empty: none
  };

  explicit StacksDesk(std::string job) : job_(std::move(job)) {}

  // A request comes. `nodes`: those of the job at this moment.
  Step asks(Ticket ticket, const Nodes& nodes, std::int64_t now_ms);
  // A node has answered. An answer that was not asked for is ignored.
  Step on_stacks(protocol::NodeId session, const protocol::NodeStacks& told, std::int64_t now_ms);
  Step has_gone(protocol::NodeId session, std::int64_t now_ms);
  // The time of due_ms() has come.
  Step time_passes(const Nodes& nodes, std::int64_t now_ms);

  // Not set: it waits for no time.
  std::optional<std::int64_t> due_ms() const;
  // The requests that wait for an answer.
  const std::vector<Ticket>& tickets() const { return tickets_; }

 private:
  bool is_collecting() const { return !open_.empty(); }
  Step begin(const Nodes& nodes, std::int64_t now_ms);
  Step end_if_done(std::int64_t now_ms);
  Step end(std::int64_t now_ms);

  std::string job_;
  std::vector<Ticket> tickets_;
  std::uint64_t collection_ = 0;
  std::vector<stacks::NodeAnswer> nodes_;
  std::map<protocol::NodeId, std::size_t> open_;  // sessions that have not answered, with their place in nodes_
  stacks::Gathering gathering_{stacks::kMostBytesOfJob};
  std::int64_t answers_until_ms_ = 0;
  std::optional<std::int64_t> next_from_ms_;  // no collection begins before
};

// The nodes of a job, by rank. Those that have no workers are not asked.
std::vector<StacksDesk::Node> nodes_with_stacks(const membership::Roster& roster);

}  // namespace elastic::transport
