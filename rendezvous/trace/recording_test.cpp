#include "rendezvous/trace/recording.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rendezvous/trace/limits.h"
#include "rendezvous/trace/recording_test_support.h"
#include "src/base/json.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::protocol;
using namespace elastic::trace;
using namespace elastic::trace::testing;

namespace {

const char* const kJoins =
    R"({"at_ms":5,"event":"said","from":3,"message":"node-joins","address":"node1",)"
    R"("agent":"0x1f","local_world_size":2,)"
    R"("role":"default","node_rank":null,"hosts_coordinator":false,)"
    R"("terms":{"min_nodes":1,"max_nodes":2,"node_unit":1,"max_restarts":3},)"
    R"("rules":{"last_call_ms":30000,"join_timeout_ms":600000,"replacement_grace_ms":0,"scale_up":"after",)"
    R"("scale_up_after_ms":1000,"node_losses":3,"loss_window_ms":600000,"keep_out_ms":300000,"job_losses":0,)"
    R"("replacement_wait_ms":null,"crash_loop":null,"failover":null,"on_leave":null,)"
    R"("failover_evidence":null,"hang":null,"hang_timeout_ms":null,"hang_first_timeout_ms":null,)"
    R"("hang_restarts":null,"hang_sections":null},"facts":null,)"
    R"("addresses":null,"check_rules":null,"session":null,"group":null,"door":null,"training_ports":null})"
    "\n";

std::string error_of(const std::string& line) {
  const auto read = parse_recording_line(line, "rec:7");
  return read ? "" : read.error().text();
}

}  // namespace

TEST_CASE("an event of any kind is the same after it was recorded and read") {
  EventMaker maker(1);
  for (std::size_t i = 0; i < 40 * EventMaker::kKinds; ++i) {
    const Event event = maker.event(i % EventMaker::kKinds);
    const std::string line = recording_line(event, static_cast<std::int64_t>(i));
    CAPTURE(line);
    REQUIRE(line.find('\n') == line.size() - 1);
    const auto read = parse_recording_line(line, "rec:1");
    REQUIRE_MESSAGE(read.has_value(), error_of(line));
    const auto* recorded = std::get_if<RecordedEvent>(&*read);
    REQUIRE(recorded != nullptr);
    CHECK(recorded->at_ms == static_cast<std::int64_t>(i));
    REQUIRE(recorded->event.index() == event.index());
    if (const auto* said = std::get_if<MessageReceived>(&event)) {
      CHECK(std::get<MessageReceived>(recorded->event).from == said->from);
      CHECK(std::get<MessageReceived>(recorded->event).message == said->message);
    }
    CHECK(recording_line(recorded->event, recorded->at_ms) == line);  // these are the events that are no messages
  }
}

TEST_CASE("a person can read and write the line of an event") {
  CHECK(recording_line(
            MessageReceived{
                3,
                NodeJoins{
                    .local_world_size = 2, .role = "default", .agent = 31, .address = "node1", .terms = {1, 2, 1, 3}}},
            5) == kJoins);
  CHECK(recording_line(MessageReceived{0, WorkerFailed{2,
                                                       {.rank = 5,
                                                        .local_rank = 1,
                                                        .node_rank = 1,
                                                        .pid = 99,
                                                        .exit = {.signal = 9},
                                                        .wall_ms = 17,
                                                        .kind = FailureKind::kKilled}}},
                       1) ==
        R"({"at_ms":1,"event":"said","from":0,"message":"worker-failed","round":2,"failure":{"rank":5,"local_rank":1,)"
        R"("node_rank":1,"pid":99,"exit":{"code":0,"signal":9,"core_dumped":false},"wall_ms":17,"stopped_by_us":false,)"
        R"("kind":"killed","host":"","start":null,"error_file_ms":null},"is_uncertain":null})"
        "\n");
  CHECK(recording_line(TimePassed{}, 12) == "{\"at_ms\":12,\"event\":\"time-passed\"}\n");
  CHECK(recording_line(NodeEmptied{UINT64_MAX, 1, 4}, 0) ==
        R"({"at_ms":0,"event":"node-emptied","agent":"0xffffffffffffffff","incarnation":"0x1","round":4})"
        "\n");
  const auto blanks = parse_recording_line(R"(  { "event" : "heard", "from" : 4, "at_ms" : 9 }  )", "rec:1");
  REQUIRE(blanks.has_value());
  CHECK(std::get<KeepAliveReceived>(std::get<RecordedEvent>(*blanks).event).from == 4);
}

