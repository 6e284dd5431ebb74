#include "rendezvous/agent/lifecycle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

constexpr int kCont = 18;
constexpr int kStop = 19;
constexpr int kTstp = 20;

const PrepareRound kFirstRound{0, 0, 3, {0, 1, 0, 2, 0, 2}, ""};

// The effect of this kind; there must be exactly one.
template <class Kind>
const Kind& the(const Effects& effects) {
  const Kind* found = nullptr;
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) {
      REQUIRE(found == nullptr);
      found = match;
    }
  }
  REQUIRE(found != nullptr);
  return *found;
}

template <class Message>
const Message& told(const Effects& effects) {
  return std::get<Message>(the<ToCoordinator>(effects).message);
}

const NodeSettings kWithLogs{.logs = true};

// A node of two workers.
struct Node {
  explicit Node(NodeSettings settings = {})
      : life([&] {
          settings.local_world_size = 2;
          return settings;
        }()) {}

  Lifecycle life;
  std::int64_t now = 0;
  Effects on(const Event& event) { return life.on_event(event, now); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }

  void run(const PrepareRound& round = kFirstRound) {
    the<OpenStore>(from(round));
    told<StoreIsOpen>(on(StoreOpened{{"127.0.0.1", 4000}}));
    the<StartWorkers>(from(RunWorkers{round.round, {"127.0.0.1", 4000}}));
    for (int rank = 0; rank < 2; ++rank) on(WorkerStarted{rank, 100 + rank});
  }
};

}  // namespace

TEST_CASE("a node joins, opens the store as group rank 0 and starts its workers with it") {
  Node node;
  CHECK(node.life.joins().local_world_size == 2);
  the<OpenStore>(node.from(kFirstRound));
  CHECK(told<StoreIsOpen>(node.on(StoreOpened{{"h", 5}})).endpoint == StoreEndpoint{"h", 5});
  const Effects effects = node.from(RunWorkers{0, {"h", 5}});
  CHECK(the<StartWorkers>(effects).store == StoreEndpoint{"h", 5});
  CHECK(the<StartWorkers>(effects).round.place.world_size == 2);
}

TEST_CASE("a node that is not group rank 0 opens no store") {
  Node node;
  PrepareRound round = kFirstRound;
  round.place.node_rank = 1;
  CHECK(node.from(round).empty());
}

TEST_CASE(
    "success is told when the last worker has exited with 0, and the kill ladder ends what is left of the groups") {
  Node node;
  node.run();
  CHECK(node.on(WorkerExited{1, {}, 5}).empty());
  CHECK(told<WorkersSucceeded>(node.on(WorkerExited{0, {}, 6})).round == 0);
  the<FindBackground>(node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded}}));
  CHECK(node.from(Dismiss{}).empty());
  const Effects kill_ladder = node.on(BackgroundFound{});
  CHECK(the<SignalWorkers>(kill_ladder).signal == SIGTERM);
  the<AwaitAllGone>(kill_ladder);
  const Effects end = node.on(AllGone{});
  CHECK(the<Finish>(end).job_result.outcome == JobResult::Outcome::kSucceeded);
  the<CloseStore>(end);
}

TEST_CASE("what workers have left behind is named once after success, before it is ended") {
  Node node;
  node.run();
  for (int rank = 0; rank < 2; ++rank) node.on(WorkerExited{rank, {}, 5});
  node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded}});
  const Effects found = node.on(BackgroundFound{"process 7 (rank 0: aws)"});
  CHECK(the<Warn>(found).text ==
        "all workers succeeded; killing the processes they left running: process 7 (rank 0: aws) "
        "(--leave-background keeps them)");
  CHECK(the<SignalWorkers>(found).signal == SIGTERM);
  CHECK(node.on(BackgroundFound{"process 7"}).empty());
}

