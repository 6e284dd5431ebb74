#include "rendezvous/coordinator/replay.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/recording_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

// A coordinator whose events are recorded.
struct Recorded {
  explicit Recorded(CoordinatorConfig config, std::unique_ptr<CheckPlan> plan = nullptr)
      : has_check(plan != nullptr),
        coordinator(config, plan ? recorded_check(std::move(plan), [this](std::string line) { recording += line; })
                                 : no_check()) {
    recording = recording_head("job", config, has_check);
  }
  Effects on(const Event& event, std::int64_t now_ms) {
    recording += recording_line(event, now_ms);
    return coordinator.on_event(event, now_ms);
  }

  bool has_check;
  std::string recording;
  Coordinator coordinator;
};

NodeJoins joiner(AgentId agent, int nodes, int restarts = 1) {
  return {.local_world_size = 2,
          .role = "default",
          .agent = agent,
          .address = format("node{}", agent),
          .terms = {nodes, nodes, 1, restarts}};
}

// The recording of a job of two nodes: a worker fails twice, and there is one restart.
std::string failing_job() {
  Recorded job({.incarnation = 0xabc, .lease = {}, .now_ms = 1000});
  job.on(MessageReceived{1, joiner(1, 2)}, 1000);
  job.on(MessageReceived{2, joiner(2, 2)}, 1250);
  for (RoundNumber round = 0; round < 2; ++round) {
    const std::int64_t now_ms = 2000 + 1000 * round;
    job.on(MessageReceived{1, StoreIsOpen{round, {"10.0.0.1", 4000}}}, now_ms);
    job.on(KeepAliveReceived{2}, now_ms + 1);
    job.on(TimePassed{}, now_ms + 2);
    const WorkerFailure why = testing::failure(1, now_ms + 10);
    job.on(MessageReceived{1, WorkerFailed{round, why}}, now_ms + 10);
    job.on(MessageReceived{1, NodeStopped{round, {why}}}, now_ms + 20);
    job.on(MessageReceived{2, NodeStopped{round, {}}}, now_ms + 30);
  }
  job.on(MessageReceived{1, VerdictHeard{}}, 4000);
  job.on(MessageReceived{2, VerdictHeard{}}, 4001);
  REQUIRE(job.coordinator.ended());
  return job.recording;
}

// A check that finds node 1 unfit the first time.
class OnceUnfit : public CheckPlan {
 public:
  int phases(const std::vector<CheckNode>& nodes, const CheckRules&) const override { return nodes[0].passed ? 0 : 2; }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>&, const CheckRules&) const override {
    return std::vector<std::string>(nodes.size(), format("do {}", phase));
  }
  std::vector<Unfit> unfit(const std::vector<CheckNode>&, const std::vector<CheckResults>&) const override {
    return {{1, "it is slow"}};
  }
};

std::string checked_job() {
  Recorded job({}, std::make_unique<OnceUnfit>());
  NodeJoins joins = joiner(1, 1);
  joins.terms.max_nodes = 2;
  joins.rules.last_call_ms = 10;
  joins.check.when = CheckRules::When::kFirst;
  job.on(MessageReceived{1, joins}, 0);
  joins.agent = 2;
  joins.address = "node2";
  job.on(MessageReceived{2, joins}, 1);
  for (std::uint32_t phase = 0; phase < 2; ++phase) {
    for (const NodeId node : {1U, 2U}) job.on(MessageReceived{node, CheckDone{0, phase, "done"}}, 20);
  }
  for (const NodeId node : {1U, 2U}) job.on(MessageReceived{node, NodeStopped{0, {}}}, 30);
  job.on(TimePassed{}, 100);
  job.on(MessageReceived{1, StoreIsOpen{1, {"10.0.0.1", 4000}}}, 110);
  REQUIRE(job.coordinator.state() == Coordinator::State::kRunning);
  return job.recording;
}

std::string first_lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (; count > 0; --count) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

}  // namespace

