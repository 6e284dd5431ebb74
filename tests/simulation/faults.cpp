#include "tests/simulation/faults.h"

#include <algorithm>
#include <utility>

#include "src/base/signals.h"
#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

namespace {

// The most hosts of a simulation.
constexpr std::size_t kMostNodes = 40;

// A client of another protocol: it connects, sends some bytes, and is silent.
class Stranger : public ConnectionOwner {
 public:
  Stranger(Simulation& simulation, ByteString says) : simulation_(simulation), says_(std::move(says)) {}
  void connection_made(ConnectionId id) override { simulation_.network().send(id, End::kClient, says_); }
  void connection_read(ConnectionId, ByteString) override {}
  void connection_broken(ConnectionId, const std::string&) override {}

 private:
  Simulation& simulation_;
  ByteString says_;
};

// The bit of a small number in a set of them.
std::uint64_t bit(std::size_t number) { return 1ULL << (number % 64); }

ByteString bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

Faults::Faults(Simulation& simulation, FaultPlan plan, Coverage& coverage, Random random)
    : simulation_(simulation), coverage_(coverage), random_(random), calm_ms_(plan.calm_ms) {
  for (Fault& fault : plan.faults) {
    const Trigger& trigger = fault.trigger;
    if (trigger.type == Trigger::Type::kMessage) frames_ |= bit(static_cast<std::size_t>(trigger.frame));
    if (trigger.type == Trigger::Type::kAct) acts_ |= bit(trigger.act);
    armed_.push_back({fault, trigger.nth});
  }
}

void Faults::begin() {
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    if (armed_[i].fault.trigger.type != Trigger::Type::kTime) continue;
    simulation_.timeline().at(armed_[i].fault.trigger.at_ms, [this, i] { fire(armed_[i]); });
  }
  simulation_.timeline().at(calm_ms_, [this] { simulation_.calm(); });
}

void Faults::message_is_sent(protocol::FrameType type) {
  if ((frames_ & bit(static_cast<std::size_t>(type))) == 0) return;
  for (Armed& armed : armed_) {
    if (!armed.done && armed.fault.trigger.type == Trigger::Type::kMessage && armed.fault.trigger.frame == type &&
        --armed.left == 0)
      fire(armed);
  }
}

void Faults::agent_acts(std::size_t act) {
  if ((acts_ & bit(act)) == 0) return;
  for (Armed& armed : armed_) {
    if (!armed.done && armed.fault.trigger.type == Trigger::Type::kAct && armed.fault.trigger.act == act &&
        --armed.left == 0)
      fire(armed);
  }
}

void Faults::state_is_entered(JobState state) {
  for (Armed& armed : armed_) {
    if (!armed.done && armed.fault.trigger.type == Trigger::Type::kJobState && armed.fault.trigger.state == state &&
        --armed.left == 0)
      fire(armed);
  }
}

void Faults::fire(Armed& armed) {
  if (armed.done || simulation_.is_calm()) return;
  armed.done = true;
  const Fault fault = armed.fault;
  // A process can die at any point, also while it handles an event. All other faults strike between two events.
  const bool dies = fault.kind == FaultKind::kCrashAgent || fault.kind == FaultKind::kCrashHost ||
                    fault.kind == FaultKind::kCrashCoordinator;
  if (fault.delay_ms == 0 && dies) return strike(fault);
  simulation_.timeline().after(fault.delay_ms, [this, fault] {
    if (!simulation_.is_calm()) strike(fault);
  });
}

void Faults::strike(const Fault& fault) {
  auto& nodes = simulation_.nodes();
  Node& node = *nodes[static_cast<std::size_t>(fault.subject) % nodes.size()];
  const std::string& job = node.setup().job;
  const JobState state = simulation_.state_of(job);
  const Server* server = simulation_.server_of(job);
  const coordinator::Coordinator* coordinator = server != nullptr ? server->find(job) : nullptr;
  const protocol::Incarnation incarnation = coordinator != nullptr ? coordinator->incarnation() : 0;
  const auto round = coordinator != nullptr ? coordinator->round() : std::nullopt;
  if (simulation_.trace().is_read()) simulation_.line(format("FAULT: {}", text(fault)));
  if (!inject(fault, node)) return;
  simulation_.trace().add(static_cast<std::uint64_t>(fault.kind) + 1000);
  coverage_.strikes(fault.kind, state, job, incarnation, round ? static_cast<std::int64_t>(*round) : -1);
}

