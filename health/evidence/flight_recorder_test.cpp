#include "health/evidence/flight_recorder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "health/evidence/pickle_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::evidence;
using namespace elastic::evidence::test;

namespace {

// An entry of a dump, as torch 2.8 and later write it.
struct Said {
  int record = 0;
  std::string group = "0";
  std::string description = "default_pg";
  std::string operation = "nccl:all_reduce";
  int collective = 0;
  int p2p = 0;
  std::string state = "scheduled";
  bool is_retired = false;
  bool is_p2p = false;
  std::vector<std::vector<int>> inputs = {{4, 2}};
  std::vector<std::vector<int>> outputs = {{4, 2}};
};

std::string flag(bool value) { return value ? kTrue : kFalse; }
std::string sizes(const std::vector<std::vector<int>>& tensors) {
  std::vector<std::string> items;
  for (const auto& tensor : tensors) {
    std::vector<std::string> lengths;
    for (const int length : tensor) lengths.push_back(number(length));
    items.push_back(list(lengths));
  }
  return list(items);
}

std::string entry(const Said& said) {
  return dict({text("record_id"),
               number(said.record),
               text("pg_id"),
               number(said.group == "0" ? 0 : 1),
               text("process_group"),
               pair(text(said.group), text(said.description)),
               text("collective_seq_id"),
               number(said.collective),
               text("p2p_seq_id"),
               number(said.p2p),
               text("profiling_name"),
               text(said.operation),
               text("input_sizes"),
               sizes(said.inputs),
               text("input_dtypes"),
               list({text("Float")}),
               text("output_sizes"),
               sizes(said.outputs),
               text("state"),
               text(said.state),
               text("time_discovered_started_ns"),
               kNothing,
               text("retired"),
               flag(said.is_retired),
               text("is_p2p"),
               flag(said.is_p2p)});
}

std::string dump(const std::vector<Said>& entries) {
  std::vector<std::string> items;
  for (const Said& said : entries) items.push_back(entry(said));
  const std::string config = dict(
      {text("0"), dict({text("name"), text("0"), text("desc"), text("default_pg"), text("ranks"), text("[0, 1, 2]")})});
  const std::string status =
      dict({text("0"), dict({text("last_enqueued_collective"), number(1904), text("last_started_collective"),
                             number(-1), text("last_completed_collective"), number(1903)})});
  return whole(dict({text("version"), text("2.10"), text("pg_config"), config, text("pg_status"), status,
                     text("entries"), list(items)}));
}

FlightFacts facts_of(const std::vector<Said>& entries) { return flight_facts_of_pickle(dump(entries)).value(); }

}  // namespace

TEST_CASE("a group's facts are what its entries say: the latest that was enqueued, started and is over") {
  const auto facts = facts_of({{.record = 7, .collective = 10, .state = "completed", .is_retired = true},
                               {.record = 8, .collective = 11, .state = "completed"},
                               {.record = 9, .collective = 12, .state = "started"},
                               {.record = 10, .operation = "nccl:all_gather", .collective = 13}});
  CHECK(facts.version == "2.10");
  CHECK(facts.entries == 4);
  CHECK(facts.oldest_record == 7);
  CHECK_FALSE(facts.is_cut);
  REQUIRE(facts.groups.size() == 1);
  const FlightGroup& group = facts.groups[0];
  CHECK(group.name == "0");
  CHECK(group.description == "default_pg");
  CHECK(group.members == std::vector{0, 1, 2});
  CHECK(group.enqueued == 13);
  CHECK(group.started == 12);
  CHECK(group.completed == 11);
  CHECK(group.counted_enqueued == 1904);
  CHECK_FALSE(group.counted_started);
  CHECK(group.counted_completed == 1903);
  REQUIRE(group.newest);
  CHECK(group.newest->backend == "nccl");
  CHECK(group.newest->name == "all_gather");
  CHECK(group.newest->record == 10);
  CHECK(group.newest->sequence == 13);
  CHECK(group.newest->state == FlightOperation::State::kScheduled);
  CHECK_FALSE(group.newest->is_over);
  CHECK(group.newest->sizes == "4x2");
  CHECK(group.newest->input_elements == 8);
  CHECK(group.newest->dtype == "Float");
}