TEST_CASE("a replay tells each event, the decisions with their reasons, whom they are told, and the state") {
  const std::string text = replayed(failing_job());
  CAPTURE(text);
  CHECK(text.starts_with(
      "job job: coordinator of term 1, incarnation abc; a node is lost after 5000 ms without a message; "
      "recorded by elastic-run " ELASTIC_RUN_VERSION
      "\n"
      "+0.000 s  node1 (session 1) joins with 2 workers of role default, under --nnodes=2:2 --node_unit=1 "
      "--max-restarts=1 (agent 1)\n"));
  CHECK(text.contains("+0.250 s  node2 (session 2) joins"));
  CHECK(text.contains(
      "    decided: round 0 has formed with 2 nodes, world size 4\n"
      "    to node1 (session 1): prepare round 0 as node 0 of 2, its first rank 0 of 4; restart 0 of 1\n"));
  CHECK(text.contains(
      "+1.000 s  node1 (session 1) has opened the store of round 0 at 10.0.0.1:4000\n"
      "    to node1 (session 1), node2 (session 2): run the workers of round 0, with the store at 10.0.0.1:4000\n"
      "    now: running, round 0, 2 nodes"));
  CHECK(text.contains(
      "+1.010 s  node1 (session 1) says that in round 0 rank 1 (local rank 1, pid 101) exited with code 1\n"
      "    to node1 (session 1), node2 (session 2): stop the workers of round 0\n"
      "    now: stopping, round 0, 2 nodes"));
  CHECK(text.contains(
      "    decided: round 1 has formed with 2 nodes, world size 4, because rank 1 (local rank 1, pid 101) "
      "exited with code 1\n"));
  CHECK(text.contains("    decided: the job has failed\n"));
  CHECK(
      text.ends_with("\nthe job has failed in round 1, after 1 restart; rank 1 (local rank 1, pid 101) exited with "
                     "code 1 on node1\n"));
  CHECK(replayed(failing_job()) == text);
}

TEST_CASE(
    "a process that had one coordinator after another has recorded all, and each is replayed from its beginning") {
  const std::string one = failing_job();
  const std::string text = replayed(one + checked_job() + one);
  const std::string alone = replayed(one);
  const std::string steps = alone.substr(0, alone.rfind("the job has failed in round 1"));
  CHECK(text.starts_with(steps +
                         "\nanother coordinator of this process:\njob job: coordinator of term 1, incarnation 1;"));
  CHECK(text.ends_with("\nanother coordinator of this process:\n" + alone));
}

TEST_CASE("a replay says the same of a check that its plan answered then") {
  const std::string recording = checked_job();
  const std::string text = replayed(recording);
  CAPTURE(text);
  CHECK(text.contains("    to node1 (session 1), node2 (session 2): do phase 1 of the check of round 0: do 1\n"));
  CHECK(text.contains("    decided: node 1 (node2) is excluded: it is slow\n"));
  CHECK(text.contains("    now: running, round 1, 1 node"));
  CHECK(text.ends_with("\nthe recording ends here, before the job has\n"));
  const auto with = [&](const char* from, const char* to) { return replayed(replace_all(recording, from, to)); };
  CHECK(with("{\"check\":\"phases\",\"phases\":2}\n", "").contains("the check is asked how many phases it has here"));
  CHECK(with("\"do 0\",", "").contains("rec:5: the check has 1 order for 2 nodes; correct the line"));
  CHECK(with("\"node_rank\":1,\"why\"", "\"node_rank\":2,\"why\"")
            .contains(": node 2 is unfit, and the round has 2 nodes"));
  CHECK(with("\"has_check\":true", "\"has_check\":false")
            .contains("rec:4: it is an answer of the check, which was not asked"));
}