bool Faults::inject(const Fault& fault, Node& node) {
  switch (fault.kind) {
    case FaultKind::kDelay: {
      const Ms more_ms = 1 + fault.extra / 2;
      simulation_.network().add_delay(more_ms);
      later(fault.lasts_ms, [this, more_ms] { simulation_.network().add_delay(-more_ms); });
      return true;
    }
    case FaultKind::kReset:
      // An agent in the coordinator's process has no connection that could be reset.
      if (node.is_at_home() || node.connection() == 0 ||
          !simulation_.network().is_open(node.connection(), End::kServer))
        return false;
      node.connection_is_disturbed();
      simulation_.network().reset(node.connection());
      return true;
    case FaultKind::kCutToServer:
    case FaultKind::kCutFromServer:
    case FaultKind::kPartition: return cut(fault, node);
    case FaultKind::kPauseAgent: return pause(fault, node);
    case FaultKind::kFreezeHost: return freeze(fault, node);
    case FaultKind::kRegisterSilent:
    case FaultKind::kRegisterSlow:
    case FaultKind::kRegisterRefuses: return disturb_register(fault, node);
    case FaultKind::kPauseCoordinator: return pause_coordinator(fault, node);
    case FaultKind::kCrashAgent: return crash_agent(fault, node);
    case FaultKind::kCrashWorker: return crash_worker(fault, node);
    case FaultKind::kCrashHost: return crash_host(fault, node);
    case FaultKind::kCrashCoordinator: return crash_coordinator(fault, node);
    case FaultKind::kCrashGuardian:
      // No process of a frozen host dies.
      if (!node.is_running() || node.lost_its_guardian() || simulation_.network().is_frozen(node.host())) return false;
      node.crash_guardian();
      return true;
    case FaultKind::kUnguarded:
      if (node.lost_its_guardian() || simulation_.network().is_frozen(node.host())) return false;
      if (!node.is_disturbed() && !pause(fault, node)) return false;
      node.crash_guardian();
      return true;
    case FaultKind::kClockJump: node.jump_wall_clock((fault.extra - 500) * 10'000); return true;
    case FaultKind::kFlood: return newcomers(fault, node, 1 + fault.extra % (node.setup().terms.max_nodes + 3));
    case FaultKind::kSignal:
      if (!node.is_running()) return false;
      node.signal(*signal_number(fault.extra % 3 == 0 ? "INT" : "TERM"));
      return true;
    case FaultKind::kStranger: return stranger(fault, node);
    case FaultKind::kGarbage: return garbage(node);
    case FaultKind::kOrder: return order(fault, node);
    case FaultKind::kStacks: return ask_for_stacks(fault, node);
    case FaultKind::kLateJoiner:
    case FaultKind::kOtherTerms:
    case FaultKind::kRankClaimedTwice: return newcomers(fault, node, 1);
  }
  return false;
}

// Undoes a fault after a while, at the latest when the calm begins.
void Faults::later(Ms after_ms, std::function<void()> undoing) {
  simulation_.timeline().after(after_ms, [this, undoing = std::move(undoing)] {
    if (!simulation_.is_calm()) undoing();
  });
}

// Cuts the network in two, or in three.
bool Faults::split(const Fault& fault) {
  Network& network = simulation_.network();
  std::vector<int> hosts;
  for (const auto& node : simulation_.nodes()) hosts.push_back(node->host());
  hosts.push_back(network.host_of(simulation_.first_server().listener()));
  const unsigned parts = fault.extra % 5 == 4 ? 3 : 2;
  const auto side = [&](std::size_t i) {
    return (static_cast<unsigned>(fault.extra) * 2654435761U >> (4 + i % 24)) % parts;
  };
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (std::size_t k = 0; k < hosts.size(); ++k) {
      if (hosts[i] == hosts[k] || side(i) == side(k)) continue;
      network.cut(hosts[i], hosts[k]);
      later(fault.lasts_ms, [&network, from = hosts[i], to = hosts[k]] { network.heal(from, to); });
    }
  }
  return true;
}

bool Faults::cut(const Fault& fault, Node& node) {
  Network& network = simulation_.network();
  const bool splits = simulation_.setup().failover != Setup::Failover::kOff && fault.extra % 4 != 0;
  if (fault.kind == FaultKind::kPartition && splits) return split(fault);
  const int server = simulation_.coordinator_host(node.setup().job).value_or(node.host());
  // The node is cut off from the coordinator, or from another node.
  int there = server;
  if (fault.extra % 4 == 0 || node.host() == server) {
    auto& nodes = simulation_.nodes();
    there = nodes[static_cast<std::size_t>(fault.extra) % nodes.size()]->host();
  }
  if (there == node.host()) return false;
  const auto one_way = [&](int from, int to) {
    network.cut(from, to);
    later(fault.lasts_ms, [&network, from, to] { network.heal(from, to); });
  };
  if (fault.kind != FaultKind::kCutFromServer) one_way(node.host(), there);
  if (fault.kind != FaultKind::kCutToServer) one_way(there, node.host());
  return true;
}

