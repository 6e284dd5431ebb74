#include "tests/simulation/file_discovery.h"

#include <utility>

#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using discovery::RegisterAnswer;

FileDiscovery::FileDiscovery(Simulation& simulation, Node& node, Server& server, EntryRegister& entries,
                             Handlers handlers)
    : simulation_(simulation),
      node_(node),
      server_(server),
      entries_(entries),
      handlers_(std::move(handlers)),
      launch_(node.launch()),
      search_({.place = "the file", .process = node.agent_id(), .host = node.setup().address}),
      keeper_("the file") {
  plan_look();
}

EntryRegister::Done FileDiscovery::deliver(const std::uint64_t& number,
                                           std::function<void(const RegisterAnswer&)> take) {
  return [this, &node = node_, launch = launch_, &number, mine = number,
          take = std::move(take)](const RegisterAnswer& answer) {
    node.in_process(launch, false, [&number, mine, take, answer] {
      if (mine == number) take(answer);
    });
  };
}

// --- Finding the coordinator. ----------------------------------------------------------------------------

void FileDiscovery::find(const EntrySearch::Known& known) {
  stop();
  perform(search_.find(known));
}

void FileDiscovery::tried(discovery::Tried how) { perform(search_.tried(how, simulation_.wall_ms())); }

void FileDiscovery::perform(const EntrySearch::Effects& effects) {
  for (const EntrySearch::Effect& effect : effects) {
    simulation_.trace().add(effect.index());
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void FileDiscovery::perform(const EntrySearch::Read&) {
  entries_.read(node_.host(), deliver(attempt_, [this](const RegisterAnswer& answer) {
                  perform(search_.read(answer, simulation_.wall_ms()));
                }));
}

void FileDiscovery::perform(const EntrySearch::Write& effect) {
  has_written_ = true;
  simulation_.invariants().entry_is_replaced(effect.expected);
  entries_.compare_set(node_.host(), effect.expected, effect.desired,
                       deliver(attempt_, [this](const RegisterAnswer& answer) {
                         perform(search_.written(answer, simulation_.wall_ms()));
                       }));
}

void FileDiscovery::perform(const EntrySearch::Open&) {
  if (!server_.begin_jobs(true)) return perform(search_.not_opened("its door is in use"));
  perform(
      search_.opened({node_.setup().address, static_cast<std::uint16_t>(server_.listener())}, simulation_.wall_ms()));
}

void FileDiscovery::perform(const EntrySearch::Close&) { (void)server_.begin_jobs(false); }

void FileDiscovery::perform(const EntrySearch::Found& effect) {
  stop();
  handlers_.found(effect);
}

void FileDiscovery::perform(const EntrySearch::NotFound& effect) {
  stop();
  handlers_.not_found(effect.failure.reason);
}

void FileDiscovery::perform(const discovery::Tell& effect) {
  simulation_.trace().add(effect.event);
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: {}", node_.index(), effect.text));
}

// --- Keeping the entry. ----------------------------------------------------------------------------------

void FileDiscovery::plan_look() {
  const Ms pause_ms = protocol::LeaseTimes{simulation_.setup().loss_timeout_ms}.renewal_ms();
  simulation_.timeline().at(node_.when_shows(node_.local_ms() + pause_ms), [this, &node = node_, launch = launch_] {
    node.in_process(launch, true, [this] {
      plan_look();
      look_at_entry();
    });
  });
}

void FileDiscovery::look_at_entry() {
  looks_again_ = is_asking_;
  if (is_asking_) return;
  auto entry = withdrawn_ ? std::nullopt : server_.entry();
  if (entry) perform(keeper_.check_entry(*entry));
}

void FileDiscovery::heard(const Keeper::Effects& effects) {
  is_asking_ = false;
  perform(effects);
  if (!is_asking_ && looks_again_) look_at_entry();
}

void FileDiscovery::perform(const Keeper::Effects& effects) {
  for (const Keeper::Effect& effect : effects) {
    simulation_.trace().add(effect.index());
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void FileDiscovery::perform(const Keeper::Read&) {
  is_asking_ = true;
  entries_.read(node_.host(), deliver(keeping_, [this](const RegisterAnswer& answer) {
                  heard(keeper_.read(answer, simulation_.wall_ms()));
                }));
}

void FileDiscovery::perform(const Keeper::Write& effect) {
  if (!withdrawn_ && !server_.entry()) return;
  has_written_ = is_asking_ = true;
  entries_.compare_set(node_.host(), effect.expected, effect.desired,
                       deliver(keeping_, [this](const RegisterAnswer& answer) { heard(keeper_.written(answer)); }));
}

void FileDiscovery::perform(const Keeper::Gossip& effect) { server_.gossip_at(effect.to.port); }

void FileDiscovery::withdraw(std::function<void()> done) {
  if (!has_written_) return done();
  stop();
  ++keeping_;
  withdrawn_ = std::move(done);
  perform(keeper_.withdraw(node_.agent_id()));
}

void FileDiscovery::perform(const Keeper::Withdrawn&) { std::exchange(withdrawn_, nullptr)(); }

}  // namespace elastic::simulation
