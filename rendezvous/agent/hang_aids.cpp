#include "rendezvous/agent/hang_aids.h"

#include <csignal>
#include <utility>

#include "health/progress/limits.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

void HangAids::round_began(RoundNumber round) {
  *this = {};
  round_ = round;
  runs_ = true;
}

bool HangAids::round_ends() {
  runs_ = false;
  return std::exchange(collection_, std::nullopt).has_value();
}

void HangAids::collect(const CollectEvidence& message, Effects& out) {
  if (!runs_ || message.round != round_) return;
  collection_ = message.collection;
  out.push_back(ReadEvidence{message});
}

void HangAids::send_evidence(const EvidenceRead& event, Effects& out) {
  if (event.round != round_ || event.collection != collection_) return;
  collection_.reset();
  out.push_back(ToCoordinator{NodeEvidence{event.round, event.collection, encode_facts(event.facts)}});
}

void HangAids::tell_hang(const HangTold& message, Effects& out) {
  if (message.round != round_) return;
  if (message.what == HangTold::What::kVerdict) is_told_ = true;
  out.push_back(TellHang{message});
  // Workers that are being stopped are continued for that anyway.
  if (message.what == HangTold::What::kContinues && message.is_stopped && runs_) out.push_back(SignalWorkers{SIGCONT});
}

void HangAids::tell_over(const HangOver& message, Effects& out) {
  if (message.round != round_) return;
  if (std::exchange(collection_, std::nullopt)) out.push_back(StopEvidence{});
  is_told_ = false;
  out.push_back(TellHangOver{message});
}

void HangAids::note_stop(const StopWorkers& message, Effects& out) {
  if (!message.hangs || message.round != round_) return;
  ends_ = true;
  if (is_told_) return;
  out.push_back(
      Warn{format("round {} hangs, and is stopped for that; the verdict has not reached this node, but it may "
                  "stand in the logs of the others",
                  message.round),
           "hang_verdict_missing"});
}

void HangAids::see_signs(const SignsSeen& event, std::int64_t now_ms, Effects& out) {
  if (!runs_ || event.round != round_) return;
  const bool tells_disks = event.disks_move && now_ms - disks_told_ms_ >= limits::kProgressReportMs;
  // Facts that still hold are told again, since another coordinator may have taken over.
  const bool tells_again = event.facts != HangFacts{} && now_ms - facts_told_ms_ >= limits::kProgressReportMs;
  if (event.facts == told_facts_ && !tells_disks && !tells_again) return;
  told_facts_ = event.facts;
  facts_told_ms_ = now_ms;
  if (tells_disks) disks_told_ms_ = now_ms;
  out.push_back(ToCoordinator{HangSigns{event.round, event.facts, tells_disks}});
}

}  // namespace elastic::agent