bool Faults::pause(const Fault& fault, Node& node) {
  if (!node.is_running() || node.is_disturbed()) return false;
  if (node.setup().hosts_coordinator) return pause_coordinator(fault, node);
  node.pause_agent();
  later(fault.lasts_ms, [&node, launch = node.launch()] {
    if (node.launch() == launch) node.resume_agent();
  });
  return true;
}

// The node whose process has the coordinator of this one's job; null if there is none.
Node* Faults::holder(const Node& node) {
  const Server* server = simulation_.server_of(node.setup().job);
  return server != nullptr ? server->node() : nullptr;
}

bool Faults::disturb_register(const Fault& fault, const Node& node) {
  EntryRegister* entries = simulation_.entries_of(node.setup().job);
  if (entries == nullptr) return false;
  if (fault.kind == FaultKind::kRegisterRefuses) {
    entries->refuse(1);
    later(fault.lasts_ms, [entries] { entries->refuse(-1); });
  } else if (fault.kind == FaultKind::kRegisterSlow) {
    const Ms more_ms = 1 + fault.extra * 4;
    entries->slow(more_ms);
    later(fault.lasts_ms, [entries, more_ms] { entries->slow(-more_ms); });
  } else {
    // No answer comes to this node, to the leader's node, or to any node.
    const Node* holds = holder(node);
    const auto concerns = [&](const Node& each) {
      return fault.extra % 3 == 2 || &each == (fault.extra % 3 == 1 && holds != nullptr ? holds : &node);
    };
    for (const auto& each : simulation_.nodes()) {
      if (!concerns(*each)) continue;
      entries->cut(each->host());
      later(fault.lasts_ms, [entries, host = each->host()] { entries->heal(host); });
    }
  }
  return true;
}

bool Faults::pause_coordinator(const Fault& fault, const Node& node) {
  Node* const holds = simulation_.setup().moves() ? holder(node) : nullptr;
  if (holds != nullptr) return pause(fault, *holds);
  Server& server = simulation_.server();
  if (!server.is_up() || server.is_paused()) return false;
  Node* host = simulation_.setup().hosted ? simulation_.nodes().front().get() : nullptr;
  server.pause();
  const std::uint32_t launch = host != nullptr ? host->launch() : 0;
  if (host != nullptr) host->pause_agent();
  later(fault.lasts_ms, [this, host, launch] {
    simulation_.server().resume(random_.chance(50));
    if (host != nullptr && host->launch() == launch) host->resume_agent();
  });
  return true;
}

bool Faults::freeze(const Fault& fault, Node& node) {
  if (!simulation_.network().is_up(node.host()) || simulation_.network().is_frozen(node.host())) return false;
  const bool serves = node.setup().hosts_coordinator;
  node.freeze();
  if (serves && simulation_.server().is_up()) simulation_.server().pause();
  later(fault.lasts_ms, [this, &node, serves] {
    node.thaw();
    if (serves) simulation_.server().resume(random_.chance(50));
  });
  return true;
}

// An operator drains the node, which he knows by its name, or stops its job.
bool Faults::order(const Fault& fault, const Node& node) {
  Server* server = simulation_.server_of(node.setup().job);
  if (server == nullptr) return false;
  using Kind = coordinator::OperatorOrder::Kind;
  const bool stops = fault.extra % 8 == 0;
  return server->order(
      {node.setup().job, {.kind = stops ? Kind::kStop : Kind::kDrain, .node = stops ? "" : node.setup().address}});
}

// Two people ask one after the other.
bool Faults::ask_for_stacks(const Fault& fault, const Node& node) {
  Server* server = simulation_.server_of(node.setup().job);
  if (server == nullptr || !server->ask_for_stacks(node.setup().job)) return false;
  simulation_.timeline().after(fault.extra * 8, [this, job = node.setup().job] {
    Server* again = simulation_.server_of(job);
    if (again != nullptr) again->ask_for_stacks(job);
  });
  return true;
}

void Faults::start_again(Node& node, Ms after_ms) {
  simulation_.expect_start(1);
  simulation_.timeline().after(after_ms, [this, &node] {
    simulation_.expect_start(-1);
    if (node.is_running()) return;
    node.boot_host();
    if (node.setup().hosts_coordinator && !simulation_.server().is_up()) simulation_.server().start();
    node.start();
  });
}

bool Faults::crash_agent(const Fault& fault, Node& node) {
  if (!node.is_running()) return false;
  if (node.setup().hosts_coordinator) simulation_.server().crash();
  node.crash_agent();
  if (fault.comes_back) start_again(node, fault.lasts_ms);
  return true;
}

bool Faults::crash_host(const Fault& fault, Node& node) {
  if (!simulation_.network().is_up(node.host())) return false;
  if (node.setup().hosts_coordinator && simulation_.server().is_up()) simulation_.server().vanish();
  const bool was_running = node.is_running();
  node.crash_host();
  if (fault.comes_back && was_running) {
    start_again(node, fault.lasts_ms);
  } else {
    // The host's address answers again.
    later(fault.lasts_ms, [&node] { node.boot_host(); });
  }
  return true;
}

