#include "rendezvous/trace/replay.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/trace/recording_test_support.h"
#include "src/base/json.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::protocol;
using namespace elastic::trace;
using namespace elastic::trace::testing;

namespace {

// A coordinator whose events are recorded.
struct Recorded {
  explicit Recorded(CoordinatorConfig config, std::unique_ptr<health::CheckPlan> plan = nullptr)
      : has_check(plan != nullptr),
        coordinator(config, plan ? recorded_check(std::move(plan), [this](std::string line) { recording += line; })
                                 : health::no_check()) {
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
    const WorkerFailure why = coordinator::testing::failure(1, now_ms + 10);
    job.on(MessageReceived{1, WorkerFailed{round, why}}, now_ms + 10);
    job.on(MessageReceived{1, NodeStopped{round, {why}}}, now_ms + 20);
    job.on(MessageReceived{2, NodeStopped{round, {}}}, now_ms + 30);
  }
  job.on(MessageReceived{1, JobResultHeard{}}, 4000);
  job.on(MessageReceived{2, JobResultHeard{}}, 4001);
  REQUIRE(job.coordinator.ended());
  return job.recording;
}

// A check that finds node 1 unhealthy the first time.
class OnceUnhealthy : public health::CheckPlan {
 public:
  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules&) const override {
    return nodes[0].passed ? 0 : 2;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>&, const health::CheckRules&) const override {
    return std::vector<std::string>(nodes.size(), format("do {}", phase));
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>&,
                                   const std::vector<health::CheckResults>&) const override {
    return {{1, "it is slow"}};
  }
};

std::string checked_job() {
  Recorded job({}, std::make_unique<OnceUnhealthy>());
  NodeJoins joins = joiner(1, 1);
  joins.terms.max_nodes = 2;
  joins.rules.last_call_ms = 10;
  joins.check.when = health::CheckRules::When::kFirst;
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

// The lines of a replay.
std::vector<Json> objects(const std::string& text) {
  std::vector<Json> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    const auto line = Json::parse(std::string_view(text).substr(at, end - at), "line");
    REQUIRE(line.has_value());
    out.push_back(*line);
    at = end + 1;
  }
  return out;
}

// A step's line from its decisions on.
std::string rest_of(const Json& step) {
  const std::string line = step.dump();
  return line.substr(line.find("\"decided\""));
}

}  // namespace

