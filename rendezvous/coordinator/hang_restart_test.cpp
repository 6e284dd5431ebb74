// What follows from a hang with --hang=restart.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "rendezvous/coordinator/hang_desk_test_support.h"

namespace elastic::coordinator {
namespace {

using namespace protocol;
using testing::Answer;
using testing::kLimitMs;
using testing::kSuspectMs;
using testing::NextLeader;
using testing::report_of;
using testing::Watched;
using testing::watching;

JobRules restarting(std::optional<std::int64_t> timeout_ms = kLimitMs, int hangs = 3) {
  JobRules rules = watching(timeout_ms);
  rules.hang_restarts = hangs;
  return rules;
}

TEST_CASE("a hang ends its round: all are told what is done before any is told to stop, and another round follows") {
  Watched job(2, restarting());
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  CHECK(job.tells(1, order).all<StopWorkers>().empty());
  const Answer answer = job.tells(2, order);
  const auto told = answer.all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(*report_of(told[0].second).find_text("action") == "restart (hang 1 of 3)");
  CHECK(told[0].second.text.find("action: restart (hang 1 of 3)") != std::string::npos);
  const auto stopped = answer.all<StopWorkers>();
  REQUIRE(stopped.size() == 2);
  CHECK(stopped[0].second.hangs);
  CHECK(!stopped[0].second.aborts);
  job.stop(1, {testing::failure(0, 15, true)});
  const auto again = job.stop(2).all<PrepareRound>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].second.reason == "the job hung: rank 3 (node node2) is not in the collective that others wait in");
  CHECK(!again[0].second.charged);
  CHECK(again[0].second.restart_count == 0);
}

