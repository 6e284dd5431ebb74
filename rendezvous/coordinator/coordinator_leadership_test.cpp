// A coordinator whose nodes vote: how long it may act, which nodes it needs, and to which it transfers the leadership.
#include <doctest/doctest.h>

#include <csignal>

#include "rendezvous/coordinator/leadership_test_support.h"
#include "rendezvous/protocol/term.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::coordinator::testing::majority;
using namespace elastic::protocol;

TEST_CASE("a round runs once a quorum of its nodes has voted for the coordinator") {
  Job job(job_terms(3, 3), kMajority);
  for (const NodeId node : {1u, 2u, 3u}) job.join(node);
  CHECK(job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}}).silent());
  CHECK(acknowledge(job, 1).silent());
  CHECK(acknowledge(job, 2).all<RunWorkers>().size() == 3);
}

TEST_CASE(
    "a coordinator grants leases for no longer than its nodes' votes, and resigns when they are no quorum any more") {
  Three job;
  CHECK(job.prepared.at(0).second.before.empty());
  constexpr std::int64_t kLeft = 1'940;  // 1 % less than what is left of the votes at 0 ms
  job.now_ms = 2'000;
  job.on(KeepAliveReceived{1});
  CHECK(job.coordinator.leader().granted_ms() == kLeft);
  acknowledge(job, 3);
  job.on(KeepAliveReceived{1});
  CHECK(job.coordinator.leader().granted_ms() == kLeft);  // one of three
  acknowledge(job, 1);
  job.on(KeepAliveReceived{2});
  CHECK(job.coordinator.leader().granted_ms() == 3'000);
  const Answer quiet = job.pass_with({1, 2, 3}, kHeld - 160);
  CHECK(quiet.all<Resigned>().empty());
  const Answer over = job.pass_with({1, 2, 3}, 100);
  CHECK(over.all<Resigned>().size() == 3);
  CHECK(over.dropped(2));
  CHECK(job.coordinator.ended());
  CHECK_FALSE(job.coordinator.ending().job_result());
}

TEST_CASE("a coordinator that did not run for a while looks at its votes before it does anything else") {
  Three job;
  job.now_ms = kHeld;
  const Answer answer = job.fail(1, failure(0, 5));
  CHECK(answer.all<Resigned>().size() == 3);
  CHECK(answer.all<StopWorkers>().empty());
}

TEST_CASE("the vote of a node that leaves in order counts for good") {
  Three job;
  for (const NodeId node : {1u, 2u}) job.say(node, WorkersSucceeded{0});
  for (const NodeId node : {1u, 2u}) job.say(node, NodeLeaves{});
  job.now_ms = 2'000;
  acknowledge(job, 3);
  CHECK(job.pass_with({3}, 2'500).all<Resigned>().empty());
  CHECK(job.coordinator.leader().is_sole_leader(job.now_ms));
}

TEST_CASE("a coordinator that leads goes on with a higher term when it hears of a candidate that was not elected") {
  const Term of_candidate = term_after(3, 4);
  Three job({.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  CHECK(job.on(Introduced{7, of_candidate}).effects.empty());
  CHECK(job.coordinator.state() == State::kRunning);
  CHECK(job.coordinator.term() > of_candidate);
  acknowledge(job, 2);
  CHECK(job.coordinator.leader().is_sole_leader(job.now_ms));

  // Nodes would take a coordinator on no node for another one if its term rose.
  Three elsewhere;
  elsewhere.on(Introduced{7, of_candidate});
  CHECK(elsewhere.coordinator.ended());
}

TEST_CASE("half of the nodes is enough with that of the coordinator, which votes once") {
  Job job(job_terms(2, 2), kMajority, {.now_ms = -10'000, .own_agent = 1});
  job.coordinator.on_event(TimePassed{}, -400);
  job.now_ms = 0;
  job.join(1);
  CHECK(job.join(2).to<PrepareRound>(2).host_rank == 0);
  acknowledge(job, 1);
  job.open_store();
  CHECK(job.pass_with({1, 2}, 2 * kHeld).all<Resigned>().empty());
  CHECK_FALSE(job.coordinator.ended());
}

TEST_CASE("the next round runs once a quorum of the one before has heard of it") {
  Three job;
  job.now_ms = 1'000;
  for (const NodeId node : {1u, 2u, 3u}) acknowledge(job, node);
  job.fail(3, failure(2, 5));
  job.stop(1);
  job.stop(2);
  const Answer formed = job.stop(3, {failure(2, 5)});
  CHECK(formed.all<PrepareRound>().empty());  // there is no restart left
  CHECK(job.coordinator.state() == Coordinator::State::kEnding);
}

TEST_CASE("a node that is lost has heard of no later round, but the others have") {
  Three job;
  job.now_ms = 1'000;
  for (const NodeId node : {1u, 2u, 3u}) acknowledge(job, node);
  job.on(SessionEnded{3, "its connection was reset"});
  job.stop(1);
  job.stop(2);
  Answer formed;
  for (int i = 0; i < 40 && formed.all<PrepareRound>().empty(); ++i) {
    for (const NodeId node : {1u, 2u}) acknowledge(job, node);
    formed = job.pass_with({1, 2}, 200);
  }
  const PrepareRound round = formed.to<PrepareRound>(1);
  REQUIRE(round.before.size() == 1);
  CHECK(round.before[0].node_count == 3);
  CHECK(round.before[0].number == 0);
  for (const NodeId node : {1u, 2u}) acknowledge(job, node);
  CHECK(job.say(1, StoreIsOpen{1, {"10.0.0.1", 4000}}).silent());
  CHECK(job.say(1, RoundHeard{1}).silent());
  CHECK(job.say(2, RoundHeard{0}).silent());  // of the earlier round
  CHECK(job.say(2, RoundHeard{1}).all<RunWorkers>().size() == 2);
}

TEST_CASE("a node that is not in the next round is told of it, too, since its answer may be needed") {
  Job job(job_terms(2, 4, 1, 2), kMajority);
  for (const NodeId node : {1u, 2u, 3u, 4u}) job.join(node);
  for (const NodeId node : {1u, 2u, 3u, 4u}) acknowledge(job, node);
  job.open_store();
  job.now_ms = 1'000;
  job.on(SessionEnded{4, "its connection was reset"});
  for (const NodeId node : {1u, 2u, 3u}) job.stop(node);
  Answer formed;
  for (int i = 0; i < 40 && formed.all<PrepareRound>().empty(); ++i) {
    for (const NodeId node : {1u, 2u, 3u}) acknowledge(job, node);
    formed = job.pass_with({1, 2, 3}, 200);
  }
  REQUIRE(formed.all<PrepareRound>().size() == 2);
  const NextRound next = formed.to<NextRound>(3);
  CHECK(next.next.node_count == 2);
  CHECK(next.before == formed.to<PrepareRound>(1).before);
  job.say(1, StoreIsOpen{1, {"10.0.0.1", 4000}});
  CHECK(job.say(1, RoundHeard{1}).all<RunWorkers>().empty());
  CHECK(job.say(3, RoundHeard{1}).all<RunWorkers>().size() == 2);
  CHECK(job.join(5).all<NextRound>().empty());  // the round runs
}

TEST_CASE("the rule of the first node says to all whether a refused connection is a proof") {
  const Three proven;
  CHECK(proven.prepared.at(2).second.refusal_is_proof);
  JobRules rules = kMajority;
  rules.failover_evidence = JobRules::Evidence::kNone;
  const Three unproven({.incarnation = 7, .now_ms = -10'000}, rules);
  CHECK_FALSE(unproven.prepared.at(2).second.refusal_is_proof);
}

TEST_CASE("SIGTERM to the coordinator's node transfers the leadership where the other nodes are enough for a round") {
  using OnLeave = JobRules::OnLeave;
  struct Case {
    int min_nodes;
    OnLeave on_leave;
    int signal;
    bool transfers_leadership;
  };
  for (const Case& each :
       {Case{1, OnLeave::kLeadershipTransfer, SIGTERM, true}, Case{2, OnLeave::kLeadershipTransfer, SIGTERM, true},
        Case{3, OnLeave::kLeadershipTransfer, SIGTERM, false}, Case{3, OnLeave::kWait, SIGTERM, true},
        Case{2, OnLeave::kEnd, SIGTERM, false}, Case{2, OnLeave::kLeadershipTransfer, SIGINT, false},
        Case{2, OnLeave::kWait, SIGHUP, false}, Case{2, OnLeave::kWait, SIGQUIT, false}}) {
    CAPTURE(each.min_nodes);
    CAPTURE(each.signal);
    JobRules rules = kMajority;
    rules.on_leave = each.on_leave;
    Three job({.incarnation = 7, .now_ms = -10'000, .own_agent = 1}, rules, each.min_nodes);
    const Answer answer = job.say(1, NodeLeaves{each.signal});
    CHECK(answer.all<Resigned>().size() == (each.transfers_leadership ? 3U : 0U));
    CHECK(answer.all<StopWorkers>().size() == (each.transfers_leadership ? 0U : 3U));
    if (each.transfers_leadership) CHECK(answer.to<Resigned>(2).transfers_leadership);
    CHECK(job.coordinator.ended() == each.transfers_leadership);
  }
}

TEST_CASE(
    "a coordinator transfers its leadership to nobody before a round has run, and to no node that cannot be reached") {
  Job job(job_terms(1, 3), kMajority, {.incarnation = 7, .now_ms = 0, .own_agent = 1});
  job.join(1);
  job.join(2);
  CHECK(job.say(1, NodeLeaves{SIGTERM}).all<Resigned>().empty());

  Three closed({.incarnation = 7, .now_ms = -10'000, .own_agent = 1}, kMajority, 1, 0);
  CHECK(closed.say(1, NodeLeaves{SIGTERM}).all<Resigned>().empty());
}

TEST_CASE("a round waits until the peer ports that are tried have answered, and no longer than a second") {
  Job job(job_terms(2, 2), kMajority, {.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  job.coordinator.on_event(TimePassed{}, -400);
  job.now_ms = 0;
  job.peer_ports_answer = false;
  CHECK(job.join(1).effects.size() == 0);  // its own peer port is not tried
  Answer joined = job.join(2);
  REQUIRE(joined.effects.size() == 1);
  CHECK(std::get<TryPeerPort>(joined.effects[0]).addresses == "10.0.0.2");
  CHECK(std::get<TryPeerPort>(joined.effects[0]).port == 4'000);
  CHECK(job.pass(999).all<PrepareRound>().empty());
  CHECK(job.pass(1).all<PrepareRound>().size() == 2);
}

TEST_CASE("a next leader is named by the address that has answered first") {
  Job job(job_terms(2, 2), kMajority, {.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  job.coordinator.on_event(TimePassed{}, -400);
  job.now_ms = 0;
  job.peer_ports_answer = false;
  job.join(1);
  NodeJoins second = job.joiner(2);
  second.addresses = "172.17.0.1 10.0.0.2 10.1.0.2";
  job.say(2, second);
  const Answer answer = job.on(PeerPortTried{2, "10.1.0.2"});
  const PrepareRound prepared = answer.to<PrepareRound>(1);
  REQUIRE(prepared.next_leaders.size() == 2);
  CHECK(prepared.next_leaders[0].agent == 2);
  CHECK(prepared.next_leaders[0].addresses == "10.1.0.2 172.17.0.1 10.0.0.2");
}

TEST_CASE("where no other node's peer port can be reached the coordinator needs nobody's votes, and says so once") {
  Job job(job_terms(1, 3), kMajority, {.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  job.coordinator.on_event(TimePassed{}, -400);
  job.now_ms = 0;
  job.peer_ports_answer = false;
  job.join(1);
  job.join(2);
  Answer answer = job.join(3);
  job.on(PeerPortTried{2, ""});
  answer = job.on(PeerPortTried{3, ""});
  CHECK(answer.all<PrepareRound>().size() == 3);
  CHECK(answer.to<PrepareRound>(2).next_leaders.empty());
  const auto warns = [](const Effect& effect) {
    const auto* note = std::get_if<Note>(&effect);
    return note != nullptr && note->event == kNoNextLeader && note->text.contains("(node2) at port 4000");
  };
  CHECK(std::ranges::count_if(answer.effects, warns) == 1);
  CHECK_FALSE(job.coordinator.leader().grant_for(false));
  job.open_store();
  job.pass_with({1, 2, 3}, 10'000);  // without any vote
  CHECK(job.coordinator.state() == Coordinator::State::kRunning);
  const auto names = [](const Effect& effect) {
    const auto* note = std::get_if<Note>(&effect);
    return note != nullptr && note->event == kRulesDiffer;
  };
  CHECK(std::ranges::none_of(job.join(4).effects, names));  // it was started as the others were
  // The same for a coordinator that is back: it is not elected, and needs all nodes.
  Job back(job_terms(1, 4), kMajority, {.incarnation = 9, .now_ms = 20'000, .own_agent = 1});
  back.peer_ports_answer = false;
  back.on(Introduced{7, 1});
  for (const NodeId node : {2u, 3u}) {
    NodeJoins joins = back.joiner(node);
    joins.facts = facts_of(answer.to<PrepareRound>(node), 7, AgentFacts::Activity::kRunning);
    back.say(node, joins);
    acknowledge(back, node, runs(answer.to<PrepareRound>(node)));
  }
  CHECK_FALSE(back.coordinator.leader().grant_for(false));
  CHECK_FALSE(back.keeps(2));
  CHECK(back.pass_with({2, 3}, 4'000).to<EndJob>(2).job_result.reason.contains("only 2 came back to it"));
}

TEST_CASE("a coordinator that has formed no round gives way to one that gossips of a round, and tells its nodes") {
  Job job(job_terms(2, 3), kMajority, {.incarnation = 7, .now_ms = 0, .birth_ms = 500, .own_agent = 1});
  job.join(1);
  CHECK(job.coordinator.gossip() == Gossip{"10.0.0.1", 0, 500, {}});
  CHECK(job.on(CoordinatorGossiped{7, 500, {}, "10.0.0.1:1"}).effects.empty());  // its own gossip
  CHECK(job.on(CoordinatorGossiped{8, 501, {}, "10.0.0.6:1"}).effects.empty());  // of a later birth
  const Answer answer = job.on(CoordinatorGossiped{8, 501, 4, "10.0.0.6:1"});
  CHECK(answer.to<Resigned>(1).why == "the job already has a coordinator at 10.0.0.6:1");
  CHECK(job.coordinator.ended());
  CHECK_FALSE(job.coordinator.ending().job_result());
}

TEST_CASE("of two jobs of one name that have both formed rounds the one with fewer ends, and names the other") {
  Three job({.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  CHECK(job.on(CoordinatorGossiped{8, 501, 0, "10.0.0.6:1"}).effects.empty());
  CHECK(job.on(CoordinatorGossiped{8, 501, 4, "10.0.0.6:1"}).all<StopWorkers>().size() == 3);
  for (const NodeId node : {1u, 2u}) job.stop(node);
  const EndJob end = job.stop(3).to<EndJob>(3);
  CHECK(end.job_result.outcome == Outcome::kFailed);
  CHECK(end.job_result.reason.contains("with more rounds (5, this one has 1) has its coordinator at 10.0.0.6:1"));
}

TEST_CASE("with failover=off nobody gives way, gossips or tries peer ports") {
  Job job(job_terms(2, 3), {}, {.incarnation = 7, .now_ms = 0, .own_agent = 1});
  NodeJoins joins = job.joiner(1);
  joins.addresses = "10.0.0.1";
  joins.peer_port = 4'000;
  CHECK(job.say(1, joins).effects.empty());
  CHECK_FALSE(job.coordinator.gossip());
  CHECK(job.on(CoordinatorGossiped{8, 1, 4, "10.0.0.6:1"}).effects.empty());
}

TEST_CASE("a node with another rule of failover than the job's first node is named") {
  Job job(job_terms(2, 3), kMajority);
  job.join(1);
  NodeJoins other = job.joiner(2);
  other.rules.failover = JobRules::Failover::kOff;
  other.rules.on_leave = JobRules::OnLeave::kWait;
  const Answer answer = job.say(2, other);
  const auto names = [](const Effect& effect) {
    const auto* note = std::get_if<Note>(&effect);
    return note != nullptr && note->event == kRulesDiffer &&
           note->text.contains("failover=majority, not off; on_leave=handover, not wait");
  };
  CHECK(std::ranges::count_if(answer.effects, names) == 1);
}

TEST_CASE(
    "a coordinator whose node is done transfers its leadership if all nodes of the round are here, and stays if not") {
  const CoordinatorConfig config{.incarnation = 7, .now_ms = -10'000, .own_agent = 2};
  JobRules rules = kMajority;
  rules.on_leave = JobRules::OnLeave::kEnd;  // a rule about signals only
  Three job(config, rules, 3);
  CHECK(job.say(2, NodeLeaves{}).all<Resigned>().empty());  // its workers run
  job.say(2, WorkersSucceeded{0});
  const Answer answer = job.say(2, NodeLeaves{});
  CHECK(answer.all<Resigned>().size() == 3);
  CHECK(answer.to<Resigned>(1).transfers_leadership);
  CHECK(answer.all<StopWorkers>().empty());
  CHECK(job.coordinator.ended());

  // The next leader would declare a node lost that has left before.
  Three without(config, rules, 3);
  without.say(3, WorkersSucceeded{0});
  CHECK(without.say(3, NodeLeaves{}).all<Dismiss>().size() == 1);
  without.say(2, WorkersSucceeded{0});
  CHECK(without.say(2, NodeLeaves{}).effects.empty());
  CHECK(!without.coordinator.ended());

  // So a node that has waited long enough a little earlier goes to the next leader, too.
  Three together(config, rules, 3);
  for (const NodeId node : {2u, 3u}) together.say(node, WorkersSucceeded{0});
  CHECK(together.say(3, NodeLeaves{}).effects.empty());
  CHECK(together.say(2, NodeLeaves{}).all<Resigned>().size() == 3);

  // No node is left that trains and could be the next leader.
  Three alone(config, rules, 3);
  for (const NodeId node : {2u, 3u}) alone.say(node, WorkersSucceeded{0});
  alone.say(3, NodeLeaves{});
  alone.fail(1, failure(0, 5));
  CHECK(alone.say(2, NodeLeaves{}).all<Resigned>().empty());

  Three closed(config, rules, 3, 0);
  closed.say(2, WorkersSucceeded{0});
  CHECK(closed.say(2, NodeLeaves{}).effects.empty());
  CHECK(!closed.coordinator.ended());

  Job off(job_terms(2, 2), {}, config);
  off.run({1, 2});
  off.say(2, WorkersSucceeded{0});
  off.say(2, NodeLeaves{});
  CHECK(!off.coordinator.ended());
}

namespace {

// Node 1, which is done, votes for a candidate, and says that it leaves.
NodeJoins leave_done(Later& job, const Three& before) {
  NodeJoins done = job.joiner(1);
  done.facts = facts_of(before.prepared.at(0).second, 7, AgentFacts::Activity::kSucceeded);
  job.say(1, done);
  job.votes(1);
  CHECK(job.say(1, NodeLeaves{}).all<Dismiss>().empty());
  return done;
}

}  // namespace

TEST_CASE("a node that is done, and leaves a candidate, votes first, and the round goes on without it") {
  for (const bool is_gone : {false, true}) {
    const Three before;
    Later job(before);
    const NodeJoins done = leave_done(job, before);
    for (const NodeId node : {2u, 3u}) {
      job.comes(node);
      job.votes(node);
    }
    if (is_gone) job.on(SessionEnded{1, "it has ended"});
    acknowledge(job, 2);
    const Answer elected = acknowledge(job, 3);
    CHECK(job.coordinator.may_act());
    if (!is_gone) acknowledge(job, 1);
    CHECK(job.coordinator.state() == Coordinator::State::kRunning);
    CHECK(elected.all<StopWorkers>().empty());
    CHECK(elected.all<Dismiss>().size() == (is_gone ? 0U : 1U));
    CHECK(!job.coordinator.roster().nodes().contains(done.agent));
  }
}

TEST_CASE(
    "a node that is done, and leaves a candidate, leaves also if the round is stopped without a node that is lost") {
  const Three before;
  Later job(before);
  const NodeJoins done = leave_done(job, before);
  job.comes(2);
  job.votes(2);
  acknowledge(job, 1);
  acknowledge(job, 2);
  const Answer stopped = job.pass_with({1, 2}, 5'000);
  CHECK(stopped.to<StopWorkers>(2).round == 0);
  CHECK(stopped.all<Dismiss>().size() == 1);
  CHECK(!job.coordinator.roster().nodes().contains(done.agent));
}

TEST_CASE("a candidate that is told to leave has no leadership to transfer") {
  const Three before;
  Later job(before);
  job.comes(1);
  job.votes(1);
  CHECK(job.on(HostLeaves{SIGTERM}).effects.empty());
  CHECK(!job.coordinator.is_ending());
}

TEST_CASE("a node that leaves a candidate goes on voting for it until it is elected") {
  const Three before;
  Later job(before);
  job.comes(1);
  job.votes(1);
  CHECK(job.say(1, NodeLeaves{SIGTERM}).all<EndJob>().empty());
  job.comes(2);
  job.votes(2);
  acknowledge(job, 1);
  const Answer elected = acknowledge(job, 2);
  CHECK(job.coordinator.may_act());
  CHECK(job.coordinator.roster().at(job.joiner(1).agent).member_state() == membership::MemberState::kLeaving);
}

TEST_CASE(
    "the job ends when every node is told to leave during a leadership transfer, the next leader's own among them") {
  const Three before({.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  Later job(before, {.incarnation = 9, .now_ms = 0, .own_agent = 2});
  for (const NodeId node : {1u, 2u, 3u}) {
    job.comes(node);
    job.votes(node);
    job.say(node, NodeLeaves{SIGTERM});
  }
  for (const NodeId node : {1u, 2u, 3u}) job.say(node, NodeStopped{0, {}, {}});
  for (const NodeId node : {1u, 2u, 3u}) acknowledge(job, node);
  CHECK(job.coordinator.may_act());
  CHECK(job.coordinator.state() == Coordinator::State::kEnding);
  CHECK(job.coordinator.ending().job_result()->signal == SIGTERM);
}

TEST_CASE("a coordinator whose node is told to leave while it takes the job over transfers its leadership after that") {
  const Three before({.incarnation = 7, .now_ms = -10'000, .own_agent = 1});
  Later job(before, {.incarnation = 9, .now_ms = 0, .own_agent = 2});
  for (const NodeId node : {2u, 3u}) {
    job.comes(node);
    job.votes(node);
  }
  SUBCASE("it campaigns") {
    job.say(2, NodeLeaves{SIGTERM});
    acknowledge(job, 2);
    CHECK(acknowledge(job, 3).silent());
  }
  SUBCASE("it waits for the other nodes") {
    acknowledge(job, 2);
    acknowledge(job, 3);
    CHECK(job.say(2, NodeLeaves{SIGTERM}).silent());
  }
  CHECK(job.coordinator.state() == State::kRecovery);
  job.say(2, NodeStopped{0, {}, {}});
  const auto resigned = job.pass_with({2, 3}, 3'300).all<Resigned>();
  REQUIRE(resigned.size() == 2);
  CHECK(resigned.front().second.transfers_leadership);
}

TEST_CASE("the coordinator of a job of one node, or with failover=off, asks nobody for a vote") {
  Job small(job_terms(1, 1), kMajority);
  small.join(1);
  CHECK_FALSE(small.coordinator.leader().grant_for(false));
  Job off(job_terms(2, 2));
  off.run({1, 2});
  CHECK_FALSE(off.coordinator.leader().grant_for(false));
  off.on(KeepAliveReceived{1});
  CHECK_FALSE(off.coordinator.leader().granted_ms());
}