TEST_CASE("a replay tells each event, the decisions with their reasons, whom they are told, and the state") {
  const std::string recording = failing_job();
  const std::string text = replayed(recording);
  CAPTURE(text);
  CHECK(text.starts_with(R"({"job":"job","program":"elastic-run )" ELASTIC_RUN_VERSION
                         R"(","birth":{"term":1,"incarnation":"0xabc","loss_timeout_ms":5000,"now_ms":1000,)"));
  const auto lines = objects(text);
  const Json& joined = lines.at(1);
  CHECK(joined.find("at_ms")->dump() == "0");
  CHECK(joined.find("event")->dump() + "\n" == first_lines(recording, 2).substr(first_lines(recording, 1).size()));
  CHECK(rest_of(joined) == R"("decided":[],"sent":[],"state":"forming","round":null,"nodes":1,"deadline_ms":1000})");
  const Json& formed = lines.at(2);
  CHECK(formed.find("at_ms")->dump() == "250");
  CHECK(formed.find("decided")->dump() == R"(["round 0 has formed with 2 nodes, world size 4"])");
  const Json::Array& prepares = *formed.find("sent")->as_array();
  REQUIRE(prepares.size() == 2);  // each has a place of its own
  CHECK(prepares[1].dump().starts_with(
      R"({"to":[2],"message":"prepare-round","round":0,"restart_count":0,"max_restarts":1,)"
      R"("place":{"node_rank":1,"node_count":2,"base_rank":2,"world_size":4,)"));
  CHECK(lines.at(3).find("at_ms")->dump() == "1000");
  CHECK(rest_of(lines.at(3)) ==
        R"("decided":[],"sent":[{"to":[1,2],"message":"run-workers","round":0,)"
        R"("store":{"address":"10.0.0.1","port":4000}}],"state":"running","round":0,"nodes":2,"deadline_ms":5000})");
  const Json& failed = lines.at(4);
  CHECK(failed.find("at_ms")->dump() == "1010");
  CHECK(failed.find("quiet")->dump() == "2");  // a keep-alive and a deadline
  CHECK(failed.find("event")->text_or_empty("message") == "worker-failed");
  CHECK(failed.find("sent")->dump() ==
        R"([{"to":[1,2],"message":"stop-workers","round":0,"hangs":null,"aborts":null,"dumps":null}])");
  CHECK(failed.text_or_empty("state") == "stopping");
  CHECK(text.contains(R"("decided":["round 1 has formed with 2 nodes, world size 4, because rank 1 (local rank 1, )"
                      R"(pid 101) exited with code 1"])"));
  CHECK(text.contains(R"("decided":["the job has failed"])"));
  CHECK(lines.back().dump().starts_with(
      R"({"quiet":0,"end":"verdict","verdict":{"outcome":"failed","reason":"","round":1,"term":1,"restarts_used":1,)"
      R"("signal":0,"failures":[{"rank":1,"local_rank":1,)"));
  CHECK(text.ends_with(R"("cut_off_line":null})"
                       "\n"));
  CHECK(lines.size() == 14);
  CHECK(replayed(failing_job()) == text);
}

TEST_CASE(
    "a process that had one coordinator after another has recorded all, and each is replayed from its beginning") {
  const std::string one = failing_job();
  const std::string other = checked_job();
  CHECK(replayed(one + other + one) == replayed(one) + replayed(other) + replayed(one));
}

TEST_CASE("a coordinator that another one has taken over from ends by that, and tells why it closes its sessions") {
  Recorded job({});
  job.on(MessageReceived{4, joiner(1, 2)}, 0);
  job.on(MessageReceived{5, joiner(2, 2)}, 0);
  job.on(Introduced{.incarnation = 1, .term = 9}, 10);
  job.on(KeepAliveReceived{4}, 20);
  const std::string text = replayed(job.recording);
  CAPTURE(text);
  CHECK(text.contains(R"("decided":["a coordinator of term 9 has taken over from this one of term 1"],)"
                      R"("sent":[{"to":[4,5],"closed":"another coordinator has taken over"}],"state":"ended")"));
  CHECK(text.ends_with("{\"quiet\":1,\"end\":\"taken-over\",\"verdict\":null,\"cut_off_line\":null}\n"));
}

TEST_CASE("a replay says the same of a check that its plan answered then") {
  const std::string recording = checked_job();
  const std::string text = replayed(recording);
  CAPTURE(text);
  CHECK(text.contains(R"("sent":[{"to":[1,2],"message":"run-check","round":0,"phase":1,"order":"do 1"}])"));
  CHECK(text.contains(R"("node 1 (node2) is excluded: it is slow")"));
  const auto lines = objects(text);
  CHECK(rest_of(lines.at(lines.size() - 2)).contains(R"("state":"running","round":1,"nodes":1,)"));
  CHECK(lines.back().dump() == R"({"quiet":0,"end":"unfinished","verdict":null,"cut_off_line":null})");
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
      const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
      const auto lines = objects(text);
      REQUIRE((lines.back().text_or_empty("end") == "unfinished" || lines.back().text_or_empty("end") == "verdict"));
      const bool in_a_line = recording[size - 1] != '\n' && recording[size] != '\n';
      const Json& cut_off = *lines.back().find("cut_off_line");
      REQUIRE((!cut_off.is_null() || !in_a_line));
      REQUIRE(whole.starts_with(text.substr(0, last)));
      if (cut_off.is_null()) continue;  // it was cut after an event that has no further lines
      REQUIRE(first_lines(recording, static_cast<std::size_t>(*cut_off.as_integer()) - 1).size() <= size);
      REQUIRE(lines.back().text_or_empty("end") == "unfinished");
    }
  }
}

TEST_CASE("a replay of a wrong line ends with its place, after what was before it") {
  const std::string recording = failing_job();
  const std::string good = first_lines(recording, 3);
  CHECK(replayed(good + "\n{\"at_ms\":1}\n" + recording) ==
        first_lines(replayed(good), 3) + "rec:5: member event is missing; correct the line, or take it out");
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
  CHECK(text.contains("\\u001b[2J"));
}