TEST_CASE("a worker that is stopped is continued before its round ends for that, once in a round") {
  Watched job(2, restarting());
  job.facts.rank(3).state = hang::ThreadState::kStopped;
  job.step(1, 1);
  const Answer first = job.all_tell(job.hang());
  CHECK(first.all<StopWorkers>().empty());
  const auto told = first.all<HangTold>();
  REQUIRE(told.size() == 2);
  for (const auto& [session, message] : told) {
    CHECK(message.what == HangTold::What::kContinues);
    CHECK(message.text.find("rank 3 (node node2) is stopped") != std::string::npos);
    CHECK(message.is_stopped == (session == 2));
  }
  SUBCASE("it does not go on") {
    CHECK(job.wait(14'800).all<CollectEvidence>().empty());
    const auto again = job.wait(300).all<CollectEvidence>();
    REQUIRE(again.size() == 2);
    const Answer second = job.all_tell(again[0].second);
    CHECK(second.all<HangTold>().at(0).second.what == HangTold::What::kVerdict);
    CHECK(second.all<StopWorkers>().size() == 2);
    job.stop(1);
    CHECK(job.stop(2).all<PrepareRound>().size() == 2);
  }
  SUBCASE("it goes on, and is stopped again") {
    job.wait(5'000);
    const auto over = job.step(1, 2).all<HangOver>();
    REQUIRE(over.size() == 2);
    CHECK(over[0].second.why == HangOver::Why::kWithdrawn);
    CHECK(job.all_tell(job.hang()).all<StopWorkers>().size() == 2);
  }
}

TEST_CASE("a worker that is stopped is not continued where a hang ends nothing") {
  constexpr std::int64_t kUnknownLimitMs = 30 * 60'000;
  for (const bool is_unlearned : {false, true}) {
    Watched job(2, is_unlearned ? restarting({}) : watching());
    job.facts.rank(3).state = hang::ThreadState::kStopped;
    job.step(1, 1);
    const auto asked = job.wait((is_unlearned ? kUnknownLimitMs : kLimitMs) + 5'100).all<CollectEvidence>();
    REQUIRE(asked.size() == 2);
    const auto told = job.all_tell(asked[0].second).all<HangTold>();
    REQUIRE(told.size() == 2);
    CHECK(told[0].second.what == HangTold::What::kVerdict);
  }
}

TEST_CASE("a node that is charged twice is evicted, and its host is let in no more") {
  Watched job(2, restarting(), 2, 1);
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  for (const int hangs : {1, 2}) {
    job.step(1, 1);
    REQUIRE(job.all_tell(job.hang()).all<StopWorkers>().size() == 2);
    job.stop(1);
    const Answer answer = job.stop(2);
    CHECK(answer.all<Rejected>().size() == (hangs == 2 ? 1U : 0U));
    const auto next = answer.all<PrepareRound>();
    REQUIRE(next.size() == (hangs == 2 ? 1U : 2U));
    CHECK(next[0].second.place.world_size == (hangs == 2 ? 2 : 4));
    if (hangs == 1) job.open_store();
  }
  NodeJoins joins = job.joiner(9, 2);
  joins.address = "node2";
  const auto back = job.say(9, joins).all<Rejected>();
  REQUIRE(back.size() == 1);
  CHECK(back[0].second.why == Rejected::Why::kEvicted);
  CHECK(back[0].second.reason.starts_with("the job hung, and a node of its host is out for that"));
}

TEST_CASE("a node that is charged is replaced at once where another is on standby") {
  Watched job(2, restarting(), 2, 1);
  job.join(3, 2);
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  const auto asked = job.pass_with({1, 2, 3}, testing::kSuspectMs + 100).all<CollectEvidence>();
  REQUIRE(asked.size() == 2);
  const Answer told = job.all_tell(asked[0].second);
  CHECK(*report_of(told.all<HangTold>().at(0).second).find_text("action") ==
        "restart, without node 1 (node2) (hang 1 of 3)");
  job.stop(1);
  const Answer next = job.stop(2);
  REQUIRE(next.all<Rejected>().size() == 1);
  CHECK(next.all<Rejected>()[0].first == 2);
  const auto prepared = next.all<PrepareRound>();
  REQUIRE(prepared.size() == 2);
  CHECK(prepared[0].first + prepared[1].first == 1 + 3);
}

TEST_CASE("a node that was started again on the host at fault replaces nobody, and is turned away") {
  Watched job(2, restarting(), 2, 1);
  NodeJoins again = job.joiner(3, 2);
  again.address = "node2";
  job.say(3, again);
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  for (const int hangs : {1, 2}) {
    job.step(1, 1);
    const auto asked = job.pass_with({1, 2, 3}, kSuspectMs + 100).all<CollectEvidence>();
    REQUIRE(asked.size() == 2);
    const Answer told = job.all_tell(asked[0].second);
    CHECK(*report_of(told.all<HangTold>().at(0).second).find_text("action") ==
          (hangs == 1 ? "restart (hang 1 of 3)" : "restart, without node 1 (node2) (hang 2 of 3)"));
    job.stop(1);
    const Answer next = job.stop(2);
    CHECK(next.all<Rejected>().size() == (hangs == 1 ? 0U : 2U));
    CHECK(next.all<PrepareRound>().size() == (hangs == 1 ? 2U : 1U));
    if (hangs == 1) job.open_store();
  }
}

// A check of two phases for nodes that have not passed. A node that answers "bad" is unhealthy.
class TwoPhases : public health::CheckPlan {
 public:
  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules&) const override {
    return std::ranges::all_of(nodes, &health::CheckNode::passed) ? 0 : 2;
  }
  std::vector<std::string> orders(std::uint32_t, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>&, const health::CheckRules&) const override {
    return std::vector<std::string>(nodes.size(), "check");
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>& results) const override {
    std::vector<Unhealthy> found;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      if (results.back().at(rank) == "bad") found.push_back({static_cast<int>(rank), "its link is bad"});
    }
    return found;
  }
};

// Nodes whose ranks all wait for each other when the job hangs, so that the links are suspected.
struct Linked : Watched {
  explicit Linked(int nodes, int least = 0) : Watched(nodes, restarting(), 2, least, std::make_unique<TwoPhases>()) {}
  // The job hangs, and all its nodes have stopped.
  Answer hangs() {
    step(sessions.front(), 1);
    const Answer told = all_tell(hang());
    REQUIRE(report_of(told.all<HangTold>().at(0).second).find("verdict")->find("rule")->as_integer() == 10);
    return all_stop();
  }
  Answer all_stop() {
    Answer last;
    for (const NodeId session : sessions) last = stop(session);
    return last;
  }
  Answer done(NodeId session, std::uint32_t phase, const std::string& result = "ok") {
    return say(session, CheckDone{*coordinator.round(), phase, result});
  }
  // The nodes answer both phases. Returns what follows.
  Answer all_done(const std::string& of_last = "ok") {
    for (const NodeId session : sessions) done(session, 0);
    Answer last;
    for (const NodeId session : sessions) last = done(session, 1, session == sessions.back() ? of_last : "ok");
    return last;
  }
};

TEST_CASE("where the links are suspected all nodes are checked before the next round, and before no other one") {
  Linked job(2);
  REQUIRE(job.check_rules.when == health::CheckRules::When::kNever);  // without --network-check
  // Nodes that have passed are checked again.
  for (const RoundNumber next : {1U, 2U}) {
    CHECK(job.hangs().all<RunCheck>().size() == 2);
    CHECK(job.say(1, StoreIsOpen{next, {"10.0.0.1", 4000}}).all<RunWorkers>().empty());
    job.done(1, 0);
    CHECK(job.done(2, 0).all<RunCheck>().size() == 2);
    job.done(1, 1);
    CHECK(job.done(2, 1).all<RunWorkers>().size() == 2);
  }
  job.fail(1, testing::failure(0, 1));
  job.stop(1, {testing::failure(0, 1)});
  CHECK(job.stop(2).all<RunCheck>().empty());
}

TEST_CASE("a node that the check after a hang finds unhealthy is evicted, and the others are not checked once more") {
  Linked job(3, 2);
  REQUIRE(job.hangs().all<RunCheck>().size() == 3);
  CHECK(job.all_done("bad").all<StopWorkers>().size() == 3);
  const Answer next = job.all_stop();
  REQUIRE(next.all<Rejected>().size() == 1);
  CHECK(next.all<Rejected>()[0].first == 3);
  CHECK(next.all<PrepareRound>().size() == 2);
  CHECK(next.all<RunCheck>().empty());
}

// A coordinator that takes over from that of `job`. Its nodes bring this state, and have this activity.
NextLeader taken_over(Linked& job, const Transferred& transferred, AgentFacts::Activity activity,
                      Coordinator::State state) {
  return {job,
          transferred,
          1'000,
          state,
          [&](NodeJoins& joins) { joins.facts.activity = activity; },
          std::make_unique<TwoPhases>()};
}

TEST_CASE("a coordinator that takes over while the round ends has all nodes checked before the next one") {
  Linked job(2);
  job.step(1, 1);
  const auto kept = job.all_tell(job.hang()).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader taken =
      taken_over(job, kept[0].second.transferred, AgentFacts::Activity::kRunning, Coordinator::State::kStopping);
  taken.next.stop(1);
  CHECK(taken.next.stop(2).all<RunCheck>().size() == 2);
}

TEST_CASE("a check after a hang that its coordinator did not live to see the end of is made by the next one, once") {
  Linked job(2);
  const auto prepared = job.hangs().all<PrepareRound>();
  REQUIRE(prepared.size() == 2);
  job.done(1, 0);
  const Transferred transferred = prepared[0].second.transferred;
  {
    NextLeader taken = taken_over(job, transferred, AgentFacts::Activity::kPreparing, Coordinator::State::kStopping);
    taken.next.stop(1);
    CHECK(taken.next.stop(2).all<RunCheck>().size() == 2);
  }
  // The round runs, so that all have passed.
  NextLeader taken = taken_over(job, transferred, AgentFacts::Activity::kRunning, Coordinator::State::kRunning);
  taken.next.fail(1, testing::failure(0, 1));
  taken.next.stop(1, {testing::failure(0, 1)});
  const Answer again = taken.next.stop(2);
  CHECK(again.all<PrepareRound>().size() == 2);
  CHECK(again.all<RunCheck>().empty());
}

TEST_CASE("a check that was due after a hang and was cut short is made before the round after that") {
  Linked job(3, 2);
  REQUIRE(job.hangs().all<RunCheck>().size() == 3);
  job.done(1, 0);
  job.say(3, NodeLeaves{15});
  CHECK(job.all_stop().all<RunCheck>().size() == 2);
}

TEST_CASE("without a limit that is given, or learned from 16 steps, a hang is told and ends nothing") {
  for (const int steps : {10, 20}) {
    Watched job(2, restarting(std::nullopt));
    job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
    for (int i = 0; i < steps; ++i) {
      job.step(1, i);
      job.wait(1'000);
    }
    const Answer silent = job.wait(70'000);
    const auto asked = silent.all<CollectEvidence>();
    REQUIRE(asked.size() == 2);
    job.tells(1, asked[0].second);
    const Answer answer = job.tells(2, asked[0].second);
    REQUIRE(answer.all<HangTold>().size() == 2);
    CHECK(answer.all<StopWorkers>().size() == (steps == 20 ? 2U : 0U));
    const Json report = report_of(answer.all<HangTold>()[0].second);
    CHECK((*report.find_text("action")).starts_with(steps == 20 ? "restart" : "none: "));
  }
}

TEST_CASE("workers of a node of which not all stacks were read are to tell them themselves") {
  Watched job(2, restarting());
  job.facts.rank(1).stack.reset();
  job.step(1, 1);
  const auto stopped = job.all_tell(job.hang()).all<StopWorkers>();
  REQUIRE(stopped.size() == 2);
  for (const auto& [session, order] : stopped) CHECK(order.aborts == (job.first_rank(session) == 0));
}

TEST_CASE("where a recorder was not had, and can be by the store, all nodes let their workers dump before they stop") {
  for (const bool was_had : {false, true}) {
    CAPTURE(was_had);
    Watched job(2, restarting());
    job.facts.facts.nodes[0].store_source = {hang::Source::kHad};
    job.facts.rank(3).recorder = {was_had ? hang::Source::kHad : hang::Source::kLate};
    job.facts.rank(3).reads_dump_key = true;
    job.step(1, 1);
    const auto stopped = job.all_tell(job.hang()).all<StopWorkers>();
    REQUIRE(stopped.size() == 2);
    for (const auto& [session, order] : stopped) CHECK(order.dumps == !was_had);
  }
}

TEST_CASE("progress while evidence is collected calls the restart off") {
  Watched job(2, restarting());
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  job.tells(1, order);
  CHECK(job.step(2, 2).all<HangOver>().size() == 2);
  CHECK(job.tells(2, order).all<StopWorkers>().empty());
}

TEST_CASE("a hang more than hang_restarts allows ends the job, with both reasons") {
  Watched job(2, restarting(kLimitMs, 0));
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  REQUIRE(job.all_tell(job.hang()).all<StopWorkers>().size() == 2);
  job.stop(1);
  const auto ended = job.stop(2).all<EndJob>();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].second.job_result.outcome == Outcome::kFailed);
  CHECK(ended[0].second.job_result.reason ==
        "the job has hung 1 time, and hang_restarts=0 allows 0; rank 3 (node node2) is not in the collective that "
        "others wait in");
}

TEST_CASE("a node whose workers cannot be ended when a hang ends their round costs itself, and not the job") {
  Watched job(2, restarting());
  job.step(1, 1);
  REQUIRE(job.all_tell(job.hang()).all<StopWorkers>().size() == 2);
  CHECK(job.say(2, NodeCannotRun{0, "a worker survived SIGKILL"}).all<EndJob>().empty());
  job.stop(1);
  const auto refused = job.stop(2).all<Rejected>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].second.why == Rejected::Why::kEvicted);
  CHECK(refused[0].second.reason.find("a worker survived SIGKILL") != std::string::npos);
}