TEST_CASE("with --leave-background nothing is signalled after success; the kill ladder ends what fails or is stopped") {
  Node node({.leave_background = true});
  node.run();
  SUBCASE("success") {
    for (int rank = 0; rank < 2; ++rank) node.on(WorkerExited{rank, {}, 5});
    const Effects end = node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded}});
    the<LeaveBackground>(end);
    the<CloseStore>(end);
    CHECK(std::ranges::none_of(end, [](const Effect& e) { return std::holds_alternative<SignalWorkers>(e); }));
    CHECK(the<Finish>(node.from(Dismiss{})).job_result.outcome == JobResult::Outcome::kSucceeded);
  }
  SUBCASE("another node fails after the workers of this one have succeeded") {
    for (int rank = 0; rank < 2; ++rank) node.on(WorkerExited{rank, {}, 5});
    CHECK(the<SignalWorkers>(node.from(EndJob{{.outcome = JobResult::Outcome::kFailed}})).signal == SIGTERM);
  }
  SUBCASE("a restart") { CHECK(the<SignalWorkers>(node.from(StopWorkers{0})).signal == SIGTERM); }
  SUBCASE("a signal") { CHECK(the<SignalWorkers>(node.on(SignalReceived{SIGINT})).signal == SIGINT); }
}

TEST_CASE("a guardian that dies while leftovers are looked for has all killed, and the answer starts nothing") {
  Node node;
  node.run();
  for (int rank = 0; rank < 2; ++rank) node.on(WorkerExited{rank, {}, 5});
  node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded}});
  CHECK(the<SignalWorkers>(node.on(GuardianLost{})).signal == SIGKILL);
  CHECK(node.on(BackgroundFound{"process 7"}).empty());
}

TEST_CASE("a failing worker stops the others before anything else") {
  Node node;
  node.run();
  const Effects effects = node.on(WorkerExited{1, {.code = 3}, 7});
  CHECK(the<SignalWorkers>(effects).signal == SIGTERM);
  CHECK(the<StartTimer>(effects).delay_ms == 30'000);
  the<AwaitAllGone>(effects);
  const WorkerFailure& failure = told<WorkerFailed>(effects).failure;
  CHECK(failure.rank == 1);
  CHECK(failure.pid == 101);
  CHECK(failure.exit.code == 3);
  CHECK(!failure.stopped_by_us);
}

TEST_CASE("workers start when their logs are open and the order has come, whichever is later") {
  for (const bool logs_first : {true, false}) {
    Node node(kWithLogs);
    the<OpenLogs>(node.from(kFirstRound));
    node.on(StoreOpened{{"h", 5}});
    const Event opened = LogsOpened{0};
    const Event ordered = FromCoordinator{RunWorkers{0, {"h", 5}}};
    for (const Effect& effect : node.on(logs_first ? opened : ordered)) {
      CHECK(!std::holds_alternative<StartWorkers>(effect));
    }
    CHECK(the<StartWorkers>(node.on(logs_first ? ordered : opened)).store == StoreEndpoint{"h", 5});
  }
}

TEST_CASE("logs that do not open are given up after a while, in this round and those that follow") {
  Node node(kWithLogs);
  CHECK(the<StartTimer>(node.from(kFirstRound)).delay_ms == 2'000);
  node.on(StoreOpened{{"h", 5}});
  CHECK(node.from(RunWorkers{0, {"h", 5}}).empty());
  const Effects effects = node.on(TimerFired{});
  std::get<GiveUpLogs>(effects.at(0));
  std::get<StartWorkers>(effects.at(1));
  CHECK(effects.size() == 2);  // and no logs of a next round are prepared
  CHECK(node.on(LogsOpened{0}).empty());
  node.on(WorkerExited{1, {.code = 3}, 7});
  node.on(AllGone{});
  PrepareRound next = kFirstRound;
  next.round = 1;
  next.restart_count = 1;
  CHECK(node.from(next).size() == 1);  // the store is opened, and no logs
}

TEST_CASE("logs that cannot be opened end the round with their reason, those of an older round nothing") {
  Node node(kWithLogs);
  PrepareRound round = kFirstRound;
  round.round = 4;
  node.from(round);
  CHECK(node.on(LogsFailed{3, "old"}).empty());
  CHECK(node.on(LogsOpened{3}).empty());
  CHECK(told<NodeCannotRun>(node.on(LogsFailed{4, "disk full"})).reason == "disk full");
}

TEST_CASE("log directories of the next round are made while one runs, if one may come") {
  for (const int restart_count : {2, 3}) {
    Node node(kWithLogs);
    PrepareRound round = kFirstRound;  // at most three restarts
    round.restart_count = restart_count;
    CHECK(the<OpenLogs>(node.from(round)).restart_count == restart_count);
    node.on(StoreOpened{{"127.0.0.1", 4000}});
    node.on(LogsOpened{0});
    const Effects effects = node.from(RunWorkers{0, {"127.0.0.1", 4000}});
    std::get<StartWorkers>(effects.front());
    CHECK(effects.size() == (restart_count < 3 ? 2 : 1));
    if (restart_count == 3) continue;
    CHECK(the<StartTimer>(effects).delay_ms == 20);  // the new workers start before it
    the<PrepareLogs>(node.on(TimerFired{}));
    // A round that ends before that prepares none.
    CHECK(the<StartTimer>(node.on(WorkerExited{1, {.code = 3}, 7})).delay_ms == 30'000);
    CHECK(the<SignalWorkers>(node.on(TimerFired{})).signal == SIGKILL);
  }
}

TEST_CASE("what outlives the shutdown timeout is killed") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.code = 3}, 7});
  CHECK(the<SignalWorkers>(node.on(TimerFired{})).signal == SIGKILL);
}

