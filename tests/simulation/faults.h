#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/protocol/codec.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/network.h"
#include "tests/simulation/random.h"
#include "tests/simulation/setup.h"

namespace elastic::simulation {

class Node;
class Simulation;

struct Trigger {
  enum class Type : std::uint8_t {
    kTime,
    kMessage,   // when the nth frame of a type is about to be sent, by any process
    kAct,       // when an agent performs an effect of a type for the nth time
    kJobState,  // when a job's coordinator enters a state for the nth time
  };
  Type type = Type::kTime;
  Ms at_ms = 0;
  protocol::FrameType frame{};
  std::size_t act = 0;  // index of agent::Effect
  JobState state{};
  int nth = 1;
};

struct Fault {
  Trigger trigger;
  FaultKind kind{};
  int subject = 0;  // a node's index, modulo the number of nodes
  Ms delay_ms = 0;  // after the trigger; with 0 it strikes in the middle of the action that triggered it
  Ms lasts_ms = 100;
  bool comes_back = true;  // a process or host that died is started again
  int extra = 0;
};

struct FaultPlan {
  std::vector<Fault> faults;
  Ms calm_ms = 0;  // from then on there are no faults
};

FaultPlan plan_of(const Setup& setup);
// "when PrepareRound is sent for the 3rd time: agent dies, node 2, back after 300 ms"
std::string text(const Fault& fault);

class Faults {
 public:
  Faults(Simulation& simulation, FaultPlan plan, Coverage& coverage, Random random);
  void begin();
  void message_is_sent(protocol::FrameType type);
  void agent_acts(std::size_t act);
  void state_is_entered(JobState state);
  // Cancels the faults that have not struck, and starts again what is dead and to come back.
  void calm();

 private:
  struct Armed {
    Fault fault;
    int left = 0;  // how many times its trigger is still to occur
    bool done = false;
  };
  void fire(Armed& armed);
  void strike(const Fault& fault);
  bool inject(const Fault& fault, Node& node);
  bool cut(const Fault& fault, Node& node);
  bool split(const Fault& fault);
  bool crash_agent(const Fault& fault, Node& node);
  bool crash_host(const Fault& fault, Node& node);
  bool crash_coordinator(const Fault& fault, const Node& node);
  bool pause(const Fault& fault, Node& node);
  bool pause_coordinator(const Fault& fault, const Node& node);
  bool disturb_register(const Fault& fault, const Node& node);
  Node* holder(const Node& node);
  bool freeze(const Fault& fault, Node& node);
  bool crash_worker(const Fault& fault, Node& node);
  bool stranger(const Fault& fault, const Node& node);
  bool garbage(Node& node);
  bool order(const Fault& fault, const Node& node);
  bool ask_for_stacks(const Fault& fault, const Node& node);
  bool newcomers(const Fault& fault, const Node& like, int count);
  void start_again(Node& node, Ms after_ms);
  void later(Ms after_ms, std::function<void()> undoing);
  ByteString noise(int kind);

  Simulation& simulation_;
  std::vector<Armed> armed_;
  Coverage& coverage_;
  Random random_;
  Ms calm_ms_;
  std::vector<std::unique_ptr<ConnectionOwner>> strangers_;
  std::uint64_t frames_ = 0;  // the types of frames, and below those of effects, that any fault waits for
  std::uint64_t acts_ = 0;
};

}  // namespace elastic::simulation
