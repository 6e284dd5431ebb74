#include "tests/simulation/shadow.h"

#include <utility>

#include "rendezvous/protocol/codec.h"
#include "src/base/text.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/server.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;

namespace {

// One seed in so many is checked in this way, since it takes three coordinators.
constexpr std::uint64_t kOneOf = 8;
constexpr std::size_t kKept = 24;

// The round that a message belongs to.
std::optional<RoundNumber> round_of(const AgentMessage& message) {
  return std::visit(
      [](const auto& m) -> std::optional<RoundNumber> {
        if constexpr (requires { m.round; })
          return m.round;
        else
          return {};
      },
      message);
}

ByteString bytes_of(const coordinator::Effects& effects) {
  ByteString bytes;
  for (const coordinator::Effect& effect : effects) {
    bytes.push_back(static_cast<std::uint8_t>(effect.index()));
    if (const auto* send = std::get_if<coordinator::Send>(&effect))
      append_frame(bytes, Stamp{0, send->to, 0}, send->message);
    if (const auto* drop = std::get_if<coordinator::Drop>(&effect))
      bytes.push_back(static_cast<std::uint8_t>(drop->session));
    if (const auto* note = std::get_if<coordinator::Note>(&effect))
      bytes.insert(bytes.end(), note->text.begin(), note->text.end());
  }
  return bytes;
}

}  // namespace

Shadow::Shadow(Simulation& simulation, const Setup& setup, Random random)
    : simulation_(simulation), setup_(setup), random_(random), on_(setup.seed % kOneOf == 0) {}

void Shadow::takes(const OfServer& which, const coordinator::Coordinator* real, const coordinator::Event& event,
                   std::int64_t now_ms) {
  if (!on_ || real == nullptr) return;
  auto found = pairs_.find(which);
  if (found == pairs_.end() || found->second.clean.ended()) {
    if (found != pairs_.end()) pairs_.erase(found);
    const coordinator::CoordinatorConfig& config = real->config();
    found = pairs_
                .emplace(which, Pair{coordinator::Coordinator(config, make_check(setup_.check_phases)),
                                     coordinator::Coordinator(config, make_check(setup_.check_phases)),
                                     {}})
                .first;
  }
  Pair& pair = found->second;
  const coordinator::Effects clean = pair.clean.on_event(event, now_ms);
  const coordinator::Effects disturbed = pair.disturbed.on_event(event, now_ms);
  if (bytes_of(clean) != bytes_of(disturbed) || pair.clean.state() != pair.disturbed.state() ||
      pair.clean.next_deadline_ms() != pair.disturbed.next_deadline_ms()) {
    simulation_.invariants().broken(
        "no older message changes anything",
        format("job {} goes another way: {} effects instead of {}, next at {} ms instead of {} ms", which.second,
               disturbed.size(), clean.size(), pair.disturbed.next_deadline_ms().value_or(-1),
               pair.clean.next_deadline_ms().value_or(-1)));
  }
  if (const auto* said = std::get_if<coordinator::MessageReceived>(&event)) disturb(pair, *said, now_ms);
}

void Shadow::disturb(Pair& pair, const coordinator::MessageReceived& said, std::int64_t now_ms) {
  if (round_of(said.message)) {
    pair.old.push_back(said.message);
    if (pair.old.size() > kKept) pair.old.pop_front();
  }
  if (pair.old.empty() || !pair.clean.round() || pair.clean.ended()) return;
  const AgentMessage& old =
      pair.old[static_cast<std::size_t>(random_.range(0, static_cast<std::int64_t>(pair.old.size()) - 1))];
  const auto round = round_of(old);
  if (!round || *round >= *pair.clean.round()) return;
  // What is due already comes with any event.
  const auto due_ms = pair.clean.next_deadline_ms();
  if (due_ms && *due_ms <= now_ms + 1) return;
  const coordinator::Effects effects = pair.disturbed.on_event(coordinator::MessageReceived{said.from, old}, now_ms);
  if (!effects.empty()) {
    simulation_.invariants().broken("no older message changes anything",
                                    format("{}, and the coordinator is at round {}", text(old), *pair.clean.round()));
  }
}

}  // namespace elastic::simulation