TEST_CASE("a stopped node tells all failures, those of its own making marked, when all are gone") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.code = 3}, 7});
  CHECK(node.on(WorkerExited{0, {.signal = SIGTERM}, 8}).empty());
  const Effects effects = node.on(AllGone{});
  the<StopTimer>(effects);
  the<CloseStore>(effects);
  const auto& failures = told<NodeStopped>(effects).failures;
  REQUIRE(failures.size() == 2);
  CHECK(!failures[0].stopped_by_us);
  CHECK(failures[1].stopped_by_us);
}

TEST_CASE("the next round starts afresh and says why it is there") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.code = 3}, 7});
  node.on(WorkerExited{0, {.signal = SIGTERM}, 8});
  node.on(AllGone{});
  PrepareRound second = kFirstRound;
  second.round = 1;
  second.restart_count = 1;
  second.reason = "rank 1 failed";
  const Effects effects = node.from(second);
  CHECK(the<Warn>(effects).text == "rank 1 failed; restarting all workers (restart 1 of 3)");
  node.on(StoreOpened{{"127.0.0.1", 4001}});
  CHECK(the<StartWorkers>(node.from(RunWorkers{1, {"127.0.0.1", 4001}})).round.restart_count == 1);
  node.on(WorkerExited{0, {}, 9});
  told<WorkersSucceeded>(node.on(WorkerExited{1, {}, 9}));
}

TEST_CASE("the coordinator's order to stop stops the workers, and an older one does not") {
  Node node;
  node.run();
  CHECK(node.from(StopWorkers{5}).empty());
  CHECK(the<SignalWorkers>(node.from(StopWorkers{0})).signal == SIGTERM);
  CHECK(node.from(StopWorkers{0}).empty());
}

TEST_CASE("an order to run that a stop has overtaken starts nothing") {
  Node node;
  node.from(kFirstRound);
  node.from(StopWorkers{0});
  CHECK(node.from(RunWorkers{0, {"h", 5}}).empty());
}

TEST_CASE("others hear first that the node leaves; then workers get the signal that it got") {
  Node node;
  node.run();
  const Effects effects = node.on(SignalReceived{SIGHUP});
  REQUIRE(!effects.empty());
  CHECK(std::holds_alternative<ToCoordinator>(effects[0]));
  CHECK(the<SignalWorkers>(effects).signal == SIGHUP);
  CHECK(told<NodeLeaves>(effects).signal == SIGHUP);
}

TEST_CASE("a second SIGINT or SIGTERM kills at once, unless it comes within a second") {
  Node node;
  node.run();
  node.now = 10'000;
  node.on(SignalReceived{SIGTERM});
  node.now = 10'999;
  CHECK(node.on(SignalReceived{SIGTERM}).empty());
  node.now = 11'000;
  CHECK(node.on(SignalReceived{SIGHUP}).empty());
  CHECK(the<SignalWorkers>(node.on(SignalReceived{SIGINT})).signal == SIGKILL);
}

