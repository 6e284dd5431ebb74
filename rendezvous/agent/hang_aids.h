#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::agent {

// A node's part in looking for hangs: which evidence it reads, what it tells the coordinator unasked, and what its user
// is told. Evidence and signs are those of workers that run. The user hears of the coordinator's verdict whatever has
// become of the workers by then: a hang that ends the round ends the workers of other nodes at about the same time, and
// this node's may fail because of that before the verdict comes.
class HangAids {
 public:
  // The workers of this round are started.
  void round_began(protocol::RoundNumber round);
  // The workers are being stopped. Returns true if evidence is being read, which is of no use any more.
  bool round_ends();

  // Messages of the coordinator about that round.
  void collect(const protocol::CollectEvidence& message, Effects& out);
  void tell_hang(const protocol::HangTold& message, Effects& out);
  void tell_over(const protocol::HangOver& message, Effects& out);
  // The round is to end for a hang. If the verdict has not come (a session or a coordinator was lost), the user hears
  // that it is missing.
  void note_stop(const protocol::StopWorkers& message, Effects& out);
  // The order to end this round for a hang has come.
  bool ends(protocol::RoundNumber round) const { return ends_ && round_ == round; }
  void send_evidence(const EvidenceRead& event, Effects& out);
  void see_signs(const SignsSeen& event, std::int64_t now_ms, Effects& out);

 private:
  std::optional<protocol::RoundNumber> round_;  // the last one whose workers were started
  bool runs_ = false;                           // they are not being stopped
  bool ends_ = false;                           // it is to end for a hang
  std::optional<std::uint32_t> collection_;     // the one whose evidence is being read
  protocol::HangFacts told_facts_ = {};         // those that the coordinator knows
  bool is_told_ = false;                        // a hang has been told, and is not over
  // When the coordinator was last told these facts, and that disks move.
  static constexpr std::int64_t kNeverMs = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t facts_told_ms_ = kNeverMs;
  std::int64_t disks_told_ms_ = kNeverMs;
};

}  // namespace elastic::agent
