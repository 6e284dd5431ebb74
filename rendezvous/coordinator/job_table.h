#pragma once

#include <array>
#include <tuple>

#include "rendezvous/coordinator/coordinator.h"
#include "src/base/state_table.h"

namespace elastic::coordinator {

// The cells of an event, in the order of Coordinator::State. `More` is what its handlers get beside the event. A
// coordinator that has ended ignores everything; on_event ends its watch for hangs.
template <class Event, class... More>
struct JobRow {
  std::array<Cell<Coordinator, Event, More...>, 6> cells;
};

template <class Event, class... More>
struct InStates {
  using Cell = elastic::Cell<Coordinator, Event, More...>;
  Cell forming = {};
  Cell recovery = {};
  Cell preparing = {};
  Cell running = {};
  Cell stopping = {};
  Cell ending = {};
  Cell others = {};  // those that are not named
};

template <class Event>
using OnEvent = InStates<Event, Effects&>;
template <class Message>
using OnMessage = InStates<Message, membership::Node&, Effects&>;

template <class Event, class... More>
consteval JobRow<Event, More...> row(const InStates<Event, More...>& in) {
  return {row_of(std::array{in.forming, in.recovery, in.preparing, in.running, in.stopping, in.ending}, in.others)};
}

// The life of a job as a table: what its coordinator does on each event and each message of a node, in each state.
//
//   forming     no round is on: the coordinator waits until it has the nodes of the next one
//   recovery    agents report a round that an earlier coordinator has formed: it is learned, and goes on or is stopped
//   preparing   a round is formed: its store, its check and the votes come before its workers
//   running     the workers of the round run
//   stopping    the round's workers are being ended; then the next round is formed, or the job ends
//   ending      there is a job result: every node is to hear it
//
//                +-------------------- all stopped, restart paid for -----------------+
//                v                                                                    |
//   forming -- enough nodes --> preparing -- store open, check passed --> running --> stopping
//      |  ^                        |                                        |   failure, loss, leave,
//      |  |                        +------- the same ----------------------------> scale up
//      |  +-- round re-formed                                               |
//      +-- join timeout --> ending <-- all succeeded -----------------------+
//                             |  ^---------------- all stopped, no restart left, or told to end
//                             +-- all nodes have the result --> ended
//
//   recovery takes the place of forming if agents report a round that an earlier coordinator formed.
struct JobTable {
  using C = Coordinator;
  using State = Coordinator::State;
  static_assert(std::array{State::kForming, State::kRecovery, State::kPreparing, State::kRunning, State::kStopping,
                           State::kEnding, State::kEnded} ==
                std::array{State{0}, State{1}, State{2}, State{3}, State{4}, State{5}, State{6}});
  static constexpr StateSet kInRound{State::kRecovery, State::kPreparing, State::kRunning, State::kStopping};

  static constexpr std::tuple kRows{
      // --- Sessions, votes and time. ---
      row(OnEvent<MessageReceived>{.others = &C::on_message}),
      row(OnEvent<KeepAliveReceived>{.others = &C::on_keep_alive}),
      row(OnEvent<LeaseAckReceived>{.others = &C::on_lease_ack}),
      row(OnEvent<SessionEnded>{.others = &C::on_session_ended}),
      row(OnEvent<Introduced>{.others = &C::on_introduced}),
      row(OnEvent<NodeEmptied>{.recovery = &C::on_node_emptied_in_recovery, .others = &C::on_node_emptied}),
      row(OnEvent<TimePassed>{.others = &C::on_time_passed}),
      row(OnEvent<PeerPortTried>{.others = &C::on_peer_port_tried}),
      row(OnEvent<OwnAgentEnded>{.others = &C::on_own_agent_ended}),
      row(OnEvent<OwnAgentElsewhere>{.others = &C::on_own_agent_elsewhere}),
      row(OnEvent<HostLeaves>{.recovery = ignored, .ending = ignored, .others = &C::on_host_leaves}),
      row(OnEvent<CoordinatorGossiped>{.ending = ignored, .others = &C::on_coordinator_gossiped}),
      row(OnEvent<OperatorOrder>{.others = &C::on_operator_order}),

      // --- Messages of a node that has joined. ---
      row(OnMessage<protocol::NodeJoins>{.others = ignored}),  // this session has joined already
      row(OnMessage<protocol::StoreIsOpen>{.preparing = &C::on_store_is_open, .others = ignored}),
      row(OnMessage<protocol::CheckDone>{.preparing = &C::on_check_done, .others = ignored}),
      row(OnMessage<protocol::RoundHeard>{.preparing = &C::on_round_heard, .others = ignored}),
      row(OnMessage<protocol::WorkerFailed>{.forming = ignored,
                                            .stopping = &C::on_worker_failed_stopping,
                                            .ending = ignored,
                                            .others = &C::on_worker_failed}),
      // Workers of a round that is being prepared do not run yet: no elastic-run says this then.
      row(OnMessage<protocol::WorkersSucceeded>{.preparing = ignored, .others = &C::on_workers_succeeded}),
      row(OnMessage<protocol::NodeCannotRun>{.forming = &C::on_node_cannot_stop_forming,
                                             .recovery = &C::on_node_cannot_stop,
                                             .stopping = &C::on_node_cannot_stop,
                                             .ending = &C::note_that_it_stays,
                                             .others = &C::on_node_cannot_run}),
      row(OnMessage<protocol::NodeStopped>{.others = &C::on_node_stopped}),
      row(OnMessage<protocol::NodeLeaves>{
          .recovery = &C::on_node_leaves_in_recovery, .ending = ignored, .others = &C::on_node_leaves}),
      row(OnMessage<protocol::JobResultHeard>{.ending = &C::on_job_result_heard, .others = ignored}),
      row(OnMessage<protocol::NodeProgress>{.running = &C::on_node_progress, .others = ignored}),
      row(OnMessage<protocol::HangSigns>{.running = &C::on_hang_signs, .others = ignored}),
      row(OnMessage<protocol::NodeEvidence>{.running = &C::on_node_evidence, .others = ignored}),
      row(OnMessage<protocol::LoaderSays>{.forming = ignored, .ending = ignored, .others = &C::on_loader_says}),
      row(OnMessage<protocol::NodeStacks>{.others = ignored}),  // for StacksDesk, which has asked for them

      // --- What is decided after an event that may change the round; last, what is due of the watch for hangs. ---
      row(OnEvent<C::EventHandled>{.forming = &C::go_on_forming,
                                   .recovery = &C::go_on_recovery,
                                   .preparing = &C::go_on_preparing,
                                   .running = &C::go_on_running,
                                   .stopping = &C::go_on_stopping,
                                   .ending = &C::go_on_ending}),
      row(OnEvent<C::HangDue>{.forming = &C::hand_stuck_on,
                              .preparing = &C::hand_stuck_in_preparing,
                              .running = &C::watch_hang,
                              .stopping = &C::hand_stuck_on,
                              .others = &C::end_watch}),
  };
};

}  // namespace elastic::coordinator
