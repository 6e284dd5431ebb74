#pragma once

#include <array>
#include <tuple>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/state_table.h"

namespace elastic::agent {

// The cells of an event, in the order of Lifecycle::State. A node that has ended ignores everything.
template <class Event>
struct LifecycleRow {
  std::array<Cell<Lifecycle, Event, Effects&>, 6> cells;
};

template <class Event>
struct InStates {
  using Cell = elastic::Cell<Lifecycle, Event, Effects&>;
  Cell idle = {};
  Cell preparing = {};
  Cell running = {};
  Cell succeeded = {};
  Cell stopping = {};
  Cell ending = {};
  Cell others = {};  // those that are not named
};

template <class Event>
consteval LifecycleRow<Event> on(const InStates<Event>& in) {
  return {row_of(std::array{in.idle, in.preparing, in.running, in.succeeded, in.stopping, in.ending}, in.others)};
}

// The life of a node as a table: what it does on each event, in each state.
//
//   idle        no process of a round is left here: the node waits for a round, and can be in one
//   preparing   a round was ordered: its store, its log files and the check come before its workers
//   running     the workers of the round run
//   succeeded   all of them have exited with 0; the job goes on
//   stopping    processes of the round are being ended; the node goes on
//   ending      there is a job result: processes are ended, other nodes are told, and then the node ends
//
//   idle --PrepareRound--> preparing --RunWorkers--> running --all exit 0--> succeeded
//    ^                         |                        | failure, StopWorkers    |
//    |                         +------> stopping <------+-------------------------+
//    +----------all gone----------------- |            any --EndJob--> ending --all gone, Dismiss--> ended
struct LifecycleTable {
  using L = Lifecycle;
  using State = Lifecycle::State;
  static_assert(std::array{State::kIdle, State::kPreparing, State::kRunning, State::kSucceeded, State::kStopping,
                           State::kEnding, State::kEnded} ==
                std::array{State{0}, State{1}, State{2}, State{3}, State{4}, State{5}, State{6}});
  static constexpr StateSet kInRound{State::kPreparing, State::kRunning, State::kSucceeded};
  static constexpr StateSet kRunsOrSucceeded{State::kRunning, State::kSucceeded};
  static constexpr StateSet kStopping{State::kStopping, State::kEnding};
  // The coordinator could give the ranks of the workers to other nodes.
  static constexpr StateSet kNeedsLease{State::kPreparing, State::kRunning};

  static constexpr std::tuple kRows{
      // --- The coordinator's orders and words. ---
      on<protocol::PrepareRound>({.idle = &L::prepare_round, .others = &L::refuse_round}),
      on<protocol::RunCheck>({.preparing = &L::run_check, .others = ignored}),
      on<protocol::RunWorkers>({.preparing = &L::run_workers, .others = ignored}),
      on<protocol::StopWorkers>({.preparing = &L::stop_on_order,
                                 .running = &L::stop_running_on_order,
                                 .succeeded = &L::stop_succeeded_on_order,
                                 .stopping = &L::hurry_on_order,
                                 .others = &L::note_order_to_stop}),
      on<protocol::EndJob>({.idle = &L::end_idle,
                            .succeeded = &L::end_succeeded,
                            .stopping = &L::end_stopping,
                            .ending = &L::hear_result_again,
                            .others = &L::end_round}),
      on<protocol::Dismiss>({.others = &L::be_dismissed}),
      on<protocol::Rejected>(
          {.idle = &L::be_rejected_idle, .ending = &L::be_rejected_ending, .others = &L::be_rejected_in_round}),
      on<protocol::LeaveJob>({.ending = ignored, .others = &L::leave_on_order}),
      on<protocol::Awaiting>({.others = &L::note_awaited}),
      on<protocol::KeepState>({.others = &L::keep_state}),
      on<protocol::StacksWanted>({.others = &L::collect_stacks}),
      on<protocol::CollectEvidence>({.others = &L::collect_evidence}),
      on<protocol::HangTold>({.others = &L::tell_hang}),
      on<protocol::HangOver>({.others = &L::tell_hang_over}),
      on<protocol::LoaderTold>({.others = &L::hear_loader}),
      on<protocol::AreYouThere>({.others = ignored}),  // the link has answered
      on<protocol::Resigned>({.others = ignored}),     // the link connects again
      on<protocol::NextRound>({.others = ignored}),    // the link has answered

      // --- The session with the coordinator. ---
      on<Begin>({.others = ignored}),  // the agent joins by itself
      on<Detached>({.idle = &L::detach_idle, .others = &L::detach}),
      on<Attached>({.idle = &L::attach_idle, .succeeded = &L::attach_succeeded, .others = &L::attach}),
      on<LeaseOver>({.idle = ignored, .succeeded = ignored, .others = &L::end_with_lease}),
      on<GivenUp>({.idle = &L::give_up, .ending = &L::give_up, .others = &L::give_up_round}),

      // --- Answers about the round that is being prepared. ---
      on<StoreOpened>({.preparing = &L::store_opened, .others = &L::store_opened_late}),
      on<StoreFailed>({.preparing = &L::store_failed, .others = &L::store_failed_late}),
      on<LogsOpened>({.preparing = &L::logs_opened, .others = ignored}),
      on<LogsFailed>({.preparing = &L::logs_failed, .others = ignored}),
      on<NodeChecked>({.preparing = &L::node_checked, .others = ignored}),

      // --- The workers. ---
      on<WorkerStarted>({.others = &L::worker_started}),
      on<WorkerNotStarted>({.others = &L::worker_not_started}),
      on<WorkerExited>({.running = &L::worker_exited_running, .others = &L::worker_exited}),
      on<ErrorFileWritten>({.running = &L::error_file_written, .others = ignored}),
      on<ProgressMade>({.running = &L::progress_made, .others = ignored}),
      on<SignsSeen>({.running = &L::signs_seen, .succeeded = &L::signs_seen, .others = ignored}),
      on<EvidenceRead>({.running = &L::evidence_read, .succeeded = &L::evidence_read, .others = ignored}),
      on<StacksCollected>({.others = &L::stacks_collected}),
      on<LoaderSaid>(
          {.preparing = &L::loader_said, .running = &L::loader_said, .stopping = &L::loader_said, .others = ignored}),

      // --- The end of a round's processes. ---
      on<SignalReceived>({.others = &L::signal_received}),
      on<SegmentSeen>({.idle = &L::segment_seen_idle, .preparing = &L::segment_seen_preparing, .others = ignored}),
      on<GuardianLost>({.others = &L::guardian_lost}),
      on<DumpsAwaited>({.stopping = &L::dumps_awaited, .ending = &L::dumps_awaited, .others = ignored}),
      on<SurvivorsNamed>({.stopping = &L::survivors_named, .ending = &L::survivors_named, .others = ignored}),
      on<AllGone>({.stopping = &L::all_gone_stopping, .ending = &L::all_gone_ending, .others = impossible}),
      on<CrashFound>({.stopping = &L::crash_found, .ending = &L::crash_found, .others = ignored}),
      on<BackgroundFound>({.ending = &L::background_found, .others = impossible}),
      on<DetailsGathered>({.ending = &L::details_gathered, .others = impossible}),
      on<TimerFired>({.idle = &L::timer_fired_idle,
                      .preparing = &L::timer_fired_preparing,
                      .running = &L::timer_fired_running,
                      .succeeded = &L::timer_fired_succeeded,
                      .stopping = &L::timer_fired_stopping,
                      .ending = &L::timer_fired_ending}),
  };
};

}  // namespace elastic::agent