TEST_CASE("nodes that go on beside workers that cannot be ended stay where the job had too few without them") {
  Watched job(3, restarting(), 2, 2);
  job.step(1, 1);
  REQUIRE(job.all_tell(job.hang()).all<StopWorkers>().size() == 3);
  for (const NodeId session : job.sessions) {
    CHECK(job.say(session, NodeCannotRun{0, "a worker survived SIGKILL", true}).all<EndJob>().empty());
  }
  job.stop(1);
  job.stop(2);
  const Answer last = job.stop(3);
  const auto refused = last.all<Rejected>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].first == 1);
  CHECK(last.all<PrepareRound>().size() == 2);
}

TEST_CASE("a node that is at fault for a hang is evicted for that, also if its workers cannot be ended") {
  Watched job(2, restarting());
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.facts.rank(3).state = hang::ThreadState::kDisk;
  job.step(1, 1);
  const Answer told = job.all_tell(job.hang());
  REQUIRE(*report_of(told.all<HangTold>().at(0).second).find_text("fault") == "hard");
  CHECK(job.say(2, NodeCannotRun{0, "a worker survived SIGKILL"}).silent());
  job.stop(1);
  const auto refused = job.stop(2).all<Rejected>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].second.reason.find("survived") == std::string::npos);
}

TEST_CASE("a coordinator that takes over after the verdict ends the round, and charges nobody again") {
  Watched job(2, restarting());
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  const auto kept = job.all_tell(job.hang()).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kStopping);
  const auto stopped = after.answer.all<StopWorkers>();
  REQUIRE(stopped.size() == 2);
  CHECK(stopped[0].second.hangs);
  CHECK(after.answer.all<HangTold>().empty());
}

