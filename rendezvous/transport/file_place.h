#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/discovery/discovery.h"
#include "rendezvous/transport/entry_file.h"
#include "rendezvous/transport/gossip_visits.h"
#include "rendezvous/transport/meeting_place.h"
#include "src/net/names.h"

namespace elastic::transport {

// Finds the coordinator by an entry in a file: carries out what discovery::Discovery decides, and
// discovery::EntryKeeper as long as the job's leader is in this process.
class FilePlace : public MeetingPlace {
 public:
  FilePlace(net::Loop& loop, const MeetingSettings& settings, protocol::AgentId own, ToStore to_store,
            OnHosting on_hosting);

  void find(const Known& known, OnFound on_found) override;
  void stop() override;
  void tried(discovery::Tried how) override;
  bool may_be_stale() const override { return true; }
  std::string explain(const std::string& problem) const override;
  bool has_untried() const override { return discovery_.has_untried(); }
  void keep(Leader leader, Secret secret) override;
  void lead_changes() override {
    if (leader_ && !is_withdrawn_) keep_timer_.start(0, [this] { look(); });
  }
  void withdraw(std::function<void()> done) override;
  bool hangs() const override { return finding_.hangs() || keeping_.hangs(); }

 private:
  using Discovery = discovery::Discovery;
  using Keeper = discovery::EntryKeeper;

  void perform(Discovery::Effects effects);
  void perform(const Discovery::Read&);
  void perform(const Discovery::Write& effect);
  void perform(const Discovery::Open&);
  void perform(const Discovery::Hosts& effect);
  void perform(const Discovery::Close&);
  void perform(const Discovery::Found& effect);
  void perform(const Discovery::NotFound& effect);
  static void perform(const discovery::Tell& effect);
  void found(Way way);
  void in_vain(const std::string& problem);
  CoordinatorServer* here() const;

  void look();
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
  Discovery discovery_;
  OnFound on_found_;
  std::uint64_t attempt_ = 0;
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
