#include "rendezvous/agent/kill_ladder.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::agent {

namespace {

// From SIGKILL to the message that names the processes that have not ended.
constexpr std::int64_t kNameSurvivorsMs = 1000;

}  // namespace

void KillLadder::begin(int signal, SignalWorkers::Cause cause, std::int64_t patience_ms, Effects& out,
                       std::optional<int> spared) {
  ELASTIC_CHECK(signal > 0 && patience_ms >= 0);
  stage_ = Stage::kTold;
  survivors_.clear();
  out.push_back(SignalWorkers{.signal = signal, .cause = cause, .spared = spared});
  out.push_back(StartTimer{patience_ms});
  out.push_back(AwaitAllGone{});
}

void KillLadder::begin_of_hang(const protocol::StopWorkers& order, std::int64_t patience_ms, Effects& out) {
  hang_patience_ms_ = static_cast<std::int32_t>(std::min(patience_ms, kHangMs));
  aborts_ = order.aborts;
  if (!order.dumps) return signal_hung(out);
  stage_ = Stage::kDumps;
  out.push_back(AwaitDumps{order.round});
  out.push_back(StartTimer{kDumpsMs});
}

void KillLadder::signal_hung(Effects& out) {
  if (aborts_) {
    begin(SIGABRT, SignalWorkers::Cause::kOurs, kAbortMs, out);
    stage_ = Stage::kAborted;
  } else {
    begin(SIGTERM, SignalWorkers::Cause::kOthersOrder, hang_patience_ms_, out);
  }
  out.push_back(SignalWorkers{SIGCONT});
}

void KillLadder::dumps_awaited(Effects& out) {
  if (stage_ == Stage::kDumps) signal_hung(out);
}

void KillLadder::begin_with_kill(Effects& out) {
  survivors_.clear();
  kill(out);
  out.push_back(AwaitAllGone{});
}

void KillLadder::kill(Effects& out) {
  const bool is_first = std::exchange(stage_, Stage::kKilled) == Stage::kDumps;
  out.push_back(SignalWorkers{SIGKILL});
  out.push_back(StartTimer{kNameSurvivorsMs});
  if (is_first) out.push_back(AwaitAllGone{});
}

bool KillLadder::next(Effects& out) {
  switch (stage_) {
    case Stage::kDumps: signal_hung(out); return false;
    case Stage::kAborted:
      stage_ = Stage::kTold;
      out.push_back(SignalWorkers{.signal = SIGTERM, .cause = SignalWorkers::Cause::kOthersOrder});
      out.push_back(StartTimer{kHangMs});
      return false;
    case Stage::kTold: kill(out); return false;
    case Stage::kKilled:
      stage_ = Stage::kNamed;
      out.push_back(NameSurvivors{});
      out.push_back(StartTimer{std::max<std::int64_t>(stuck_timeout_ms_ - kNameSurvivorsMs, 0)});
      return false;
    case Stage::kNamed: break;
  }
  out.push_back(AbandonWorkers{});
  left_behind_ = survivors_.empty() ? "a worker" : survivors_;
  return true;
}

void KillLadder::named(const std::string& survivors, Effects& out) {
  survivors_ = survivors;
  out.push_back(Warn{format("{} has not exited after SIGKILL", survivors), "stuck"});
}

Waiting KillLadder::waiting(const std::string& why, const std::string& who) const {
  if (stage_ == Stage::kDumps) {
    return {.what = format("{}: waiting for dumps of the flight recorders", why), .at_end = "stopped", .unusual = true};
  }
  if (!has_killed()) {
    return {.what = format("{}: waiting for {}", why, who), .at_end = "killed", .unusual = true};
  }
  return {.what = format("sent SIGKILL: waiting for {}", survivors_.empty() ? who : survivors_),
          .at_end = "giving up",
          .unusual = true};
}

}  // namespace elastic::agent
