#include "rendezvous/agent/preparation.h"

#include "health/messages/messages.h"
#include "src/base/check.h"
#include "src/base/patience.h"
#include "src/base/text.h"

namespace elastic::agent {

namespace {

// How long log directories and files may take to be opened. Training does not wait for a file system that hangs.
constexpr std::int64_t kOpenLogsMs = 2000;

}  // namespace

void Preparation::begin(const protocol::PrepareRound& round, Effects& out) {
  store_.reset();
  phase_.reset();
  awaits_logs_ = has_logs_;
  awaits_segment_ = has_segment_;
  if (awaits_segment_) out.push_back(LookAtSegment{});
  if (awaits_logs_) {
    out.push_back(OpenLogs{round.round, round.restart_count});
    out.push_back(StartTimer{patient_ms(kOpenLogsMs)});
  }
  // The node of group rank 0 serves the worker store; RunWorkers tells the others where it is.
  if (round.place.node_rank != 0) return;
  ++awaited_stores_;
  out.push_back(OpenStore{round.admits});
}

bool Preparation::is_answered_about_this_store() { return awaited_stores_ > 0 && --awaited_stores_ == 0; }

void Preparation::check(std::uint32_t phase) {
  phase_ = phase;
  check_is_answered_ = false;
}

void Preparation::check_invariants() const {
  ELASTIC_CHECK(has_logs_ || !awaits_logs_);
  ELASTIC_CHECK(awaited_stores_ >= 0);
}

std::optional<Waiting> Preparation::waiting() const {
  if (awaits_logs_) return Waiting{.what = "waiting for the log directory", .at_end = "going on without logs"};
  if (!phase_) return {};
  Waiting out{.what = *phase_ == health::kSelfPhase
                          ? "check before training: nodes test themselves"
                          : format("check before training: nodes test their links, phase {}", *phase_)};
  if (check_is_answered_) out.what += "; this node is done, others are still testing";
  return out;
}

}  // namespace elastic::agent