bool Faults::crash_coordinator(const Fault& fault, const Node& node) {
  Node* const holds = simulation_.setup().moves() ? holder(node) : nullptr;
  if (holds != nullptr && fault.extra % 4 == 0) return crash_host(fault, *holds);
  if (holds != nullptr) return crash_agent(fault, *holds);
  if (!simulation_.server().is_up()) return false;
  if (simulation_.setup().hosted) return crash_agent(fault, *simulation_.nodes().front());
  const bool with_its_host = fault.extra % 4 == 0;
  const int host = simulation_.network().host_of(simulation_.server().listener());
  if (with_its_host) {
    simulation_.server().vanish();
    simulation_.network().host_down(host);
  } else {
    simulation_.server().crash();
  }
  if (!fault.comes_back && !with_its_host) return true;
  simulation_.expect_start(1);
  simulation_.timeline().after(fault.lasts_ms, [this, host, comes_back = fault.comes_back] {
    simulation_.expect_start(-1);
    if (!simulation_.network().is_up(host)) simulation_.network().host_up(host);
    if (comes_back && !simulation_.server().is_up()) simulation_.server().start();
  });
  return true;
}

bool Faults::crash_worker(const Fault& fault, Node& node) {
  if (!node.is_running() || !node.has_workers()) return false;
  const ExitStatus how[] = {
      {.code = 1}, {.code = 137}, {.signal = *signal_number("SEGV")}, {.signal = *signal_number("KILL")}};
  node.crash_worker(fault.extra, how[fault.extra % 4]);
  return true;
}

ByteString Faults::noise(int kind) {
  switch (kind % 5) {
    case 0: return bytes_of("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    case 1: return {0x00, 0x3C, 0x85, 0xF7, 0x1A};  // PyTorch's TCPStore
    case 2: return {};
    case 3: {
      ByteString bytes(protocol::kMark.begin(), protocol::kMark.end());
      for (int i = 0; i < 40; ++i) bytes.push_back(static_cast<std::uint8_t>(random_.next()));
      return bytes;
    }
    default: {
      ByteString bytes;
      for (std::int64_t i = random_.range(1, 200); i > 0; --i)
        bytes.push_back(static_cast<std::uint8_t>(random_.next()));
      return bytes;
    }
  }
}

bool Faults::stranger(const Fault& fault, const Node& node) {
  const Server* server = simulation_.server_of(node.setup().job);
  if (server == nullptr) return false;
  strangers_.push_back(std::make_unique<Stranger>(simulation_, noise(fault.extra)));
  const ConnectionId id =
      simulation_.network().connect(simulation_.nodes().front()->host(), *strangers_.back(), server->listener());
  simulation_.timeline().after(fault.lasts_ms, [this, id] { simulation_.network().close(id, End::kClient); });
  return true;
}

bool Faults::garbage(Node& node) {
  const ConnectionId id = node.connection();
  if (node.is_at_home() || id == 0 || !simulation_.network().is_open(id, End::kServer)) return false;
  node.connection_is_disturbed();
  const End from = random_.chance(50) ? End::kClient : End::kServer;
  simulation_.network().send(id, from, noise(random_.number(3, 4)));
  return true;
}

bool Faults::newcomers(const Fault& fault, const Node& like, int count) {
  const NodeSetup setup = like.setup();
  if (setup.hosts_coordinator && simulation_.nodes().size() == 1 && fault.kind == FaultKind::kRankClaimedTwice)
    return false;
  for (int i = 0; i < count; ++i) {
    if (simulation_.nodes().size() >= kMostNodes) return i > 0;
    NodeSetup another = setup;
    another.hosts_coordinator = false;
    another.address = format("10.9.0.{}", simulation_.nodes().size() + 1);
    another.workers = random_.number(1, 4);
    another.clock_offset_ms = random_.range(0, 1'000'000);
    another.fit = random_.chance(90);
    another.slow = random_.chance(10);
    if (fault.kind == FaultKind::kRankClaimedTwice)
      another.claimed_rank = setup.claimed_rank.value_or(0);
    else
      another.claimed_rank.reset();
    if (fault.kind == FaultKind::kOtherTerms) ++another.terms.max_restarts;
    Node& node = simulation_.add_node(another);
    simulation_.expect_start(1);
    simulation_.timeline().after(random_.range(0, fault.kind == FaultKind::kFlood ? 5 : 50), [this, &node] {
      simulation_.expect_start(-1);
      node.start();
    });
  }
  return true;
}

void Faults::calm() {
  for (Armed& armed : armed_) armed.done = true;
}

}  // namespace elastic::simulation