TEST_CASE("a worker's signal ends the job and never insists") {
  Node node;
  node.run();
  const Effects effects = node.on(SignalReceived{SIGTERM, 100});
  CHECK(the<Warn>(effects).text == "SIGTERM came from process 100, a worker or a child of one; stopping all workers");
  CHECK(told<NodeLeaves>(effects).signal == SIGTERM);
  CHECK(the<SignalWorkers>(effects).signal == SIGTERM);
  CHECK(the<SignalWorkers>(effects).cause == SignalWorkers::Cause::kOurs);  // the other workers have not had it
  CHECK(the<StartTimer>(effects).delay_ms == 30'000);
  node.now = 2'000;
  CHECK(node.on(SignalReceived{SIGINT, 101}).empty());
  node.now = 3'000;
  CHECK(the<StartTimer>(node.on(SignalReceived{SIGTERM})).delay_ms == 25'000);  // it is the first one from outside
  node.now = 5'000;
  node.now = 7'000;
  CHECK(node.on(SignalReceived{SIGTERM, 100}).empty());
  CHECK(the<SignalWorkers>(node.on(SignalReceived{SIGTERM})).signal == SIGKILL);
}

TEST_CASE("a store that cannot be opened and a worker that cannot be started end the round") {
  Node node;
  node.from(kFirstRound);
  CHECK(told<NodeCannotRun>(node.on(StoreFailed{"port in use"})).reason == "port in use");
  Node other;
  other.run();
  CHECK(told<NodeCannotRun>(other.on(WorkerNotStarted{1, "no such file"})).reason ==
        "local rank 1 was not started: no such file");
}

TEST_CASE("a SIGTERM from outside leaves less time than a failure does") {
  Node node;
  node.run();
  CHECK(the<StartTimer>(node.on(SignalReceived{SIGTERM})).delay_ms == 25'000);
  Node other;
  other.run();
  CHECK(the<StartTimer>(other.on(SignalReceived{SIGINT})).delay_ms == 30'000);
}

TEST_CASE("what does not end when killed is named after a second and given up after five: the job fails") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.code = 3}, 7});
  CHECK(the<StartTimer>(node.on(TimerFired{})).delay_ms == 1'000);
  const Effects named = node.on(TimerFired{});
  the<NameSurvivors>(named);
  CHECK(the<StartTimer>(named).delay_ms == 4'000);
  CHECK(the<Warn>(node.on(SurvivorsNamed{"process 7 (python, state D)"})).text ==
        "process 7 (python, state D) has not exited after SIGKILL");
  const Effects given_up = node.on(TimerFired{});
  the<AbandonWorkers>(given_up);
  the<CloseStore>(given_up);
  std::vector<AgentMessage> messages;
  for (const Effect& effect : given_up) {
    if (const auto* sent = std::get_if<ToCoordinator>(&effect)) messages.push_back(sent->message);
  }
  REQUIRE(messages.size() == 2);
  CHECK(std::get<NodeCannotRun>(messages[0]).reason.starts_with("process 7 (python, state D) survived SIGKILL"));
  CHECK(std::holds_alternative<NodeStopped>(messages[1]));
  told<JobResultHeard>(node.from(EndJob{}));
  CHECK(the<Finish>(node.from(Dismiss{})).job_result.left_behind == "process 7 (python, state D)");
}

TEST_CASE("a stuck worker may be ignored: the node is stopped without it") {
  Node node;
  node.life = Lifecycle{{.local_world_size = 2, .ignore_stuck_workers = true}};
  node.run();
  node.on(WorkerExited{1, {.code = 3}, 7});
  for (int i = 0; i < 2; ++i) node.on(TimerFired{});
  told<NodeStopped>(node.on(TimerFired{}));
}

TEST_CASE("the time to end stands still while all are stopped") {
  Node node;
  node.run();
  node.on(SignalReceived{SIGINT});
  node.now = 10'000;
  const Effects paused = node.on(SignalReceived{kTstp});
  CHECK(the<SignalWorkers>(paused).signal == kStop);
  the<StopTimer>(paused);
  the<Paused>(paused);
  node.now = 99'000;
  CHECK(the<StartTimer>(node.on(SignalReceived{kCont})).delay_ms == 20'000);
}

TEST_CASE("a pause does not start a timer again that has fired") {
  Node node(kWithLogs);
  node.from(kFirstRound);
  node.on(StoreOpened{{"127.0.0.1", 4000}});
  node.on(LogsOpened{0});
  the<StartTimer>(node.from(RunWorkers{0, {"127.0.0.1", 4000}}));  // for the log directories of a next round
  for (int rank = 0; rank < 2; ++rank) node.on(WorkerStarted{rank, 100 + rank});
  node.on(TimerFired{});
  node.now = 10'000;
  node.on(SignalReceived{kTstp});
  CHECK(the<StartTimer>(node.on(WorkerExited{1, {.code = 3}, 7})).delay_ms == 30'000);
  for (const Effect& effect : node.on(SignalReceived{kCont})) CHECK_FALSE(std::holds_alternative<StartTimer>(effect));
}

TEST_CASE("SIGTERM while a failed round is being stopped shortens the wait to that after a SIGTERM") {
  Node node;
  node.run();
  CHECK(the<StartTimer>(node.on(WorkerExited{1, {.code = 3}, 7})).delay_ms == 30'000);
  node.now = 1'000;
  CHECK(the<StartTimer>(node.on(SignalReceived{SIGTERM})).delay_ms == 25'000);

  Node late;
  late.run();
  late.on(WorkerExited{1, {.code = 3}, 7});
  late.now = 20'000;
  CHECK(the<StartTimer>(late.on(SignalReceived{SIGTERM})).delay_ms == 10'000);

  Node overdue;  // its timer is due, and has not fired yet
  overdue.run();
  overdue.on(WorkerExited{1, {.code = 3}, 7});
  overdue.now = 30'001;
  CHECK(the<StartTimer>(overdue.on(SignalReceived{SIGTERM})).delay_ms == 0);
}

TEST_CASE("a user who goes on insisting does not delay that a stuck worker is given up") {
  Node node;
  node.run();
  node.on(SignalReceived{SIGINT});
  node.now = 1'500;
  CHECK(the<SignalWorkers>(node.on(SignalReceived{SIGINT})).signal == SIGKILL);
  node.now = 2'300;
  CHECK(node.on(SignalReceived{SIGINT}).empty());
}

TEST_CASE("a signal to be forwarded reaches the workers and ends nothing") {
  Node node;
  node.life = Lifecycle{{.local_world_size = 2, .forward_signals = {SIGUSR1}}};
  node.run();
  const Effects effects = node.on(SignalReceived{SIGUSR1});
  CHECK(effects.size() == 1);
  CHECK(the<SignalWorkers>(effects).signal == SIGUSR1);
}

TEST_CASE("a stop from the terminal stops the workers first, and going on continues them") {
  Node node;
  node.run();
  const Effects effects = node.on(SignalReceived{kTstp});
  CHECK(the<SignalWorkers>(effects).signal == kStop);
  the<Paused>(effects);
  CHECK(the<SignalWorkers>(node.on(SignalReceived{kCont})).signal == kCont);
  told<WorkersSucceeded>((node.on(WorkerExited{0, {}, 5}), node.on(WorkerExited{1, {}, 6})));
}

TEST_CASE("when the guardian dies all workers are killed and the job has failed") {
  Node node;
  node.run();
  const Effects effects = node.on(GuardianLost{});
  CHECK(the<SignalWorkers>(effects).signal == SIGKILL);
  the<AwaitAllGone>(effects);
  CHECK(the<Finish>(node.on(AllGone{})).job_result.outcome == JobResult::Outcome::kFailed);
}

TEST_CASE(
    "a node that hosts the coordinator of others tells them that its guardian is dead, and when its workers are gone") {
  Node node({.hosts_coordinator = true, .terms = {.min_nodes = 2, .max_nodes = 2}});
  node.run();
  CHECK(told<NodeLeaves>(node.on(GuardianLost{})).signal == SIGKILL);
  const Effects gone = node.on(AllGone{});
  CHECK(told<NodeStopped>(gone).round == 0);
  the<Finish>(gone);

  // A node whose coordinator may move to another node does not leave either.
  for (const bool hosts : {false, true}) {
    Node another({.hosts_coordinator = hosts, .coordinator_may_move = true, .terms = {.min_nodes = 2, .max_nodes = 2}});
    another.run();
    for (const Effect& effect : another.on(GuardianLost{})) CHECK(!std::holds_alternative<ToCoordinator>(effect));
    for (const Effect& effect : another.on(AllGone{})) CHECK(!std::holds_alternative<ToCoordinator>(effect));
  }
}

TEST_CASE("a node without workers ends as soon as it is told") {
  Node node;
  node.on(Begin{});
  node.on(SignalReceived{SIGTERM});
  told<JobResultHeard>(node.from(EndJob{{.outcome = JobResult::Outcome::kStopped}}));
  CHECK(the<Finish>(node.from(Dismiss{})).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(node.on(TimerFired{}).empty());
}

TEST_CASE("a death by SIGTERM waits for the order to stop that may be on its way, and is no failure then") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.signal = SIGTERM}, 7});
  node.on(WorkerExited{0, {.signal = SIGTERM}, 8});
  const Effects held = node.on(AllGone{});
  CHECK(held.size() == 1);
  CHECK(the<StartTimer>(held).delay_ms == 500);
  const Effects effects = node.on(SignalReceived{SIGTERM});
  std::vector<AgentMessage> messages;
  for (const Effect& effect : effects) {
    CHECK_FALSE(std::holds_alternative<SignalWorkers>(effect));
    if (const auto* sent = std::get_if<ToCoordinator>(&effect)) messages.push_back(sent->message);
  }
  REQUIRE(messages.size() == 2);
  CHECK(std::get<NodeLeaves>(messages[0]).signal == SIGTERM);
  CHECK(std::holds_alternative<NodeStopped>(messages[1]));
  the<StopTimer>(effects);
}

TEST_CASE("a worker's death by SIGTERM is a failure like others when no order comes") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.signal = SIGTERM}, 7});
  node.on(WorkerExited{0, {.signal = SIGTERM}, 8});
  node.on(AllGone{});
  CHECK(told<NodeStopped>(node.on(TimerFired{})).failures.size() == 2);
}

