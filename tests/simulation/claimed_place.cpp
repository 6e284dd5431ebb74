#include "tests/simulation/claimed_place.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using locate::RegisterAnswer;

ClaimedPlace::ClaimedPlace(Simulation& simulation, Node& node, Server& server, ClaimRegister& claims,
                           std::uint64_t random, Handlers handlers)
    : simulation_(simulation),
      node_(node),
      server_(server),
      claims_(claims),
      handlers_(std::move(handlers)),
      launch_(node.launch()),
      claimant_({.place = "the register",
                 .agent = format("{:016x}", random),
                 .random = static_cast<std::uint32_t>(random),
                 .loss_timeout_ms = simulation.setup().loss_timeout_ms}) {}

void ClaimedPlace::find(bool belongs) {
  stop();
  perform(claimant_.find(belongs));
}

void ClaimedPlace::withdraw(std::function<void()> done) {
  if (claimant_.holds()) stop();
  withdrawn_ = std::move(done);
  perform(claimant_.withdraw());
}

void ClaimedPlace::perform(const Claimant::Effects& effects) {
  for (const Claimant::Effect& effect : effects) {
    simulation_.trace().add(effect.index());
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

ClaimRegister::Done ClaimedPlace::deliver(Taken take, const std::uint64_t& number) {
  return [this, &node = node_, launch = launch_, take, &number, mine = number](const RegisterAnswer& answer) {
    node.in_process(launch, false, [this, take, &number, mine, answer] {
      if (mine == number) perform((claimant_.*take)(answer, node_.local_ms()));
    });
  };
}

void ClaimedPlace::perform(const Claimant::Read&) { claims_.read(node_.host(), deliver(&Claimant::read, attempt_)); }

void ClaimedPlace::perform(const Claimant::Write& effect) {
  claims_.compare_set(node_.host(), effect.expected, effect.desired, deliver(&Claimant::written, attempt_));
}

void ClaimedPlace::perform(const Claimant::Renew& effect) {
  claims_.compare_set(node_.host(), effect.expected, effect.desired, deliver(&Claimant::renewed, renewal_));
}

void ClaimedPlace::perform(const Claimant::TakeBack& effect) {
  const auto taken_back = [this, &node = node_, launch = launch_](const RegisterAnswer& answer) {
    node.in_process(launch, false, [this, answer] { perform(claimant_.taken_back(answer)); });
  };
  claims_.compare_set(node_.host(), effect.expected, "", taken_back);
}

void ClaimedPlace::perform(const Claimant::RenewAt& effect) {
  simulation_.timeline().at(node_.when_shows(effect.at_ms), [this, &node = node_, launch = launch_, mine = ++renewal_] {
    node.in_process(launch, true, [this, mine] {
      if (mine == renewal_) perform(claimant_.renewal_is_due(node_.local_ms()));
    });
  });
}

void ClaimedPlace::perform(const Claimant::Open& effect) {
  const ListenerId port = server_.is_up() ? server_.listener() : server_.open(node_.setup().job, effect.term);
  perform(claimant_.opened(node_.setup().address, static_cast<std::uint16_t>(port), node_.local_ms()));
}

void ClaimedPlace::perform(const Claimant::ActUntil& effect) {
  server_.set_authority(effect.authority);
  simulation_.invariants().may_act(server_);
}

void ClaimedPlace::perform(const Claimant::Close&) { server_.crash(); }

void ClaimedPlace::perform(const Claimant::Depose& effect) { server_.depose(effect.why); }

void ClaimedPlace::perform(const Claimant::Found& effect) {
  stop();
  handlers_.found(effect.claim.port, effect.is_own);
}

void ClaimedPlace::perform(const Claimant::NotFound& effect) {
  stop();
  handlers_.not_found(effect.failure.reason);
}

void ClaimedPlace::perform(const Claimant::Withdrawn&) { std::exchange(withdrawn_, nullptr)(); }

void ClaimedPlace::perform(const Claimant::Tell& effect) {
  simulation_.trace().add(effect.text);
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: {}", node_.index(), effect.text));
}

}  // namespace elastic::simulation
