#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"

namespace elastic::simulation {

// The events of one coordinator of a simulation, as --record writes them, and what it did.
struct Recording {
  std::string job;
  protocol::Term term = 0;
  std::string text;  // the contents of the file

  // The state after each event; none if the coordinator had ended by then.
  struct State {
    coordinator::Coordinator::State state{};
    std::optional<protocol::RoundNumber> round;
    std::size_t nodes = 0;
    bool is_checking = false;
    std::optional<std::int64_t> deadline_ms;
    protocol::Term term = 0;
    protocol::Incarnation incarnation = 0;
    bool operator==(const State&) const = default;
  };
  std::vector<std::optional<State>> after;
  std::vector<coordinator::Send> sent;  // the messages to the nodes, in order
  // The lines of its process's log: its decisions, and the reports of its sessions.
  std::vector<std::string> logged;
  bool was_killed = false;  // its last effects may not have been performed
};

// One of several coordinators of a job: the number of its server, and the job.
using OfServer = std::pair<std::uint32_t, std::string>;

class Recorder {
 public:
  explicit Recorder(bool has_check) : has_check_(has_check) {}

  // `real` is about to handle this event.
  void takes(const OfServer& which, const coordinator::Coordinator& real, const coordinator::Event& event,
             std::int64_t now_ms);
  // Its check plan has answered while the event is handled.
  void answered(const std::string& line);
  // The process has performed all effects of an event. `real` is null if the job has no coordinator any more.
  void has_acted(const OfServer& which, const coordinator::Coordinator* real);
  void sends(const OfServer& which, protocol::NodeId session, const protocol::CoordinatorMessage& message);
  void logs(const OfServer& which, const std::string& text);
  // The process was killed by SIGKILL, with the coordinators of all its jobs.
  void killed(std::uint32_t server);

  const std::vector<Recording>& recordings() const { return recordings_; }

 private:
  struct Open {
    std::size_t index = 0;  // of its recording
    protocol::Incarnation born_as = 0;
    std::set<protocol::NodeId> heard;  // the sessions that have sent anything
    bool acts = false;                 // an event was handled, and the state after it is not recorded yet
  };
  void know_state(Open& open, const coordinator::Coordinator* real);

  bool has_check_;
  std::vector<Recording> recordings_;
  std::map<OfServer, Open> open_;
  std::optional<std::size_t> asked_;  // the coordinator whose check plan is asked
};

// Replays a recording with trace::Replay and compares the result with what the coordinator did. Empty if both are the
// same; else the difference, beginning with `name` and the line.
std::optional<std::string> difference(const Recording& recording, const std::string& name);

}  // namespace elastic::simulation
