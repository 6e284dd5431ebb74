#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/agent/lifecycle_events.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// The steps that end the processes of a round. Every process group of its workers gets a signal, and SIGKILL when the
// time that the signal allows is over. 1 s after that the processes that are still there are named, and in the end the
// node goes on without them. AllGone may end the ladder at any time. The node's timer belongs to it from begin(),
// begin_with_kill() or kill() on.
class KillLadder {
 public:
  // `stuck_timeout_ms`: from SIGKILL until processes that do not end are given up.
  explicit KillLadder(std::int64_t stuck_timeout_ms) : stuck_timeout_ms_(stuck_timeout_ms) {}

  // Signals all processes of the round, and kills those that are left after `patience_ms`. One worker may be spared the
  // signal.
  void begin(int signal, SignalWorkers::Cause cause, std::int64_t patience_ms, Effects& out,
             std::optional<int> spared = {});
  // The same for a round that hangs: stopped workers are continued, and none is waited for longer than kHangMs, since a
  // worker that hangs saves nothing. With StopWorkers::aborts SIGABRT comes first, kAbortMs before SIGTERM; with
  // StopWorkers::dumps no worker is signalled before dumps_awaited(), or before kDumpsMs are over.
  void begin_of_hang(const protocol::StopWorkers& order, std::int64_t patience_ms, Effects& out);
  static constexpr std::int64_t kHangMs = 5'000;
  static constexpr std::int64_t kAbortMs = 3'000;
  static constexpr std::int64_t kDumpsMs = 5'000;
  // AwaitDumps is answered.
  void dumps_awaited(Effects& out);
  // Like begin(), with SIGKILL at once.
  void begin_with_kill(Effects& out);
  // Sends SIGKILL now to processes that are being ended already.
  void kill(Effects& out);
  // The timer has fired: takes the next step. True: that was the last step, and what is left is not waited for any
  // more.
  [[nodiscard]] bool next(Effects& out);
  // Processes that SIGKILL has not ended, as text for a message.
  void named(const std::string& survivors, Effects& out);
  // A round begins. Processes that an earlier one has left behind are not its own.
  void forget_left_behind() { left_behind_.clear(); }

  bool has_killed() const { return stage_ == Stage::kKilled || stage_ == Stage::kNamed; }
  // Processes of the last round that were given up, as text for a message; empty: none.
  const std::string& left_behind() const { return left_behind_; }
  // The wait for the processes, without its times. `why` they are ended ("rank 3 failed") and `who` is waited for ("2
  // workers to end (ranks 4, 6)") are clauses.
  Waiting waiting(const std::string& why, const std::string& who) const;

 private:
  enum class Stage : std::uint8_t { kDumps, kAborted, kTold, kKilled, kNamed };
  void signal_hung(Effects& out);

  std::int64_t stuck_timeout_ms_;
  std::int32_t hang_patience_ms_ = 0;  // of begin_of_hang(); at most kHangMs
  bool aborts_ = false;                // of begin_of_hang()
  Stage stage_ = Stage::kTold;
  std::string survivors_;  // what named() was last told in this ladder
  std::string left_behind_;
};

}  // namespace elastic::agent