TEST_CASE("a death by another signal, and one of our making, wait for no order") {
  Node node;
  node.run();
  node.on(WorkerExited{1, {.signal = SIGKILL}, 7});
  node.on(WorkerExited{0, {.signal = SIGTERM}, 8});
  told<NodeStopped>(node.on(AllGone{}));
  Node stopped;
  stopped.run();
  stopped.on(SignalReceived{SIGTERM});
  for (int rank = 0; rank < 2; ++rank) stopped.on(WorkerExited{rank, {.signal = SIGTERM}, 7});
  told<NodeStopped>(stopped.on(AllGone{}));
}

TEST_CASE("a store that is opened, or fails, after its round is over is none of the next round's") {
  for (const bool opens : {true, false}) {
    Node node;
    the<OpenStore>(node.from(kFirstRound));
    node.from(StopWorkers{0});
    node.on(AllGone{});
    PrepareRound second = kFirstRound;
    second.round = 1;
    the<OpenStore>(node.from(second));
    const Event late = opens ? Event{StoreOpened{{"h", 5}}} : Event{StoreFailed{"port in use"}};
    CHECK(node.on(late).empty());
    const StoreIsOpen open = told<StoreIsOpen>(node.on(StoreOpened{{"h", 6}}));
    CHECK(open.round == 1);
    CHECK(open.endpoint.port == 6);
  }
}

TEST_CASE("a store that cannot be opened is no matter where its round is being stopped anyhow") {
  Node node;
  node.from(kFirstRound);
  node.from(StopWorkers{0});
  CHECK(node.on(StoreFailed{"port in use"}).empty());
}
