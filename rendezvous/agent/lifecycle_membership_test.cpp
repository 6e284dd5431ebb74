// The life cycle of one node of many: leases, rejections, the exit barrier, checks, and what the node reports.
#include <doctest/doctest.h>

#include <csignal>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

using Activity = AgentFacts::Activity;

template <class Kind>
std::vector<Kind> all(const Effects& effects) {
  std::vector<Kind> found;
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) found.push_back(*match);
  }
  return found;
}
template <class Kind>
Kind the(const Effects& effects) {
  const std::vector<Kind> found = all<Kind>(effects);
  REQUIRE(found.size() == 1);
  return found[0];
}
template <class Message>
std::vector<Message> told(const Effects& effects) {
  std::vector<Message> found;
  for (const ToCoordinator& sent : all<ToCoordinator>(effects)) {
    if (const auto* match = std::get_if<Message>(&sent.message)) found.push_back(*match);
  }
  return found;
}

// Node 1 of two, with two workers.
struct Node {
  explicit Node(NodeSettings settings = {})
      : life([&] {
          settings.local_world_size = 2;
          settings.hosts_coordinator = false;
          settings.terms = {.min_nodes = 1, .max_nodes = 2, .max_restarts = 3};
          return settings;
        }()) {}

  Effects on(const Event& event) { return life.on_event(event, now_ms); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  Effects prepare(RoundNumber number = 4) {
    return from(PrepareRound{.round = number,
                             .restart_count = 1,
                             .max_restarts = 3,
                             .place = {rank, 2, 2, 4, 2, 4},
                             .losses = 2,
                             .membership = 99});
  }
  void run() {
    prepare();
    the<StartWorkers>(from(RunWorkers{4, {"10.0.0.1", 4000}}));
  }
  Effects succeed() {
    on(WorkerExited{0, {}, 5});
    return on(WorkerExited{1, {}, 6});
  }
  AgentFacts facts() const { return life.joins().facts; }

  Lifecycle life;
  int rank = 1;
  std::int64_t now_ms = 0;
};

}  // namespace

TEST_CASE("a node that was in no round reports none; afterwards it reports its place, counts and failures") {
  Node node;
  CHECK(node.facts() == AgentFacts{});
  node.run();
  CHECK(node.facts() == AgentFacts{.round = 4,
                                   .activity = Activity::kRunning,
                                   .place = {1, 2, 2, 4, 2, 4},
                                   .restart_count = 1,
                                   .losses = 2,
                                   .membership = 99});
  node.on(WorkerExited{1, {.code = 3}, 7});
  REQUIRE(node.facts().failures.size() == 1);
  CHECK(node.facts().failures[0].rank == 3);
  node.on(AllGone{});
  CHECK(node.facts().failures.size() == 1);
  node.prepare(5);
  CHECK(node.facts().failures.empty());
}

TEST_CASE("what a node does is reported truly in every state, and so is whether it needs a lease") {
  Node node;
  const auto is = [&](Activity activity, bool lease) {
    CHECK(static_cast<int>(node.facts().activity) == static_cast<int>(activity));
    CHECK(node.life.needs_lease() == lease);
  };
  is(Activity::kIdle, false);
  node.prepare();
  is(Activity::kPreparing, true);
  node.from(RunWorkers{4, {"h", 1}});
  is(Activity::kRunning, true);
  node.on(WorkerExited{0, {.code = 1}, 5});
  is(Activity::kStopping, true);
  node.on(AllGone{});
  is(Activity::kIdle, false);
  node.prepare(5);
  node.from(RunWorkers{5, {"h", 1}});
  node.succeed();
  is(Activity::kSucceeded, false);
  node.from(EndJob{});
  is(Activity::kStopping, true);
  node.on(AllGone{});
  is(Activity::kIdle, false);
}

TEST_CASE("a node that is alone beside its coordinator needs no lease; alone and elsewhere it does") {
  for (const bool hosts : {true, false}) {
    Node node;
    if (hosts) node.life = Lifecycle{{.local_world_size = 2}};
    node.from(PrepareRound{.place = {0, 1, 0, 2, 0, 2}, .membership = 9});
    CHECK(node.life.needs_lease() == !hosts);
    // It may ask its own peer port whether a coordinator is there.
    node.on(Detached{});
    node.life.set_hosts_coordinator(true);
    CHECK(node.life.needs_lease());
    node.on(Attached{});
    CHECK_FALSE(node.life.needs_lease());
  }
}

