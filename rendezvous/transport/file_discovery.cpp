#include "rendezvous/transport/file_discovery.h"

#include <algorithm>
#include <utility>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"

namespace elastic::transport {

using discovery::RegisterAnswer;
using process::wall_clock_ms;

namespace {

// How long it may take to resolve the name in an entry.
constexpr std::int64_t kEntryResolveMs = 2'000;

}  // namespace

FileDiscovery::FileDiscovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                             ToStore to_store, OnHosting on_hosting)
    : Discovery(loop, settings, own, std::move(to_store), std::move(on_hosting)),
      finding_(loop, settings.path, settings.job),
      keeping_(loop, settings.path, settings.job),
      resolver_(loop),
      search_({.place = finding_.name(),
               .process = own,
               .host = net::host_name(),
               .may_host = settings.is_host != false,
               .refusal_is_proof = settings.refusal_is_proof}),
      own_(own),
      keeper_(finding_.name()),
      keep_timer_(loop),
      visits_(loop),
      visit_resolver_(loop) {
  if (settings.max_nodes > 1) {
    keeping_.look_whether_shared([this](const std::string& kind) {
      advice_ = {.text = format("{} is on {}, which other hosts do not see: nodes on other hosts begin a job of their "
                                "own; name a file in a directory that all hosts share, or an endpoint",
                                finding_.name(), kind),
                 .is_told = true};
      log::answer("discovery_not_shared", advice_.text);
    });
  }
}

// --- Finding the coordinator. ----------------------------------------------------------------------------

void FileDiscovery::find(const Known& known, OnFound on_found) {
  stop();
  on_found_ = std::move(on_found);
  perform(search_.find({known.belongs, known.has_met_it}));
}

void FileDiscovery::stop() {
  ++attempt_;
  on_found_ = nullptr;
  finding_.forget();
}

void FileDiscovery::tried(discovery::Tried how) {
  // Each host may have a bridge with the same address, and on this host nobody listens there.
  const bool is_misled = how == discovery::Tried::kRefused && is_own_address_of_another_;
  perform(search_.tried(is_misled ? discovery::Tried::kSilent : how, wall_clock_ms()));
}

std::string FileDiscovery::explain(const std::string& problem) const {
  return search_.explain(problem, wall_clock_ms());
}

