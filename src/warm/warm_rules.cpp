#include "src/warm/warm_rules.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::warm {

void WarmRules::round_began(bool is_warm, int restarts_left, std::int64_t now_ms) {
  ++rounds_;
  is_warm_ = is_warm;
  began_ms_ = now_ms;
  may_restart_ = restarts_left > 0;
  are_parked_ = false;  // some of them may have been lost
}

void WarmRules::round_ended(bool has_failed, std::int64_t now_ms) {
  if (!began_ms_) return;
  const std::int64_t lasted_ms = now_ms - *began_ms_;
  began_ms_.reset();
  if (!is_warm_ || !has_failed || lasted_ms >= settings_.after_ms) return;
  cold_ = format("a round of warm workers failed after {} s", lasted_ms / 1000);
}

std::optional<std::int64_t> WarmRules::next_ms() const {
  if (!began_ms_ || !may_restart_ || !may_be_warm() || server_ == Server::kStarting || are_parked_) return {};
  if (server_ == Server::kNone && servers_ >= kMostServers) return {};
  const bool is_first = rounds_ == 1;
  return *began_ms_ + (is_first ? settings_.after_ms : std::min(kParkAfterMs, settings_.after_ms));
}

WarmRules::Step WarmRules::next_step(std::int64_t now_ms) {
  const auto due_ms = next_ms();
  if (!due_ms || now_ms < *due_ms) return Step::kNothing;
  if (server_ == Server::kReady) {
    are_parked_ = true;
    return Step::kPark;
  }
  server_ = Server::kStarting;
  ++servers_;
  return Step::kStartServer;
}

void WarmRules::server_has_gone(const std::string& why, bool for_good) {
  server_ = Server::kNone;
  are_parked_ = false;
  server_went_ = why;
  if (for_good) cold_ = why;
}

void WarmRules::must_begin_again() {
  if (server_ != Server::kNone) --servers_;  // nothing was wrong with it
  server_ = Server::kNone;
  are_parked_ = false;
  server_went_.clear();
}

std::string WarmRules::why_cold(int parked, int wanted) const {
  if (!settings_.never.empty()) return settings_.never;
  if (!cold_.empty()) return cold_;
  if (server_ == Server::kNone && !server_went_.empty()) return server_went_;
  if (server_ != Server::kReady) return "the import server is not ready";
  if (parked < wanted) return format("{} of {} workers wait", parked, wanted);
  return {};
}

WarmRules::Outlook WarmRules::outlook(int parked, int wanted) const {
  using State = Outlook::State;
  if (settings_.mode == Mode::kOff) return {};
  const std::string why = why_cold(parked, wanted);
  if (!may_be_warm()) return {State::kCold, why};
  if (rounds_ > 0 && !may_restart_) return {State::kCold, "no restart is left"};
  if (server_ == Server::kNone && servers_ >= kMostServers) return {State::kCold, why};
  return {why.empty() ? State::kReady : State::kPreparing, why};
}

bool WarmRules::is_to_tell(const std::string& why) {
  if (settings_.mode != Mode::kOn || rounds_ == 0 || why == told_) return false;
  told_ = why;
  return true;
}

}  // namespace elastic::warm
