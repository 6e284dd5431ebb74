#include "src/status/status_json.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/json.h"
#include "src/status/test_snapshot.h"

using namespace elastic;
using namespace elastic::status;

namespace {

Json parsed(const Snapshot& snapshot) {
  auto json = Json::parse(status_json(snapshot), "status");
  REQUIRE(json.has_value());
  return *json;
}

const Json& at(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* here = &json;
  for (const std::string_view name : path) {
    here = here->find(name);
    REQUIRE(here != nullptr);
  }
  return *here;
}

}  // namespace

TEST_CASE("the document says its format, and every value of the snapshot") {
  const Json json = parsed(testing::full_snapshot());
  CHECK(at(json, {"format"}).as_integer() == kStatusFormat);
  CHECK(at(json, {"uptime_seconds"}).as_number() == 100.0);
  const Json& job = (*at(json, {"coordinator", "jobs"}).as_array())[0];
  CHECK(*at(job, {"phase"}).as_string() == "running");
  CHECK(at(job, {"phase_seconds", "running"}).as_number() == 90.5);
  CHECK(at(job, {"restarts", "worker_failure"}).as_integer() == 2);
  CHECK(at(job, {"lost_work_seconds", "node_lost"}).as_number() == doctest::Approx(12.345));
  CHECK(at(job, {"nodes", "standby"}).as_integer() == 1);
  CHECK(at(job, {"check", "slow"}).as_integer() == 1);
  const Json& failure = (*at(job, {"failures"}).as_array())[1];
  CHECK(at(failure, {"rank"}).as_integer() == 5);
  CHECK(*at(failure, {"cause"}).as_string() == "worker_failure");
  CHECK(at(failure, {"age_seconds"}).as_number() == 60.0);
  CHECK(at((*at(job, {"members"}).as_array())[3], {"node_rank"}).is_null());
  CHECK(*at((*at(job, {"members"}).as_array())[1], {"door"}).as_string() == "10.0.0.1:40123");
  CHECK(*at((*at(job, {"members"}).as_array())[3], {"door"}).as_string() == "");
  CHECK(at(job, {"progress", "step"}).as_integer() == 118);
  CHECK(at(job, {"progress", "steps_per_second"}).as_number() == 2.345);
  CHECK(at(job, {"progress_oldest", "step"}).is_null());
  CHECK(*at(job, {"progress_oldest", "phase"}).as_string() == "eval");
  CHECK(*at(job, {"hang", "state"}).as_string() == "judged");
  CHECK(at(job, {"hang", "silent_seconds"}).as_number() == 250.0);
  CHECK(at(job, {"hang", "limit_seconds"}).as_number() == 60.0);
  CHECK(at(job, {"hang", "last", "ranks"}).dump() == "[5]");
  CHECK(at(job, {"hang", "last", "nodes"}).dump() == "[\"node3\"]");
  CHECK(at(job, {"hang", "last", "over"}).as_bool() == false);
  CHECK(at((*at(json, {"node", "workers"}).as_array())[0], {"progress", "age_seconds"}).as_number() == 4.0);
  CHECK(at((*at(json, {"node", "workers"}).as_array())[1], {"progress"}).is_null());
  CHECK(*at(json, {"node", "coordinator_at"}).as_string() == "");
  CHECK(at(json, {"node", "ready"}).as_bool() == true);
  CHECK(at(json, {"node", "store", "operations", "get"}).as_integer() == 12);
  CHECK(at((*at(json, {"node", "workers"}).as_array())[1], {"pid"}).as_integer() == 4712);
  CHECK(*at(json, {"node", "start"}).as_string() == "warm");
  CHECK(*at(json, {"node", "warm_workers", "state"}).as_string() == "preparing");
  CHECK(*at(json, {"node", "warm_workers", "why"}).as_string() == "1 of 2 workers wait");
  CHECK(at(json, {"node", "warm_workers", "waiting"}).as_integer() == 1);
  CHECK(at(json, {"node", "workers_started_warm"}).as_integer() == 4);
  CHECK(at(json, {"node", "spared_cpu_seconds"}).as_number() == 9.0);
  CHECK(*at((*at(json, {"coordinator", "last_ended"}).as_array())[0], {"outcome"}).as_string() == "failed");
}

TEST_CASE("what a process does not know is null") {
  const Json json = parsed({});
  CHECK(at(json, {"node"}).is_null());
  CHECK(at(json, {"coordinator"}).is_null());
}

TEST_CASE("names of any bytes make a document all the same") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].id = "\xff\"\n";
  CHECK(*at((*at(parsed(snapshot), {"coordinator", "jobs"}).as_array())[0], {"run_id"}).as_string() ==
        "\xEF\xBF\xBD\"\n");
}