TEST_CASE("what fails while a round ends for a hang costs no restart under the next coordinator, either") {
  Watched job(2, restarting());
  job.step(1, 1);
  const auto kept = job.all_tell(job.hang()).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kStopping, [](NodeJoins& joins) {
    if (joins.agent != 1) return;
    // Its peers on the other node were gone before the order came.
    joins.facts.activity = AgentFacts::Activity::kIdle;
    joins.facts.failures = {testing::failure(0, 1)};
  });
  const auto stopped = after.answer.all<StopWorkers>();
  REQUIRE(stopped.size() == 1);
  CHECK(stopped[0].first == 2);
  CHECK(stopped[0].second.hangs);
  const auto again = after.next.stop(2).all<PrepareRound>();
  REQUIRE(again.size() == 2);
  CHECK(!again[0].second.charged);
  CHECK(again[0].second.restart_count == 0);
}

// Three nodes. The hardware of the last one is at fault for a hang. `transferred` is the state from their coordinator.
struct AtFault : Watched {
  AtFault() : Watched(3, restarting(), 2, 1) {
    facts.put(5, hang::stack_in("load_batch", "data.py", 88));
    facts.rank(5).state = hang::ThreadState::kDisk;
    step(1, 1);
    const auto kept = all_tell(hang()).all<KeepState>();
    REQUIRE(kept.size() == 3);
    transferred = kept[0].second.transferred;
  }
  Transferred transferred;
};

