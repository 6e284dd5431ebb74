#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rendezvous/protocol/test_messages.h"
#include "rendezvous/trace/recording.h"
#include "rendezvous/trace/replay.h"
#include "src/base/limits.h"

// Random events, and recordings in memory, for tests.
namespace elastic::trace::testing {

using namespace coordinator;

// Makes random events whose numbers are within the bounds of a recording.
class EventMaker {
 public:
  explicit EventMaker(std::uint64_t seed) : dice_(seed), messages_(dice_) {}

  // The kinds are numbered: first those of MessageReceived's messages, then the other events.
  static constexpr std::size_t kKinds =
      std::variant_size_v<protocol::AgentMessage::variant> + std::variant_size_v<Event::variant> - 1;
  Event event(std::size_t kind) {
    constexpr std::size_t kMessages = std::variant_size_v<protocol::AgentMessage::variant>;
    if (kind < kMessages) return MessageReceived{session(), message(kind)};
    switch (kind - kMessages) {
      case 0: return KeepAliveReceived{session()};
      case 1: return SessionEnded{session(), dice_.text(100)};
      case 2: return Introduced{dice_.number(), static_cast<protocol::Term>(dice_.number())};
      case 3: return NodeEmptied{dice_.number(), dice_.number(), static_cast<protocol::RoundNumber>(dice_.number())};
      case 4: return OperatorOrder{static_cast<OperatorOrder::Kind>(below(2)), dice_.text(100), dice_.text(100)};
      case 5: return LeaseAckReceived{session(), below(1'000'000), {}};
      case 6: return OwnAgentEnded{};
      case 7: return PeerPortTried{dice_.number(), dice_.text(100)};
      case 8: return CoordinatorGossiped{dice_.number(), below(1'000'000), {}, dice_.text(100)};
      case 9: return OwnAgentElsewhere{static_cast<protocol::Term>(dice_.number())};
      case 10: return HostLeaves{static_cast<int>(below(64))};
      default: return TimePassed{};
    }
  }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(dice_.number() % static_cast<std::uint64_t>(limit));
  }

 private:
  protocol::NodeId session() { return static_cast<protocol::NodeId>(dice_.number()); }
  int from(int least, std::int64_t most) { return least + static_cast<int>(below(most - least + 1)); }

  protocol::AgentMessage message(std::size_t kind) {
    auto message = messages_.message<protocol::AgentMessage>(kind);
    if (auto* joins = std::get_if<protocol::NodeJoins>(&message)) tame(*joins);
    if (auto* made = std::get_if<protocol::NodeProgress>(&message)) {
      for (auto* progress : {&made->newest, &made->oldest}) progress->age_ms = below(1LL << 53);
    }
    if (auto* done = std::get_if<protocol::CheckDone>(&message)) done->result.resize(done->result.size() % 1000);
    if (auto* told = std::get_if<protocol::NodeStacks>(&message)) told->groups.resize(told->groups.size() % 1000);
    return message;
  }
  void tame(protocol::NodeJoins& message) {
    constexpr int kMost = std::numeric_limits<int>::max();
    const bool makes_sense = below(4) != 0;
    if (makes_sense) message.local_world_size = from(1, limits::kMaxWorkersPerNode);
    if (message.node_rank) message.node_rank = from(0, kMost - 1);
    if (makes_sense) message.terms = {from(1, kMost), from(1, kMost), from(1, kMost), from(0, limits::kMaxRestarts)};
    constexpr std::int64_t kMs = 1LL << 53;
    message.rules = {below(kMs),
                     below(kMs),
                     below(kMs),
                     protocol::JobRules::ScaleUp(below(4)),
                     below(kMs),
                     from(-3, 9),
                     below(kMs),
                     below(kMs),
                     from(-3, 9),
                     {},
                     protocol::JobRules::CrashLoop(below(2))};
    if (below(2) != 0) message.rules.replacement_wait_ms = below(kMs);
    if (message.facts.incarnation % 4 == 0) message.facts = {};
    protocol::AgentFacts& facts = message.facts;
    constexpr std::int64_t kNodes = limits::kNodesPerJob;
    constexpr std::int64_t kRanks = kNodes * limits::kMaxWorkersPerNode;
    if (makes_sense)
      facts.place = {from(0, kNodes), from(0, kNodes), from(0, kRanks),
                     from(0, kRanks), from(0, kRanks), from(0, kRanks)};
    facts.restart_count = from(0, limits::kMaxRestarts);
    facts.losses = from(0, limits::kMaxRestarts);
    if (facts.job_result) facts.job_result->restarts_used = from(0, limits::kMaxRestarts);
  }

  protocol::test::Dice dice_;
  protocol::test::Maker<protocol::test::Dice> messages_;
};

// A source of the lines of a text, as if it were a file. The text must outlive it.
inline LineSource lines_of(const std::string& text) {
  return [&text, at = std::size_t{0}]() mutable -> std::optional<SourceLine> {
    if (at >= text.size()) return {};
    const std::size_t end = text.find('\n', at);
    const std::size_t begin = std::exchange(at, end == std::string::npos ? text.size() : end + 1);
    return SourceLine{text.substr(begin, end == std::string::npos ? end : end - begin), end != std::string::npos};
  };
}

// All that --replay prints of a recording, with an error as the last line.
inline std::string replayed(const std::string& recording) {
  Replay replay(lines_of(recording), "rec");
  const auto first = replay.begin();
  if (!first) return first.error().text();
  std::string out = *first;
  for (;;) {
    const auto step = replay.next();
    if (!step) return out + step.error().text();
    if (!*step) return out + replay.last_line();
    out += replay.text(**step);
  }
}

}  // namespace elastic::trace::testing
