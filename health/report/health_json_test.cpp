#include "health/report/health_json.h"

#include <doctest/doctest.h>

#include "health/report/report_test_support.h"
#include "src/base/json.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

namespace {

std::string members_of(const Json* object) {
  REQUIRE(object != nullptr);
  REQUIRE(object->as_object() != nullptr);
  std::vector<std::string> names;
  for (const auto& [name, value] : *object->as_object()) names.push_back(name);
  return join(names, " ");
}

const Json* element(const Json& object, std::string_view name, std::size_t index) {
  const Json* list = object.find(name);
  REQUIRE(list != nullptr);
  REQUIRE(list->as_array() != nullptr);
  REQUIRE(list->as_array()->size() > index);
  return &(*list->as_array())[index];
}

Json parsed(const HealthReport& report) {
  auto json = Json::parse(health_json(report), "the report");
  REQUIRE(json);
  return std::move(*json);
}

}  // namespace

TEST_CASE("health.json is read back with every member of the schema") {
  HealthReport report = example_report();
  report.slow_links = {{.low = 6, .high = 7, .passed = true, .time_ms = 41.5}};
  report.all_gather = {.nodes = 8, .ms = 16};
  const Json json = parsed(report);
  CHECK(members_of(&json) ==
        "schema job round wall_ms phase_ms summary fit slow faulty undetermined exchange_bytes median_busbw_gbps "
        "median_gpu_busbw_gbps judged_by all_gather settings nodes pairs bad_links slow_links");
  CHECK(members_of(json.find("settings")) == "slow_factor compute_floor_ms exchange_floor_ms");
  CHECK(members_of(element(json, "nodes", 0)) ==
        "rank name local_world_size verdict why slow_in_compute slow_in_exchange left_out compute_ms memory_gbps "
        "exchange_ms best_busbw_gbps worst_busbw_gbps latency_us gpu findings");
  CHECK(members_of(element(*element(json, "nodes", 0), "findings", 0)) == "severity what where remedy name");
  CHECK(members_of(element(json, "pairs", 0)) ==
        "low high stage passed ms busbw_gbps latency_us clock_ms gpu_ms gpu_ranks gpu_bytes gpu_busbw_gbps "
        "gpu_latency_us gpu_why_not why_not");
  CHECK(members_of(element(json, "bad_links", 0)) == "low high ms");
  CHECK(members_of(element(json, "slow_links", 0)) == "low high ms");
  CHECK(members_of(json.find("all_gather")) == "world bytes ms algobw_gbps busbw_gbps why_not");
  CHECK(json.find("all_gather")->find("busbw_gbps")->as_number() == 2'097'152 * 7 / 16e6);
  CHECK(json.find("schema")->as_integer() == 1);
  CHECK(json.find("round")->as_integer() == 2);
  CHECK(*json.find("job")->as_string() == "llama-70b");
  CHECK(json.find("nodes")->as_array()->size() == 8);
  CHECK(json.find("pairs")->as_array()->size() == report.pairs.size());
  CHECK(element(json, "faulty", 0)->as_integer() == 3);
  CHECK(element(json, "slow", 0)->as_integer() == 5);
  CHECK(element(json, "slow_links", 0)->find("ms")->as_number() == 41.5);
}

TEST_CASE("the port that is nearest to each GPU stands in health.json") {
  HealthReport report = example_report();
  report.nodes[0].gpu = GpuVersions{.gpus = 1, .nearest_ports = {{"0000:1b:00.0", "PIX", "mlx5_0 port 1"}}};
  const Json json = parsed(report);
  const Json* port = element(*element(json, "nodes", 0)->find("gpu"), "nearest_ports", 0);
  CHECK(members_of(port) == "gpu distance port");
  CHECK(*port->find("distance")->as_string() == "PIX");
}

TEST_CASE("what nobody has measured is null in health.json, and never 0") {
  const Json json = parsed({.nodes = {{.rank = 0}, {.rank = 1}},
                            .pairs = {{.low = 0, .high = 1, .why_not = "no"}},
                            .bad_links = {{.low = 0, .high = 1}}});
  for (const char* name :
       {"compute_ms", "memory_gbps", "exchange_ms", "best_busbw_gbps", "worst_busbw_gbps", "latency_us"}) {
    CAPTURE(name);
    CHECK(element(json, "nodes", 1)->find(name)->is_null());
  }
  for (const char* name : {"ms", "busbw_gbps", "latency_us", "clock_ms"}) {
    CAPTURE(name);
    CHECK(element(json, "pairs", 0)->find(name)->is_null());
  }
  CHECK(element(json, "bad_links", 0)->find("ms")->is_null());
  CHECK(json.find("median_busbw_gbps")->is_null());
  CHECK(json.find("all_gather")->is_null());
  const Json failed = parsed({.all_gather = AllGather{.nodes = 2, .why_not = "node 1: no answer"}});
  for (const char* name : {"ms", "algobw_gbps", "busbw_gbps"}) {
    CAPTURE(name);
    CHECK(failed.find("all_gather")->find(name)->is_null());
  }
  CHECK(*failed.find("all_gather")->find("why_not")->as_string() == "node 1: no answer");
}

TEST_CASE("health.json is JSON whatever bytes a node's name has") {
  HealthReport report = example_report();
  report.job = report.nodes[0].name = report.nodes[0].verdict.why = "\"\\\n\x1b[2J\xff";
  const Json json = parsed(report);
  CHECK(*element(json, "nodes", 0)->find("name")->as_string() == "\"\\\n\x1b[2J\xef\xbf\xbd");
}

TEST_CASE("health.json has what GPUs did apart from what was done over TCP") {
  const Json json = parsed(example_gpu_report());
  CHECK(*json.find("judged_by")->as_string() == "nccl");
  CHECK(json.find("median_gpu_busbw_gbps")->as_number() == doctest::Approx(402.653184));
  const Json* gpu = element(json, "nodes", 0)->find("gpu");
  CHECK(gpu->find("best_busbw_gbps")->as_number() == doctest::Approx(402.653184));
  CHECK(gpu->find("latency_us")->as_number() == 20.5);
  CHECK(element(json, "nodes", 0)->find("latency_us")->as_number() == 39.0);
  CHECK(*parsed(example_report()).find("judged_by")->as_string() == "tcp");
}