TEST_CASE("a lease that is over kills the workers at once, whatever they were told before") {
  for (const bool stopping : {false, true}) {
    Node node;
    node.run();
    if (stopping) node.from(StopWorkers{4});
    const Effects effects = node.on(LeaseOver{});
    CHECK(the<SignalWorkers>(effects).signal == SIGKILL);
    CHECK(all<AwaitAllGone>(effects).size() == (stopping ? 0 : 1));  // it is already awaited
    CHECK(node.on(LeaseOver{}).empty() == false);                    // the warning comes again
    CHECK(all<SignalWorkers>(node.on(LeaseOver{})).empty());
    node.on(AllGone{});
    CHECK(node.life.is_idle());
  }
}

TEST_CASE("workers that the lease has ended are no failures") {
  Node node;
  node.run();
  node.on(LeaseOver{});
  node.on(WorkerExited{0, {.signal = SIGKILL}, 5});
  CHECK(node.facts().failures.at(0).stopped_by_us);
}

TEST_CASE("a node whose workers have all succeeded, or that has none, loses nothing with the lease") {
  Node node;
  CHECK(node.on(LeaseOver{}).empty());
  node.run();
  node.succeed();
  CHECK(node.on(LeaseOver{}).empty());
}

TEST_CASE("a coordinator that is given up ends the node with that reason, when its workers are gone") {
  Node idle;
  CHECK(the<Finish>(idle.on(GivenUp{"not found"})).job_result.reason == "not found");
  Node node;
  node.run();
  const Effects effects = node.on(GivenUp{"lost"});
  CHECK(the<SignalWorkers>(effects).signal == SIGKILL);
  CHECK(all<Finish>(effects).empty());
  const JobResult job_result = the<Finish>(node.on(AllGone{})).job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  CHECK(job_result.reason == "lost");
  CHECK(job_result.restarts_used == 1);
}

TEST_CASE("a coordinator that is given up does not change a job result that was heard, or what the user wanted") {
  Node node;
  node.run();
  node.succeed();
  node.from(EndJob{});
  node.on(AllGone{});
  CHECK(the<Finish>(node.on(GivenUp{"lost"})).job_result.outcome == JobResult::Outcome::kSucceeded);
  Node told_to;
  told_to.run();
  told_to.on(SignalReceived{SIGTERM});
  told_to.on(GivenUp{"lost"});
  CHECK(the<Finish>(told_to.on(AllGone{})).job_result.outcome == JobResult::Outcome::kStopped);
}

TEST_CASE("a rejection because the round went on kills its workers; one that is idle only tries again") {
  Node node;
  const Rejected went_on{Rejected::Why::kRoundWentOn, "it went on", 0};
  CHECK(node.from(went_on).empty());
  node.run();
  CHECK(the<SignalWorkers>(node.from(went_on)).signal == SIGKILL);
  node.on(AllGone{});
  CHECK(node.life.is_idle());
}