TEST_CASE(
    "a node that is evicted for a hang ends its round under the next coordinator, too, and is no lost node there") {
  AtFault job;
  NextLeader after(job, job.transferred, 1'000, Coordinator::State::kStopping);
  CHECK(after.answer.all<Rejected>().empty());
  CHECK(after.answer.all<StopWorkers>().size() == 3);
  after.next.stop(1);
  after.next.stop(2);
  const Answer last = after.next.stop(3);
  const auto out = last.all<Rejected>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 3);
  CHECK(out[0].second.why == Rejected::Why::kEvicted);
  const auto again = last.all<PrepareRound>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].second.losses == 0);
}

TEST_CASE("a node that is evicted for a hang and has ended before the next coordinator came is not missed there") {
  AtFault job;
  job.sessions.pop_back();
  NextLeader after(job, job.transferred, 1'000, Coordinator::State::kRecovery);
  const Answer waited = after.next.pass_with(job.sessions, 10'000);
  REQUIRE(waited.all<StopWorkers>().size() == 2);
  for (const Effect& effect : waited.effects) {
    const auto* note = std::get_if<Note>(&effect);
    CHECK((note == nullptr || note->text.find("did not reconnect") == std::string::npos));
  }
  after.next.stop(1);
  const auto again = after.next.stop(2).all<PrepareRound>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].second.losses == 0);
}