TEST_CASE("a send or a receive has its own sequence and its partner, and is no collective") {
  const auto facts =
      facts_of({{.record = 0, .collective = 3, .state = "completed", .is_retired = true},
                {.record = 1, .operation = "nccl:send 1->2", .collective = 3, .p2p = 41, .is_p2p = true}});
  REQUIRE(facts.groups.size() == 1);
  CHECK(facts.groups[0].enqueued == 3);
  CHECK(facts.groups[0].completed == 3);
  const auto& newest = facts.groups[0].newest;
  REQUIRE(newest);
  CHECK(newest->is_p2p);
  CHECK(newest->name == "send");
  CHECK(newest->peer == 2);
  CHECK(newest->sequence == 41);
  const auto received = facts_of({{.operation = "nccl:recv 3<-0", .p2p = 1, .is_p2p = true}});
  CHECK(received.groups[0].newest->peer == 0);
  CHECK_FALSE(received.groups[0].enqueued);
}

TEST_CASE("groups are those of the entries, the one with the newest entry first") {
  const auto facts = facts_of({{.record = 0, .group = "1", .description = "tp", .collective = 5, .is_retired = true},
                               {.record = 1, .collective = 1, .is_retired = true}});
  REQUIRE(facts.groups.size() == 2);
  CHECK(facts.groups[0].description == "default_pg");
  CHECK(facts.groups[1].description == "tp");
  CHECK(facts.groups[1].members.empty());  // pg_config has no such group, and names nobody
  CHECK_FALSE(facts.groups[1].counted_enqueued);
}

TEST_CASE("equal sizes have equal digests, and other sizes have others, inputs and outputs apart") {
  const auto newest = [](const std::vector<std::vector<int>>& inputs, const std::vector<std::vector<int>>& outputs) {
    return facts_of({{.collective = 1, .inputs = inputs, .outputs = outputs}}).groups[0].newest.value();
  };
  const auto one = newest({{4, 2}, {3}}, {{8}});
  CHECK(one.input_digest == newest({{4, 2}, {3}}, {{9}}).input_digest);
  CHECK(one.output_digest == newest({{1}}, {{8}}).output_digest);
  CHECK(one.output_digest != newest({{4, 2}, {3}}, {{9}}).output_digest);
  CHECK(one.input_digest != newest({{4}, {2, 3}}, {{8}}).input_digest);
  CHECK(one.sizes == "4x2, 3");
  CHECK(one.input_elements == 11);
  CHECK(one.output_elements == 8);
  CHECK(newest({{}}, {{1 << 30, 1 << 30, 1 << 30}}).output_elements == INT64_MAX);
  CHECK(newest({{}}, {}).input_elements == 1);
}

TEST_CASE("of a dump that is cut off the last entry is left out, since it may not be whole") {
  const std::vector<Said> entries = {{.record = 0, .collective = 1, .is_retired = true},
                                     {.record = 1, .collective = 2, .is_retired = true},
                                     {.record = 2, .collective = 3}};
  const std::string bytes = dump(entries);
  const auto facts = flight_facts_of_pickle(bytes.substr(0, bytes.size() - 30));
  REQUIRE(facts);
  CHECK(facts->is_cut);
  CHECK(facts->entries == 2);
  CHECK(facts->entries_left_out == 1);
  CHECK(facts->groups[0].enqueued == 2);
  CHECK(facts->groups[0].counted_enqueued == 1904);  // stands before the entries
  CHECK(flight_facts_of_pickle(bytes.substr(0, bytes.size() - 1))->groups[0].enqueued == 2);
  CHECK(flight_facts_of_pickle(bytes)->groups[0].enqueued == 3);
}