TEST_CASE("a rejection ends the workers: for a while, so that the node can come again idle, or the node with them") {
  Node node;
  node.run();
  CHECK(the<SignalWorkers>(node.from(Rejected{Rejected::Why::kQuarantined, "kept out", 300'000})).signal == SIGKILL);
  CHECK(all<Finish>(node.on(AllGone{})).empty());
  CHECK(node.life.is_idle());
  CHECK(node.from(Rejected{Rejected::Why::kQuarantined, "kept out", 300'000}).empty());
  Node done;
  done.run();
  done.succeed();
  CHECK(the<SignalWorkers>(done.from(Rejected{Rejected::Why::kQuarantined, "kept out", 300'000})).signal == SIGKILL);
  Node ended;
  ended.run();
  CHECK(the<SignalWorkers>(ended.from(Rejected{Rejected::Why::kRankTaken, "taken", {}})).signal == SIGKILL);
  CHECK(the<Finish>(ended.on(AllGone{})).job_result.reason == "taken");
}

TEST_CASE("the job result is kept until the node is dismissed, and told as long") {
  Node node;
  node.run();
  node.succeed();
  CHECK(told<JobResultHeard>(node.from(EndJob{{.reason = "r"}})).size() == 1);
  CHECK(all<Finish>(node.on(AllGone{})).empty());
  CHECK(node.facts().job_result->reason == "r");
  CHECK(told<JobResultHeard>(node.from(EndJob{{.reason = "another"}})).size() ==
        1);  // it may have come in a new session
  CHECK(the<Finish>(node.from(Dismiss{})).job_result.reason == "r");
}

TEST_CASE("where the job has gone on after a job result that only this node heard, the later result is the job's") {
  Node node;
  node.run();
  node.succeed();
  node.from(EndJob{{.outcome = JobResult::Outcome::kFailed, .round = 4}});
  node.on(AllGone{});
  CHECK(told<JobResultHeard>(node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded, .round = 6}})).size() == 1);
  node.from(EndJob{{.outcome = JobResult::Outcome::kFailed, .round = 5}});
  CHECK(the<Finish>(node.from(Dismiss{})).job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("a node that has succeeded waits in the exit barrier, then leaves; its success is not the job's result") {
  Node node({.exit_barrier_ms = 300'000});
  node.run();
  CHECK(the<StartTimer>(node.succeed()).delay_ms == 300'000);
  const Effects left = node.on(TimerFired{});
  REQUIRE(told<NodeLeaves>(left).size() == 1);
  CHECK(told<NodeLeaves>(left)[0].signal == 0);
  CHECK(!node.facts().job_result);  // a coordinator that comes back must not take it for the job's result
  CHECK(!node.life.needs_lease());
  CHECK(node.life.is_dismissed());
  CHECK(the<Finish>(node.on(AllGone{})).job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("the node that serves the store and the coordinator's wait without limit, whatever timer still runs") {
  for (const bool hosts : {false, true}) {
    Node node({.logs = true});
    node.rank = 0;
    if (hosts) {
      node.life = Lifecycle{{.local_world_size = 2, .logs = true, .terms = {.max_nodes = 2, .max_restarts = 3}}};
      node.rank = 1;
    }
    node.prepare();
    node.on(LogsOpened{4});
    CHECK(all<StartTimer>(node.from(RunWorkers{4, {"h", 1}})).size() == 1);  // the one for the next round's logs
    CHECK(all<StartTimer>(node.succeed()).empty());
    CHECK(node.on(TimerFired{}).empty());
    CHECK(!node.life.has_job_result());
  }
}

TEST_CASE("where the coordinator may move a node that has waited long enough leaves when a coordinator lets it go") {
  Node node({.coordinator_may_move = true, .exit_barrier_ms = 300'000});
  node.run();
  node.succeed();
  node.on(Detached{});
  CHECK(told<NodeLeaves>(node.on(TimerFired{})).size() == 1);  // nobody hears it
  CHECK(!node.life.has_job_result());
  CHECK(node.facts().activity == Activity::kSucceeded);  // so that the next leader knows of it
  const Effects again = node.on(Attached{});
  CHECK(told<NodeLeaves>(again).size() == 1);
  CHECK(all<Warn>(again).empty());
  node.from(Dismiss{});
  CHECK(node.life.is_dismissed());
  CHECK(the<Finish>(node.on(AllGone{})).job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("a node that hosts the coordinator asks again until another one has it, and logs that it leaves then") {
  Node node({.coordinator_may_move = true, .exit_barrier_ms = 30'000});
  node.life.set_hosts_coordinator(true);
  node.run();
  CHECK(the<StartTimer>(node.succeed()).delay_ms == 30'000);
  for (int i = 0; i < 2; ++i) {
    const Effects asked = node.on(TimerFired{});
    CHECK(told<NodeLeaves>(asked).size() == 1);
    CHECK(the<StartTimer>(asked).delay_ms == 5'000);
    CHECK(all<Warn>(asked).empty());
  }
  node.on(Detached{.votes_for_ms = 10'000});
  node.life.set_hosts_coordinator(false);
  const Effects led = node.on(Attached{});
  CHECK(told<NodeLeaves>(led).size() == 1);
  CHECK(the<Warn>(led).event == "exit_barrier");
  node.from(Dismiss{});
  CHECK(the<Finish>(node.on(AllGone{})).job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("a node that waits to leave does so with its success, whatever keeps a coordinator from letting it go") {
  enum class How { kGivesUp, kIsRejected, kIsStopped, kIsIdle };
  for (const How how : {How::kGivesUp, How::kIsRejected, How::kIsStopped, How::kIsIdle}) {
    Node node({.coordinator_may_move = true});
    node.run();
    node.succeed();
    node.on(TimerFired{});
    if (how == How::kGivesUp) node.on(GivenUp{"lost the coordinator"});
    if (how == How::kIsRejected) node.from(Rejected{Rejected::Why::kRoundWentOn, "it went on", 0});
    if (how == How::kIsStopped || how == How::kIsIdle) node.from(StopWorkers{4});
    if (how == How::kIsIdle) node.on(AllGone{});
    const Effects let_go = how == How::kIsStopped || how == How::kIsIdle ? node.from(Dismiss{}) : Effects{};
    const Effects end = how == How::kIsIdle ? let_go : node.on(AllGone{});
    CHECK(the<Finish>(end).job_result.outcome == JobResult::Outcome::kSucceeded);
  }
}

TEST_CASE("a node that waits to leave and is taken into another round waits anew when it is done with that") {
  Node node({.coordinator_may_move = true});
  node.run();
  node.succeed();
  node.on(TimerFired{});
  node.from(StopWorkers{4});
  node.on(AllGone{});
  node.prepare(5);
  node.from(RunWorkers{5, {"h", 1}});
  CHECK(the<StartTimer>(node.succeed()).delay_ms == 300'000);
  CHECK(told<NodeLeaves>(node.on(Attached{})).empty());
  node.from(Dismiss{});
  CHECK(!node.life.has_job_result());
}

TEST_CASE("a node in the exit barrier that is needed for a new round stops what is left and is in it") {
  Node node;
  node.run();
  node.succeed();
  CHECK(the<SignalWorkers>(node.from(StopWorkers{4})).signal == SIGTERM);
  CHECK(told<NodeStopped>(node.on(AllGone{})).size() == 1);
  node.prepare(5);
  CHECK(the<StartWorkers>(node.from(RunWorkers{5, {"h", 1}})).round.round == 5);
}

TEST_CASE("a node that said it leaves as a round was prepared stops that at once, and says so") {
  Node node;
  node.on(Attached{});
  node.on(SignalReceived{SIGTERM});
  const Effects crossed = node.prepare();
  the<AwaitAllGone>(crossed);
  CHECK(all<OpenStore>(crossed).empty());
  CHECK(node.from(RunWorkers{4, {"h", 1}}).empty());
  CHECK(told<NodeStopped>(node.on(AllGone{})).at(0).round == 4);
  const Effects ended = node.from(
      EndJob{{.outcome = JobResult::Outcome::kStopped}});  // the answer to its leaving, which no other node needs
  CHECK(the<Finish>(ended).job_result.outcome == JobResult::Outcome::kStopped);
}

TEST_CASE("that the node leaves is said again in a new session, and a node without one goes by itself") {
  Node node;
  node.run();
  node.on(SignalReceived{SIGTERM});
  node.on(Detached{});
  CHECK(told<NodeLeaves>(node.on(Attached{})).at(0).signal == SIGTERM);
  node.on(Detached{});
  CHECK(the<Finish>(node.on(AllGone{})).job_result.signal == SIGTERM);
}

TEST_CASE("a node that has not been told to leave says nothing when it is attached") {
  Node node;
  node.run();
  node.on(Detached{});
  CHECK(node.on(Attached{}).empty());
}

TEST_CASE("a round that is prepared while another is not over here is passed over, and said") {
  Node node;
  node.run();
  const Effects effects = node.prepare(9);
  CHECK(effects.size() == 1);
  CHECK(the<Warn>(effects).text == "round 9 cannot be prepared: round 4 has not ended on this node");
  CHECK(node.facts().round == 4);
}

TEST_CASE("a phase of the check is ordered while a round is prepared, and its result is told; nothing late is") {
  Node node;
  CHECK(node.from(RunCheck{4, 0, "go"}).empty());
  node.prepare();
  const CheckNode check = the<CheckNode>(node.from(RunCheck{4, 1, "go"}));
  CHECK(check.phase == 1);
  CHECK(check.order == "go");
  CHECK(node.on(NodeChecked{3, 1, "old"}).empty());
  CHECK(told<CheckDone>(node.on(NodeChecked{4, 1, "ok"})).at(0) == CheckDone{4, 1, "ok"});
  the<SignalWorkers>(node.from(StopWorkers{4}));
  CHECK(node.on(NodeChecked{4, 1, "late"}).empty());
  CHECK(node.from(RunCheck{4, 2, "late"}).empty());
}

TEST_CASE("the job result that answers a node's own leaving is told to no other coordinator: the node goes") {
  for (const bool leaves : {true, false}) {
    Node node;
    node.run();
    if (leaves) node.on(SignalReceived{SIGTERM});
    node.from(EndJob{{.outcome = JobResult::Outcome::kStopped, .signal = SIGTERM}});
    CHECK(node.facts().job_result.has_value() == !leaves);
    CHECK(all<Finish>(node.on(AllGone{})).size() == (leaves ? 1 : 0));
  }
}

TEST_CASE("a node that is evicted knows it, for its exit status; one that is refused otherwise is not unhealthy") {
  for (const bool is_unhealthy : {true, false}) {
    Node node;
    const auto why = is_unhealthy ? Rejected::Why::kEvicted : Rejected::Why::kRankTaken;
    CHECK(the<Finish>(node.from(Rejected{why, "no", {}})).job_result.is_unhealthy == is_unhealthy);
  }
}

TEST_CASE("an order to leave is a SIGTERM whose sender sets no time, and a SIGTERM that follows is the first") {
  Node node({.shutdown_timeout_ms = 30'000, .terminated_timeout_ms = 5'000});
  node.run();
  const Effects ordered = node.from(LeaveJob{"10.0.0.9"});
  const std::vector<NodeLeaves> expected = {{.signal = SIGTERM, .ordered = true}};
  CHECK(told<NodeLeaves>(ordered) == expected);
  CHECK(the<SignalWorkers>(ordered).signal == SIGTERM);
  CHECK(the<SignalWorkers>(ordered).cause == SignalWorkers::Cause::kOurs);
  CHECK(the<StartTimer>(ordered).delay_ms == 30'000);
  CHECK(the<Warn>(ordered).event == "drained");
  CHECK(the<Warn>(ordered).text.contains("10.0.0.9"));
  CHECK(node.life.waiting()->what.contains("an operator's order"));
  CHECK(node.from(LeaveJob{}).empty());
  // The next session tells it again: the coordinator there may know nothing of it.
  node.on(Detached{});
  CHECK(told<NodeLeaves>(node.on(Attached{})) == expected);
  node.now_ms = 10'000;
  const Effects terminated = node.on(SignalReceived{SIGTERM});
  CHECK(all<SignalWorkers>(terminated).empty());  // nothing is killed: nobody has insisted
  CHECK(the<StartTimer>(terminated).delay_ms == 5'000);
  CHECK(told<NodeStopped>(node.on(AllGone{})).size() == 1);
  node.from(EndJob{{.outcome = JobResult::Outcome::kStopped, .signal = SIGTERM}});
  CHECK(node.life.is_dismissed());
}

TEST_CASE("a node without workers leaves at an order, with the coordinator or without, and none that ends does") {
  Node idle;
  CHECK(told<NodeLeaves>(idle.from(LeaveJob{})).size() == 1);
  CHECK(the<Finish>(idle.on(Detached{})).job_result.reason == "an operator has drained this node");

  Node signalled;
  signalled.on(SignalReceived{SIGINT});
  CHECK(signalled.from(LeaveJob{}).empty());

  Node ending;
  ending.run();
  ending.from(EndJob{{.outcome = JobResult::Outcome::kFailed}});
  CHECK(ending.from(LeaveJob{}).empty());
}

TEST_CASE("a node that the scheduler drains is in no other round, and its workers are let run") {
  const SegmentSeen drained{"/d/segment_health_check.1.1 (bad GPU)"};
  const std::vector<NodeLeaves> expected = {{.signal = SIGTERM, .ordered = true, .by_scheduler = true}};
  Node node({.has_segment_file = true});
  SUBCASE("it leaves while it waits for a round") {
    CHECK(node.on(SegmentSeen{}).empty());
    const Effects leaves = node.on(drained);
    CHECK(told<NodeLeaves>(leaves) == expected);
    CHECK(the<Warn>(leaves).event == "drained");
    CHECK(the<Warn>(leaves).text.contains("as /d/segment_health_check.1.1 (bad GPU) says"));
    CHECK(node.on(drained).empty());
  }
  SUBCASE("it ends before it has a session") {
    node.on(drained);
    CHECK(the<Finish>(node.on(Detached{})).job_result.reason == "the scheduler has drained this node");
  }
  SUBCASE("it looks before each round, and leaves that") {
    CHECK(all<LookAtSegment>(node.prepare()).size() == 1);
    CHECK(all<StartWorkers>(node.from(RunWorkers{4, {"10.0.0.1", 4000}})).empty());
    const Effects leaves = node.on(drained);
    CHECK(told<NodeLeaves>(leaves) == expected);
    CHECK(the<SignalWorkers>(leaves).signal == SIGTERM);
    CHECK(told<NodeStopped>(node.on(AllGone{})).size() == 1);
  }
  SUBCASE("its workers start when the file says nothing, and are let run whatever it says later") {
    node.prepare();
    CHECK(node.on(SegmentSeen{}).empty());
    the<StartWorkers>(node.from(RunWorkers{4, {"10.0.0.1", 4000}}));
    CHECK(node.on(drained).empty());
    node.from(StopWorkers{4});
    CHECK(node.on(drained).empty());
    node.on(AllGone{});
    CHECK(node.on(drained).empty());  // the coordinator may not know yet why the round has ended
    CHECK(all<LookAtSegment>(node.prepare(5)).size() == 1);
    CHECK(all<StartWorkers>(node.from(RunWorkers{5, {"10.0.0.1", 4000}})).empty());
    the<StartWorkers>(node.on(SegmentSeen{}));
  }
}

TEST_CASE("a node that leaves stays until it has voted when its coordinator transfers its leadership, or for a while") {
  Node node;
  node.run();
  node.on(SignalReceived{SIGTERM});
  CHECK(all<Finish>(node.on(Detached{10'000})).empty());
  const Effects gone = node.on(AllGone{});
  CHECK(all<Finish>(gone).empty());
  CHECK(the<StartTimer>(gone).delay_ms == 10'000);
  SUBCASE("the one that is elected lets it go") {
    const Effects attached = node.on(Attached{});
    CHECK(all<StopTimer>(attached).size() == 1);
    CHECK(told<NodeLeaves>(attached).size() == 1);
    CHECK(the<Finish>(node.from(EndJob{{.outcome = JobResult::Outcome::kStopped, .signal = SIGTERM}}))
              .job_result.signal == SIGTERM);
  }
  SUBCASE("nobody is elected") { CHECK(the<Finish>(node.on(TimerFired{})).job_result.signal == SIGTERM); }
  SUBCASE("the one that it has voted for is lost") {
    node.on(Attached{});
    CHECK(the<Finish>(node.on(Detached{})).job_result.signal == SIGTERM);
  }
}

TEST_CASE("a node tells the ports that HCCL may use when it joins, and anew when no process of its round is left") {
  Node without;
  CHECK(!without.life.joins().training_ports);
  without.run();
  without.from(StopWorkers{4});
  CHECK(!told<NodeStopped>(without.on(AllGone{})).at(0).training_ports);

  const TrainingPorts before{.start = 60'000}, after{.start = 60'000, .in_use = {{60'000, 60'031}}};
  Node node({.training_ports = std::make_shared<const TrainingPorts>(before)});
  CHECK(node.life.joins().training_ports == before);
  node.run();
  CHECK(node.life.joins().training_ports == before);
  node.from(StopWorkers{4});
  CHECK(told<NodeStopped>(node.on(AllGone{std::make_shared<const TrainingPorts>(after)})).at(0).training_ports ==
        after);
  CHECK(node.life.joins().training_ports == after);
}