TEST_CASE("a node that cannot end its workers costs itself also while the next coordinator waits for others") {
  AtFault job;
  job.sessions.pop_back();
  NextLeader after(job, job.transferred, 1'000, Coordinator::State::kRecovery,
                   [](NodeJoins& joins) { joins.facts.activity = AgentFacts::Activity::kStopping; });
  CHECK(after.next.say(2, NodeCannotRun{0, "a worker survived SIGKILL"}).all<EndJob>().empty());
  after.next.pass_with(job.sessions, 10'000);
  after.next.stop(1);
  const Answer last = after.next.stop(2);
  CHECK(last.all<Rejected>().size() == 1);
  CHECK(last.all<PrepareRound>().size() == 1);
}

// A job that hangs without a node at fault. It needs all its nodes, unless `least` is given.
struct Stuck : Watched {
  explicit Stuck(int nodes = 3, int least = 0) : Watched(nodes, restarting(), 2, least) {
    step(1, 1);
    REQUIRE(all_tell(hang()).all<StopWorkers>().size() == sessions.size());
  }
  Answer is_stuck(NodeId session) { return say(session, NodeCannotRun{0, "a worker survived SIGKILL"}); }
};

// The node reports to the next coordinator that no process of the round is left.
void has_stopped(NodeJoins& joins) { joins.facts.activity = AgentFacts::Activity::kIdle; }

TEST_CASE("a node that cannot end its workers is evicted under the next coordinator, too, as soon as that is known") {
  Stuck job;
  job.stop(1);
  const auto kept = job.is_stuck(3).all<KeepState>();
  // Nodes that have stopped bring it, too.
  REQUIRE(kept.size() == 3);
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kRecovery, has_stopped);
  const Answer last = after.next.pass_with(job.sessions, 10'000);
  const auto out = last.all<Rejected>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 3);
  CHECK(out[0].second.why == Rejected::Why::kEvicted);
  // Node 3 had left before the coordinator was lost, while the job waited for another node.
  job.sessions.pop_back();
  NextLeader later(job, kept[0].second.transferred, 1'000, Coordinator::State::kRecovery, has_stopped);
  later.next.pass_with(job.sessions, 10'000);
  NodeJoins again = later.next.joiner(9, 2);
  again.address = "node3";
  const auto refused = later.next.say(9, again).all<Rejected>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].second.why == Rejected::Why::kEvicted);
}

TEST_CASE("a node that is lost while its round ends for a hang is charged once, whatever else is transferred then") {
  Stuck job(4, 2);
  job.on(SessionEnded{4, "closed"});
  const auto kept = job.is_stuck(3).all<KeepState>();
  REQUIRE(kept.size() == 3);
  job.sessions.pop_back();
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kRecovery, has_stopped);
  const auto again = after.next.pass_with(job.sessions, 10'000).all<PrepareRound>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].second.losses == 1);
}

// A node is away when its round ends for a hang, and comes back while the next one forms.
struct Away : Stuck {
  Away() {
    stop(1);
    stop(2);
    on(SessionEnded{3, "closed"});
    REQUIRE(coordinator.state() == Coordinator::State::kForming);
  }
  Answer comes_back(NodeId session, AgentFacts::Activity activity) {
    NodeJoins joins = joiner(3, 2);
    joins.facts = {.incarnation = coordinator.incarnation(), .term = 1, .round = 0, .activity = activity};
    return say(session, joins);
  }
};

