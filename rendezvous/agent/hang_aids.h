#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::agent {

// A node's part in looking for hangs: which evidence it reads, what it tells the coordinator of by itself, and what its
// user is told. Evidence and signs are those of workers that run. What the coordinator has found is told whatever has
// become of the workers by then: where a hang ends the round, those of another node are ended at about the same time,
// and this node's may fail of that before the verdict is here.
class HangAids {
 public:
  // The workers of this round are started.
  void round_began(protocol::RoundNumber round);
  // They are being stopped. Returns true if evidence is being read, which is of no use any more.
  bool round_ends();

  // Messages of the coordinator about that round.
  void on(const protocol::CollectEvidence& message, Effects& out);
  void on(const protocol::HangTold& message, Effects& out);
  void on(const protocol::HangOver& message, Effects& out);
  // The round is to end for a hang. If the verdict has not come (a session or a coordinator was lost), the user hears
  // that it is missing.
  void on(const protocol::StopWorkers& message, Effects& out);
  // That order has come for this round.
  bool ends(protocol::RoundNumber round) const { return ends_ && round_ == round; }
  // What this node has seen and read.
  void on(const EvidenceRead& event, Effects& out);
  void on(const SignsSeen& event, std::int64_t now_ms, Effects& out);

 private:
  std::optional<protocol::RoundNumber> round_;  // the last one whose workers were started
  bool runs_ = false;                           // they are not being stopped
  bool ends_ = false;                           // it is to end for a hang
  std::optional<std::uint32_t> collection_;     // of which evidence is being read
  protocol::HangFacts told_facts_ = {};         // as the coordinator knows them
  bool is_told_ = false;                        // a hang has been told, and is not over
  // When it was told them last, and that disks move.
  static constexpr std::int64_t kNeverMs = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t facts_told_ms_ = kNeverMs;
  std::int64_t disks_told_ms_ = kNeverMs;
};

}  // namespace elastic::agent
