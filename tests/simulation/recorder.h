#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"

namespace elastic::simulation {

// What one coordinator of a world was told, as --record writes it, and what it was seen to do of it.
struct Recording {
  std::string job;
  protocol::Term term = 0;
  std::string text;  // the file

  // After each event; nothing, where the coordinator was gone by then.
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
  // What went to the nodes, in order: "10.0.0.1 (session 3): stop the workers of round 0".
  std::vector<std::string> sent;
  // What its process wrote into its log: its decisions, and what its sessions had to say.
  std::vector<std::string> logged;
  bool was_killed = false;  // not all that it decided last was done
};

// Writes them down.
class Recorder {
 public:
  explicit Recorder(bool has_check) : has_check_(has_check) {}

  // `real` is about to take this.
  void takes(const std::string& job, const coordinator::Coordinator& real, const coordinator::Event& event,
             std::int64_t now_ms);
  // Its check plan has answered, in the midst of the event.
  void answered(const std::string& line);
  // The process has done all that followed from an event; null: the job has no coordinator any more.
  void has_acted(const std::string& job, const coordinator::Coordinator* real);
  void sends(const std::string& job, protocol::NodeId session, const protocol::CoordinatorMessage& message);
  void logs(const std::string& job, const std::string& text);
  // By SIGKILL, with all its jobs.
  void killed();

  const std::vector<Recording>& recordings() const { return recordings_; }

 private:
  struct Open {
    std::size_t index = 0;  // of its recording
    protocol::Incarnation born_as = 0;
    std::map<protocol::NodeId, std::string> names;  // of sessions that have said anything
    bool acts = false;                              // an event has been taken, and its state after it is not known yet
  };
  void know_state(Open& open, const coordinator::Coordinator* real);

  bool has_check_;
  std::vector<Recording> recordings_;
  std::map<std::string, Open> open_;
  std::optional<std::size_t> asked_;  // whose check is asked
};

// Plays a recording to another coordinator, by coordinator::Replay, and holds it to what the first one did. Nothing: it
// did the same. Else what differs, beginning with `name` and the line.
std::optional<std::string> difference(const Recording& recording, const std::string& name);

}  // namespace elastic::simulation