TEST_CASE("a dump as JSON says the same: its numbers may be texts, its times 0") {
  const auto facts = flight_facts_of_json(
      R"({"comm_lib_version": "", "version": "2.10",
          "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
          "pg_status": {"0": {"last_enqueued_collective": "5", "last_started_collective": "-1",
                              "last_completed_collective": "4"}},
          "entries": [{"record_id": 4, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 4,
                       "p2p_seq_id": 0, "profiling_name": "gloo:all_reduce", "input_sizes": [[2, 2]],
                       "input_dtypes": ["Float"], "output_sizes": [[2, 2]], "state": "scheduled", "retired": false,
                       "is_p2p": false, "thread_id": "139778846318656", "time_discovered_started_ns": 0}]})");
  REQUIRE(facts);
  REQUIRE(facts->groups.size() == 1);
  const FlightGroup& group = facts->groups[0];
  CHECK(group.members == std::vector{0, 1});
  CHECK(group.enqueued == 4);
  CHECK_FALSE(group.completed);
  CHECK(group.counted_enqueued == 5);
  CHECK_FALSE(group.counted_started);
  CHECK(group.counted_completed == 4);
  CHECK(group.newest->backend == "gloo");
  CHECK(group.newest->input_elements == 4);
}

TEST_CASE("fields that are missing or of another type are unknown, and a dump without any is refused") {
  CHECK(flight_facts_of_json(R"({"version": "2.4"})")->groups.empty());
  CHECK(flight_facts_of_json(R"({"entries": []})")->entries == 0);
  const auto facts = flight_facts_of_json(
      R"({"version": 7, "pg_config": [], "pg_status": {"x": 1, "0": []}, "entries":
          [1, {}, {"process_group": "0"},
           {"record_id": 1, "process_group": ["g"], "collective_seq_id": 2, "state": "odd"}]})");
  REQUIRE(facts);
  CHECK(facts->entries == 1);
  CHECK(facts->entries_left_out == 3);
  CHECK(facts->groups[0].newest->state == FlightOperation::State::kUnknown);
  CHECK(facts->groups[0].newest->name.empty());
  CHECK(flight_facts_of_json("{}").error().text() ==
        "cannot read the flight recorder's dump: it has neither a version nor entries");
  CHECK_FALSE(flight_facts_of_json("[]"));
  CHECK_FALSE(flight_facts_of_json("{"));
  CHECK_FALSE(flight_facts_of_pickle(whole(list({}))));
}

TEST_CASE("what is above the bounds is left out, the oldest first, and said") {
  std::vector<Said> many;
  for (std::size_t i = 0; i < kFlightGroups + 2; ++i) {
    many.push_back({.record = static_cast<int>(i), .group = format("g{}", i), .collective = 1});
  }
  const auto facts = facts_of(many);
  CHECK(facts.groups.size() == kFlightGroups);
  CHECK(facts.has_more_groups);
  CHECK(facts.groups[0].name == format("g{}", kFlightGroups + 1));
  CHECK(facts.groups.back().name == "g2");

  const std::string first = entry({.record = 1, .collective = 1}) + std::string("q\0", 2);
  std::vector<std::string> items(kFlightEntries, std::string("h\0", 2));
  items.insert(items.begin(), first);
  items.push_back(entry({.record = 9, .collective = 9}));
  const auto long_dump = flight_facts_of_pickle(whole(dict({text("entries"), list(items)})));
  REQUIRE(long_dump);
  CHECK(long_dump->entries == kFlightEntries);
  CHECK(long_dump->entries_left_out == 2);
  CHECK(long_dump->groups[0].newest->sequence == 9);

  CHECK(flight_facts_of_json(std::string(kFlightJsonBytes + 1, ' ')).error().reason == "it has more than 16 MiB");
  CHECK(flight_facts_of_json(std::string(20, '[')).error().reason == "it is nested deeper than 8 levels");
}

TEST_CASE("texts of a dump are shown without control characters, and cut") {
  const auto facts =
      facts_of({{.group = "a\x1b[2J" + std::string(1000, 'x'), .operation = std::string(300, 'y'), .collective = 1}});
  CHECK(facts.groups[0].name.starts_with("a\\x1b[2Jxxx"));
  CHECK(facts.groups[0].name.size() <= kFlightNameBytes + 3);
  CHECK(facts.groups[0].newest->name.size() <= kFlightTextBytes + 3);
}