TEST_CASE("the head of a recording and the answers of a check are the same after they were read") {
  const CoordinatorConfig config{.term = 7, .incarnation = 0x8000'0000'0000'0001, .lease = {1234}, .now_ms = -5};
  const std::string line = recording_head("a \"job\" \xff", config, true);
  const auto head = parse_recording_head(line, "rec:1");
  REQUIRE(head.has_value());
  CHECK(head->job == "a \"job\" \xff");
  CHECK(head->program == "elastic-run " ELASTIC_RUN_VERSION);
  CHECK(head->config.term == 7);
  CHECK(head->config.incarnation == 0x8000'0000'0000'0001);
  CHECK(head->config.lease.loss_timeout_ms == 1234);
  CHECK(head->config.now_ms == -5);
  CHECK(head->has_check);
  const std::vector<CheckAnswer> answers = {CheckPhases{2}, CheckOrders{{"", "ring \xfe"}},
                                            CheckUnhealthy{{{1, "slow"}}}};
  for (const CheckAnswer& answer : answers) {
    const auto read = parse_recording_line(recording_line(answer), "rec:2");
    REQUIRE(read.has_value());
    REQUIRE(std::holds_alternative<CheckAnswer>(*read));
    CHECK(recording_line(std::get<CheckAnswer>(*read)) == recording_line(answer));
  }
}

TEST_CASE("a line of a recording that is wrong is refused with its place and what is wrong with it") {
  const std::string joins = kJoins;
  REQUIRE(error_of(joins).empty());
  const auto with = [&](const char* from, const char* to) { return error_of(replace_all(joins, from, to)); };
  CHECK(
      with("\"at_ms\":5", "\"at_ms\":5.5") ==
      "rec:7: member at_ms is not a whole number from -9007199254740992 to 9007199254740992; correct the line, or take "
      "it out");
  CHECK(with("\"from\":3,", "") == "rec:7: member from is missing; correct the line, or take it out");
  CHECK(with("\"from\":3", "\"from\":-1").contains("member from is not a whole number from 0 to 4294967295"));
  CHECK(with("\"from\":3", "\"from\":\"3\"").contains("member from is not a whole number"));
  CHECK(with("said", "cried")
            .contains("member event is none of said, heard, session-ended, introduced, node-emptied, "
                      "operator-order, time-passed"));
  CHECK(with("node-joins", "node-jons").contains("member message is none of node-joins, store-is-open"));
  CHECK(with("0x1f", "0X1F").contains("member agent is not 0x and 1 to 16 digits 0-9a-f"));
  CHECK(with("0x1f", "0x").contains("member agent"));
  CHECK(with("0x1f", "0x10000000000000000").contains("member agent"));
  CHECK(with("\"0x1f\"", "31").contains("member agent"));
  CHECK(with("false", "0").contains("member hosts_coordinator is neither true nor false"));
  CHECK(with("\"last_call_ms\":30000", "\"last_call_ms\":-1")
            .contains("member rules.last_call_ms is not a whole number from 0 to "));
  CHECK(with("\"after\"", "\"later\"").contains("member rules.scale_up is none of now, after, on-restart, never"));
  CHECK(with("\"min_nodes\":1,", "").contains("member terms.min_nodes is missing"));
  CHECK(with("\"default\"", "1").contains("member role is not a text"));
  CHECK(with("\"default\"", "{\"bytes\":\"6x\"}").contains("member role is not a text"));
  CHECK(with("\"facts\":null", "\"facts\":[]").contains("member facts is not an object"));
  CHECK(with("\"facts\":null", "\"facts\":{}").contains("member facts.incarnation is missing"));
  CHECK(error_of(R"({"at_ms":1,"event":"said","from":1,"message":"node-stopped","round":0,"failures":[{"rank":"1"}]})")
            .contains("member failures[0].rank is not a whole number"));
  CHECK(error_of("{\"at_ms\":1,").contains("rec:7: it is not JSON: "));
  CHECK(error_of("[]").contains("rec:7: it is not a JSON object"));
  CHECK(error_of("").contains("rec:7: it is not JSON"));
  CHECK(error_of("{\"check\":\"phase\"}").contains("member check is none of phases, orders, unfit"));
  CHECK(error_of(std::string(100'000, '[')).contains("nested deeper than 16 levels"));
  CHECK(error_of(std::string(limits::kRecordingLineBytes + 1, ' ')).contains("longer than 16777216 bytes"));
  const auto parsed = Json::parse(joins, "");
  for (const auto& [name, member] : *parsed->as_object()) {  // a missing member is always noticed
    Json less = Json::object();
    for (const auto& [other, value] : *parsed->as_object()) {
      if (other != name) less.set(other, value);
    }
    const bool is_new = name == "facts" || name == "addresses" || name == "check_rules" || name == "session" ||
                        name == "group" || name == "door" || name == "training_ports";
    CHECK(error_of(less.dump()).empty() == (name == "node_rank" || is_new));
  }
}

TEST_CASE("a recording of a newer version is refused, and members of a newer program are passed over") {
  const std::string head = recording_head("job", {}, false);
  const auto error = [](const std::string& line) {
    const auto read = parse_recording_head(line, "rec:1");
    return read ? "" : read.error().text();
  };
  CHECK(error(replace_all(head, "\"version\":1", "\"version\":2")) ==
        "rec:1: the recording is of version 2, and this elastic-run reads version 1; use the elastic-run that has "
        "written "
        "it, or a newer one");
  CHECK(error(replace_all(head, "\"version\":1", "\"version\":1,\"new\":{\"a\":[1]}")).empty());
  CHECK(error(replace_all(head, "\"job\":\"job\",", "")).contains("member job is missing"));
  CHECK(error(replace_all(head, "recording", "recipe")) ==
        "rec:1: it is not an elastic-run coordinator recording; name a file that --record has written");
  CHECK(error("garbage").contains("it is not an elastic-run coordinator recording"));
  CHECK(error_of(replace_all(kJoins, "\"from\"", "\"since\":[{}],\"from\"")).empty());
}

TEST_CASE("a recorded line with any byte changed is read or refused") {
  EventMaker maker(2);
  std::size_t read = 0;
  for (std::size_t i = 0; i < 8000; ++i) {
    std::string line = i % 4 == 0 ? kJoins : recording_line(maker.event(i % EventMaker::kKinds), 1);
    if (line.size() > 4000) continue;
    for (std::int64_t changes = 1 + maker.below(3); changes > 0; --changes) {
      line[static_cast<std::size_t>(maker.below(static_cast<std::int64_t>(line.size())))] =
          static_cast<char>(maker.below(256));
    }
    const auto again = parse_recording_line(line, "rec:1");
    if (again) ++read;
    if (!again) CHECK(again.error().text().starts_with("rec:1: "));
  }
  CHECK(read > 20);
}