TEST_CASE("a recording that was cut off anywhere is replayed as far as it goes, and the replay says so") {
  for (const std::string& recording : {failing_job(), checked_job()}) {
    const std::string whole = replayed(recording);
    const std::size_t head = recording.find('\n') + 1;
    for (std::size_t size = head; size < recording.size(); size += 5) {
      const std::string text = replayed(recording.substr(0, size));
      CAPTURE(text);
      const std::size_t shown = text.find("\nline ");
      REQUIRE(text.contains("the recording ends here, before the job has\n") ==
              !text.ends_with("pid 101) exited with code 1 on node1\n"));
      const bool in_a_line = recording[size - 1] != '\n' && recording[size] != '\n';
      REQUIRE((shown != std::string::npos || !in_a_line));
      if (shown == std::string::npos) continue;  // it was cut after an event that has no further lines
      REQUIRE(text.substr(shown).contains(" is not whole: the recording was cut off there\n"));
      REQUIRE(whole.starts_with(text.substr(0, shown + 1)));
    }
  }
}

TEST_CASE("a replay of a wrong line ends with its place, after what was before it") {
  const std::string recording = failing_job();
  const std::string good = first_lines(recording, 3);
  CHECK(replayed(good + "\n{\"at_ms\":1}\n" + recording) ==
        replace_all(replayed(good), "the recording ends here, before the job has\n",
                    "rec:5: member event is missing; correct the line, or take it out"));
  CHECK(replayed("") == "rec:1: there is no recording in it; name a file that --record has written");
  CHECK(replayed("\n") == "rec:1: there is no recording in it; name a file that --record has written");
  CHECK(replayed(recording.substr(0, 30)).starts_with("rec:1: it is not an elastic-run coordinator recording"));
}

TEST_CASE("no recording of readable lines can break the coordinator that is told them") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EventMaker maker(seed);
    Recorded job({.incarnation = 1, .lease = {}});
    std::int64_t now_ms = 0;
    for (int i = 0; i < 60; ++i) {
      Event event = maker.event(static_cast<std::size_t>(maker.below(EventMaker::kKinds)));
      // There are few sessions, agents and rounds, so that events concern the same ones.
      if (auto* said = std::get_if<MessageReceived>(&event)) {
        said->from %= 5;
        std::visit(
            [](auto& message) {
              if constexpr (requires { message.round; }) message.round %= 3;
            },
            said->message);
        if (auto* joins = std::get_if<NodeJoins>(&said->message)) {
          joins->agent %= 6;
          if (seed % 2 == 0) joins->terms = {1, 3, 1, 2};
          if (seed % 3 == 0) joins->facts = {};
          joins->facts.incarnation %= 2;
          joins->facts.round %= 3;
          joins->facts.membership %= 2;
          if (joins->node_rank) *joins->node_rank %= 4;
        }
      }
      if (auto* heard = std::get_if<KeepAliveReceived>(&event)) heard->from %= 5;
      if (auto* ended = std::get_if<SessionEnded>(&event)) ended->from %= 5;
      now_ms += maker.below(3000);
      job.on(event, now_ms);
    }
    Replay replay(lines_of(job.recording), "rec");
    REQUIRE(replay.begin().has_value());
    for (auto step = replay.next(); step && *step; step = replay.next()) {
    }
    CHECK(replay.coordinator().state() == job.coordinator.state());
    CHECK(replay.coordinator().round() == job.coordinator.round());
    CHECK(replay.coordinator().roster().size() == job.coordinator.roster().size());
    CHECK(replay.coordinator().next_deadline_ms() == job.coordinator.next_deadline_ms());
  }
}

TEST_CASE("what others wrote cannot move the cursor of who reads a replay") {
  Recorded job({});
  NodeJoins joins = joiner(1, 1);
  joins.address = joins.role = "\x1b[2J\n";
  job.on(MessageReceived{0, joins}, 0);
  job.on(MessageReceived{0, NodeCannotRun{0, "\x1b]0;x\x07"}}, 0);
  job.on(SessionEnded{0, "\x1b"}, 0);
  const std::string text = replayed(job.recording);
  for (const char c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
  CHECK(text.contains("\\x1b[2J"));
}
