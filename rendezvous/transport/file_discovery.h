#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/discovery/entry_search.h"
#include "rendezvous/transport/discovery.h"
#include "rendezvous/transport/entry_file.h"
#include "rendezvous/transport/gossip_visits.h"
#include "src/net/names.h"

namespace elastic::transport {

// Finds the coordinator by an entry in a file: carries out what discovery::EntrySearch decides, and
// discovery::EntryKeeper as long as the job's leader is in this process.
class FileDiscovery : public Discovery {
 public:
  FileDiscovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own, ToStore to_store,
                OnHosting on_hosting);

  void find(const Known& known, OnFound on_found) override;
  void stop() override;
  void tried(discovery::Tried how) override;
  bool may_be_stale() const override { return true; }
  std::string explain(const std::string& problem) const override;
  discovery::EndpointAdvice advice() const override { return advice_; }
  bool has_untried() const override { return search_.has_untried(); }
  void keep(Leader leader, Secret secret) override;
  void lead_changes() override {
    if (leader_ && !is_withdrawn_) keep_timer_.start(0, [this] { look_at_entry(); });
  }
  void withdraw(std::function<void()> done) override;
  bool hangs() const override { return finding_.hangs() || keeping_.hangs(); }

 private:
  using EntrySearch = discovery::EntrySearch;
  using Keeper = discovery::EntryKeeper;

  void perform(EntrySearch::Effects effects);
  void perform(const EntrySearch::Read&);
  void perform(const EntrySearch::Write& effect);
  void perform(const EntrySearch::Open&);
  void perform(const EntrySearch::Hosts& effect);
  void perform(const EntrySearch::Close&);
  void perform(const EntrySearch::Found& effect);
  void perform(const EntrySearch::NotFound& effect);
  static void perform(const discovery::Tell& effect);
  void found(Way way);
  void in_vain(const std::string& problem);
  CoordinatorServer* here() const;

  void look_at_entry();
  std::optional<discovery::Entry> own_entry() const;
  void heard(Keeper::Effects effects);
  void perform(Keeper::Effects effects);
  void perform(const Keeper::Read&);
  void perform(const Keeper::Write& effect);
  void perform(const Keeper::Gossip& effect);
  void perform(const Keeper::Withdrawn&);

  // The same entry twice, so that looking for a coordinator and keeping the entry do not wait for each other.
  EntryFile finding_;
  EntryFile keeping_;
  net::Resolver resolver_;
  EntrySearch search_;
  OnFound on_found_;
  std::uint64_t attempt_ = 0;
  discovery::EndpointAdvice advice_;
  bool is_own_address_of_another_ = false;  // the last place is on another host, and this one has its address, too

  const protocol::AgentId own_;
  Keeper keeper_;
  net::Timer keep_timer_;
  Leader leader_;
  Secret secret_;
  GossipVisits visits_;
  net::Resolver visit_resolver_;
  bool is_asking_ = false;    // keeping_ has not answered
  bool looks_again_ = false;  // once keeping_ has answered
  bool has_written_ = false;
  bool is_withdrawn_ = false;  // or about to be
  std::function<void()> on_withdrawn_;
};

}  // namespace elastic::transport