void FileDiscovery::perform(EntrySearch::Effects effects) {
  for (const EntrySearch::Effect& effect : effects) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void FileDiscovery::perform(const EntrySearch::Read&) {
  finding_.read([this](const RegisterAnswer& answer) { perform(search_.read(answer, wall_clock_ms())); });
}

void FileDiscovery::perform(const EntrySearch::Write& effect) {
  has_written_ = true;
  finding_.compare_set(effect.expected, effect.desired,
                       [this](const RegisterAnswer& answer) { perform(search_.written(answer, wall_clock_ms())); });
}

void FileDiscovery::perform(const EntrySearch::Open&) {
  // A node that has a peer port already begins the job there: it may have to be that very port.
  CoordinatorServer* const there = here();
  if (there == nullptr) {
    if (const Status opened = open_server(settings_.coordinator_port); !opened) {
      return perform(search_.not_opened(opened.error().text()));
    }
  } else if (there != server() && there->jobs() > 0) {
    return perform(search_.not_opened("nodes of the job elect a coordinator here"));
  } else {
    there->set_peer_server(false);
  }
  const std::string address = discovery::entry_address(settings_.node_address, net::own_addresses());
  perform(search_.opened({address, here()->port()}, wall_clock_ms()));
}

CoordinatorServer* FileDiscovery::here() const {
  if (server() != nullptr) return server();
  return leader_ ? leader_() : nullptr;
}

void FileDiscovery::perform(const EntrySearch::Hosts& effect) {
  tell_hosting(*here(), "hosts", effect.where, effect.reason);
}

void FileDiscovery::perform(const EntrySearch::Close&) {
  if (server() != nullptr) return close_server();
  here()->set_peer_server(true);
}

void FileDiscovery::perform(const EntrySearch::Found& effect) {
  const std::uint16_t port = effect.place.port;
  if (effect.is_own) return found({.addresses = {kLoopback}, .ports = {port}, .home = true});
  resolver_.resolve(effect.place.address, kEntryResolveMs,
                    [this, attempt = attempt_, port, may_begin = effect.may_begin,
                     is_other_host = effect.is_other_host](Result<std::vector<std::string>> addresses) {
                      if (attempt != attempt_) return;
                      if (!addresses) return in_vain(addresses.error().reason);
                      is_own_address_of_another_ = is_other_host && std::ranges::any_of(*addresses, net::is_ours);
                      found({.addresses = std::move(*addresses), .ports = {port}, .may_begin = may_begin});
                    });
}

void FileDiscovery::in_vain(const std::string& problem) {
  const std::string why = explain(problem);
  tried(discovery::Tried::kSilent);
  found({.problem = why});
}

void FileDiscovery::perform(const EntrySearch::NotFound& effect) {
  found({.problem = effect.failure.reason, .hopeless = effect.failure.hopeless});
}

void FileDiscovery::found(Way way) {
  finding_.forget();
  if (const OnFound call = std::exchange(on_found_, nullptr)) call(std::move(way));
}

void FileDiscovery::perform(const discovery::Tell& effect) {
  using Level = discovery::Tell::Level;
  const log::Level level = effect.level == Level::kDebug  ? log::Level::kDebug
                           : effect.level == Level::kInfo ? log::Level::kInfo
                                                          : log::Level::kWarning;
  log::write_event(level, effect.event, effect.text, Json::object());
}

// --- Keeping the entry. ----------------------------------------------------------------------------------

void FileDiscovery::keep(Leader leader, Secret secret) {
  leader_ = std::move(leader);
  secret_ = std::move(secret);
  look_at_entry();
}

void FileDiscovery::look_at_entry() {
  const protocol::LeaseTimes lease{settings_.loss_timeout_ms};
  keep_timer_.start(std::max(lease.renewal_ms(), kShortestLookMs), [this] { look_at_entry(); });
  if (is_asking_) {
    looks_again_ = true;
    return;
  }
  const auto entry = own_entry();
  if (!entry) return visits_.end_all();
  perform(keeper_.check_entry(*entry));
}

std::optional<discovery::Entry> FileDiscovery::own_entry() const {
  const CoordinatorServer* const server = leader_();
  auto entry = server != nullptr ? server->entry(settings_.job) : std::nullopt;
  if (!entry) return {};
  entry->leader.address = discovery::entry_address(settings_.node_address, net::own_addresses());
  entry->host = net::host_name();
  return entry;
}

void FileDiscovery::perform(Keeper::Effects effects) {
  for (const Keeper::Effect& effect : effects) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void FileDiscovery::perform(const Keeper::Read&) {
  is_asking_ = true;
  keeping_.read([this](const RegisterAnswer& answer) { heard(keeper_.read(answer, wall_clock_ms())); });
}

void FileDiscovery::perform(const Keeper::Write& effect) {
  // The leader may have lost its votes since the file was read, and the job may have ended elsewhere.
  if (!is_withdrawn_ && !own_entry()) return;
  has_written_ = true;
  is_asking_ = true;
  keeping_.compare_set(effect.expected, effect.desired,
                       [this](const RegisterAnswer& answer) { heard(keeper_.written(answer)); });
}

// One question at a time: a file system may take longer than the pause between two looks.
void FileDiscovery::heard(Keeper::Effects effects) {
  is_asking_ = false;
  perform(std::move(effects));
  if (!is_asking_ && !is_withdrawn_ && std::exchange(looks_again_, false)) look_at_entry();
}

void FileDiscovery::perform(const Keeper::Gossip& effect) {
  visit_resolver_.resolve(effect.to.address, kEntryResolveMs,
                          [this, port = effect.to.port](Result<std::vector<std::string>> addresses) {
                            const CoordinatorServer* const server = leader_();
                            if (!addresses || server == nullptr) return;
                            visits_.go(*addresses, port, secret_(), [this] {
                              const CoordinatorServer* const still = leader_();
                              return still == nullptr ? std::nullopt : still->gossip(settings_.job);
                            });
                          });
}

void FileDiscovery::withdraw(std::function<void()> done) {
  if (!has_written_) return done();
  stop();
  is_withdrawn_ = true;
  keep_timer_.stop();
  visits_.end_all();
  on_withdrawn_ = std::move(done);
  perform(keeper_.withdraw(own_));
}

void FileDiscovery::perform(const Keeper::Withdrawn&) { std::exchange(on_withdrawn_, nullptr)(); }

}  // namespace elastic::transport