TEST_CASE("a node that cannot end its workers while the next round forms after a hang costs itself, and not the job") {
  Away job;
  CHECK(job.comes_back(13, AgentFacts::Activity::kStopping).only<StopWorkers>().hangs);
  const Answer stuck = job.say(13, NodeCannotRun{0, "a worker survived SIGKILL"});
  CHECK(stuck.all<EndJob>().empty());
  CHECK(stuck.all<KeepState>().size() == 3);
  const auto out = job.say(13, NodeStopped{0, {}}).all<Rejected>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 13);
  CHECK(out[0].second.why == Rejected::Why::kEvicted);
  // The job waits for another node.
  CHECK(job.join(4, 2).all<PrepareRound>().size() == 3);
}

TEST_CASE("a node that cannot end its workers is evicted also if it comes back once more while the next round forms") {
  Away job;
  job.comes_back(13, AgentFacts::Activity::kStopping);
  job.say(13, NodeCannotRun{0, "a worker survived SIGKILL"});
  job.on(SessionEnded{13, "closed"});
  const auto out = job.comes_back(23, AgentFacts::Activity::kIdle).all<Rejected>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 23);
  CHECK(job.join(4, 2).all<PrepareRound>().size() == 3);
}

TEST_CASE(
    "a node that may stay, and comes back while the next round forms, stays where the job had too few without it") {
  Away job;
  job.comes_back(13, AgentFacts::Activity::kStopping);
  CHECK(job.say(13, NodeCannotRun{0, "a worker survived SIGKILL", true}).all<EndJob>().empty());
  CHECK(job.say(13, NodeStopped{0, {}}).all<PrepareRound>().size() == 3);
}

TEST_CASE("of many nodes that cannot end their workers the others hear once a second") {
  Stuck job(5);
  REQUIRE(job.is_stuck(3).all<KeepState>().size() == 5);
  CHECK(job.is_stuck(4).all<KeepState>().empty());
  CHECK(job.is_stuck(5).all<KeepState>().empty());
  const auto kept = job.wait(1'000).all<KeepState>();
  REQUIRE(kept.size() == 5);
  CHECK(job.wait(5'000).all<KeepState>().empty());
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kRecovery, has_stopped);
  CHECK(after.next.pass_with(job.sessions, 10'000).all<Rejected>().size() == 3);
}

TEST_CASE("a node that cannot end its workers while the next coordinator waits is evicted under the one after it") {
  AtFault job;
  job.sessions.pop_back();
  NextLeader after(job, job.transferred, 1'000, Coordinator::State::kRecovery,
                   [](NodeJoins& joins) { joins.facts.activity = AgentFacts::Activity::kStopping; });
  CHECK(after.next.say(2, NodeCannotRun{0, "a worker survived SIGKILL"}).all<KeepState>().empty());
  const auto kept = after.next.pass_with(job.sessions, 10'000).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader last(job, kept[0].second.transferred, 20'000, Coordinator::State::kRecovery, has_stopped);
  const Answer answer = last.next.pass_with(job.sessions, 10'000);
  const auto out = answer.all<Rejected>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 2);
  CHECK(answer.all<PrepareRound>().size() == 1);
}

TEST_CASE("a job that has hung too often ends under the next coordinator, too") {
  Watched job(2, restarting(kLimitMs, 0));
  job.step(1, 1);
  const auto kept = job.all_tell(job.hang()).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader after(job, kept[0].second.transferred, 1'000, Coordinator::State::kStopping);
  after.next.stop(1);
  const auto ended = after.next.stop(2).all<EndJob>();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].second.job_result.outcome == Outcome::kFailed);
  CHECK(ended[0].second.job_result.reason == "the job has hung 1 time, more than hang_restarts allows");
}

}  // namespace
}  // namespace elastic::coordinator
