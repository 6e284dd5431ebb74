#include "health/messages/messages.h"

#include <utility>

#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// Bounds of a text that another node wrote. No message comes near them.
constexpr std::size_t kMostLevels = 4;
constexpr std::size_t kMostMembers = 16;

std::optional<Json> read(const std::string& text) {
  if (!json_over_bounds(text, kMostLevels, kMostMembers).empty()) return {};
  auto json = Json::parse(text, "the check");
  if (!json || json->as_object() == nullptr) return {};
  return std::move(*json);
}

std::optional<std::int64_t> integer_in(const Json& json, std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* member = json.find(name);
  const auto number = member == nullptr ? std::nullopt : member->as_integer();
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

// 0 where there is no such port.
std::uint16_t port_in(const Json& json, std::string_view name) {
  return static_cast<std::uint16_t>(integer_in(json, name, 0, UINT16_MAX).value_or(0));
}

std::optional<double> number_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member == nullptr ? std::nullopt : member->as_number();
}

// Nothing where it is negative.
std::optional<double> positive_in(const Json& json, std::string_view name) {
  const auto number = number_in(json, name);
  return number && *number >= 0 ? number : std::nullopt;
}

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

std::vector<std::string> texts_in(const Json& json, std::string_view name) {
  std::vector<std::string> texts;
  const Json* member = json.find(name);
  const Json::Array* list = member == nullptr ? nullptr : member->as_array();
  if (list == nullptr) return texts;
  for (const Json& element : *list) {
    if (element.as_string() != nullptr) texts.push_back(*element.as_string());
  }
  return texts;
}

void set_number(Json& json, std::string_view name, const std::optional<double>& value) {
  if (value) json.set(name, *value);
}

// Reads each element of "tests" by `one`; nothing where there is no such list, or an element names no node.
template <class Test, class ReadOne>
std::optional<std::vector<Test>> tests_in(const std::optional<Json>& json, ReadOne one) {
  const Json* member = json ? json->find("tests") : nullptr;
  const Json::Array* list = member == nullptr ? nullptr : member->as_array();
  if (list == nullptr) return {};
  std::vector<Test> tests;
  for (const Json& element : *list) {
    const auto with = integer_in(element, "with", 0, INT32_MAX);
    if (!with) return {};
    Test test = one(element);
    test.with = static_cast<int>(*with);
    tests.push_back(std::move(test));
  }
  return tests;
}

template <class Test, class Fill>
Json json_of(const std::vector<Test>& tests, Fill fill) {
  Json list = Json::array();
  for (const Test& test : tests) {
    Json json = Json::object();
    json.set("with", test.with);
    fill(json, test);
    list.push(std::move(json));
  }
  return list;
}

// A number of GPUs, of one node or of two together.
int gpus_in(const Json& json, std::string_view name) {
  return static_cast<int>(integer_in(json, name, 0, 2 * kMostGpus).value_or(0));
}

void fill(Json& json, const PairOrder& order) {
  json.set("name", order.name)
      .set("at", list_of(order.at))
      .set("port", int{order.port})
      .set("key", order.key)
      .set("after", order.after);
  if (order.gpus != 0) json.set("gpus", order.gpus);
  if (order.master_port == 0) return;
  json.set("master_port", int{order.master_port}).set("local_world_size", order.local_world_size);
}

PairOrder pair_order_in(const Json& json) {
  return PairOrder{.name = json.text_or_empty("name"),
                   .at = texts_in(json, "at"),
                   .port = port_in(json, "port"),
                   .key = json.text_or_empty("key"),
                   .after = static_cast<int>(integer_in(json, "after", 0, INT16_MAX).value_or(0)),
                   .master_port = port_in(json, "master_port"),
                   .local_world_size = static_cast<int>(integer_in(json, "local_world_size", 1, INT16_MAX).value_or(1)),
                   .gpus = gpus_in(json, "gpus")};
}

Json neighbour_json(const PairOrder& order) {
  Json json = Json::object();
  json.set("with", order.with);
  fill(json, order);
  return json;
}

std::optional<PairOrder> neighbour_in(const Json& ring, std::string_view name) {
  const Json* json = ring.find(name);
  const auto with = json == nullptr ? std::nullopt : integer_in(*json, "with", 0, INT32_MAX);
  if (!with) return {};
  PairOrder order = pair_order_in(*json);
  order.with = static_cast<int>(*with);
  return order;
}

// The member of this name if it is an object, else null.
const Json* object_in(const std::optional<Json>& json, std::string_view name) {
  const Json* member = json ? json->find(name) : nullptr;
  return member != nullptr && member->as_object() != nullptr ? member : nullptr;
}

Json json_of(const Finding& finding) {
  return std::move(Json::object()
                       .set("severity", severity_name(finding.severity))
                       .set("what", finding.what)
                       .set("where", finding.where)
                       .set("remedy", finding.remedy)
                       .set("name", finding.name));
}

std::optional<Finding> finding_in(const Json& json) {
  const auto severity = read_severity(json.text_or_empty("severity"));
  if (!severity) return {};
  return Finding{*severity, json.text_or_empty("what"), json.text_or_empty("where"), json.text_or_empty("remedy"),
                 json.text_or_empty("name")};
}

void set_findings(Json& json, const std::vector<Finding>& findings) {
  if (findings.empty()) return;
  Json list = Json::array();
  for (const Finding& finding : findings) list.push(json_of(finding));
  json.set("findings", std::move(list));
}

std::vector<Finding> findings_in(const Json& json) {
  std::vector<Finding> findings;
  const Json* member = json.find("findings");
  const Json::Array* list = member == nullptr ? nullptr : member->as_array();
  if (list == nullptr) return findings;
  for (const Json& element : *list) {
    if (auto finding = finding_in(element)) findings.push_back(std::move(*finding));
  }
  return findings;
}

Json json_of(const GpuVersions& gpu) {
  Json json = Json::object();
  json.set("gpus", gpu.gpus)
      .set("model", gpu.model)
      .set("driver", gpu.driver)
      .set("cuda", gpu.cuda)
      .set("nccl", gpu.nccl)
      .set("nccl_path", gpu.nccl_path)
      .set("cublaslt", gpu.cublaslt)
      .set("cublaslt_path", gpu.cublaslt_path);
  if (gpu.nearest_ports.empty()) return json;
  Json list = Json::array();
  for (const NearestPort& port : gpu.nearest_ports) {
    list.push(std::move(Json::object().set("gpu", port.gpu).set("distance", port.distance).set("port", port.port)));
  }
  json.set("nearest_ports", std::move(list));
  return json;
}

std::vector<NearestPort> nearest_ports_in(const Json& gpu) {
  std::vector<NearestPort> ports;
  const Json* member = gpu.find("nearest_ports");
  const Json::Array* list = member == nullptr ? nullptr : member->as_array();
  if (list == nullptr) return ports;
  for (const Json& element : *list) {
    if (ports.size() >= kMostGpus) break;
    ports.push_back({element.text_or_empty("gpu"), element.text_or_empty("distance"), element.text_or_empty("port")});
  }
  return ports;
}

Json json_of(const GpuFigures& figures) {
  Json json = Json::object();
  set_number(json, "product_ms", figures.product_ms);
  set_number(json, "tflops", figures.tflops);
  set_number(json, "memory_gbps", figures.memory_gbps);
  set_number(json, "host_to_device_gbps", figures.host_to_device_gbps);
  set_number(json, "device_to_host_gbps", figures.device_to_host_gbps);
  set_number(json, "node_ms", figures.node_ms);
  json.set("gathers", figures.gathers);
  return json;
}

std::optional<GpuFigures> gpu_figures_in(const Json& json) {
  const Json* gpu = json.find("gpu_figures");
  if (gpu == nullptr || gpu->as_object() == nullptr) return {};
  return GpuFigures{.product_ms = positive_in(*gpu, "product_ms"),
                    .tflops = positive_in(*gpu, "tflops"),
                    .memory_gbps = positive_in(*gpu, "memory_gbps"),
                    .host_to_device_gbps = positive_in(*gpu, "host_to_device_gbps"),
                    .device_to_host_gbps = positive_in(*gpu, "device_to_host_gbps"),
                    .node_ms = positive_in(*gpu, "node_ms"),
                    .gathers = gpus_in(*gpu, "gathers")};
}

std::optional<GpuVersions> gpu_in(const Json& json) {
  const Json* gpu = json.find("gpu");
  if (gpu == nullptr || gpu->as_object() == nullptr) return {};
  return GpuVersions{.gpus = static_cast<int>(integer_in(*gpu, "gpus", 0, INT16_MAX).value_or(0)),
                     .model = gpu->text_or_empty("model"),
                     .driver = gpu->text_or_empty("driver"),
                     .cuda = gpu->text_or_empty("cuda"),
                     .nccl = gpu->text_or_empty("nccl"),
                     .nccl_path = gpu->text_or_empty("nccl_path"),
                     .cublaslt = gpu->text_or_empty("cublaslt"),
                     .cublaslt_path = gpu->text_or_empty("cublaslt_path"),
                     .nearest_ports = nearest_ports_in(*gpu)};
}

std::optional<GpuFailure> gpu_failure_in(const Json& json) {
  const Json* failure = json.find("gpu_failure");
  if (failure == nullptr || failure->as_object() == nullptr) return {};
  const std::string step = failure->text_or_empty("step");
  for (const GpuStep known : {GpuStep::kOpen, GpuStep::kCompute, GpuStep::kGather}) {
    if (step == gpu_step_name(known)) return GpuFailure{.step = known, .why = failure->text_or_empty("why")};
  }
  return {};
}

std::optional<GatherFailure> gather_failure_in(const Json& json) {
  const std::string* why = json.find_text("gpu_failed");
  if (why == nullptr) return {};
  const Json* is_defect = json.find("gpu_defect");
  return GatherFailure{.why = *why, .is_defect = is_defect != nullptr && is_defect->as_bool().value_or(false)};
}

std::optional<SelfResult> self_result_in(const std::optional<Json>& json) {
  if (!json) return {};
  const auto port = integer_in(*json, "port", 0, UINT16_MAX);
  if (!port) return {};
  return SelfResult{.port = static_cast<std::uint16_t>(*port),
                    .key = json->text_or_empty("key"),
                    .compute_ms = positive_in(*json, "compute_ms"),
                    .memory_gbps = positive_in(*json, "memory_gbps"),
                    .findings = findings_in(*json),
                    .unfit = json->text_or_empty("unfit"),
                    .master_port = port_in(*json, "master_port"),
                    .gpu = gpu_in(*json),
                    .gpu_figures = gpu_figures_in(*json),
                    .gpu_failure = gpu_failure_in(*json)};
}

std::optional<PairOrders> pair_orders_in(const std::optional<Json>& json) {
  const auto rank = json ? integer_in(*json, "rank", 0, INT32_MAX) : std::nullopt;
  auto tests = tests_in<PairOrder>(json, pair_order_in);
  if (!rank || !tests) return {};
  return PairOrders{.rank = static_cast<int>(*rank), .tests = std::move(*tests)};
}

std::optional<PairResults> pair_results_in(const std::optional<Json>& json) {
  auto tests = tests_in<PairResult>(json, [](const Json& test) {
    return PairResult{.ms = positive_in(test, "ms"),
                      .latency_us = positive_in(test, "latency_us"),
                      .clock_ms = number_in(test, "clock_ms"),
                      .gpu_ms = positive_in(test, "gpu_ms"),
                      .gpu_ranks = gpus_in(test, "gpu_ranks"),
                      .gpu_bytes = integer_in(test, "gpu_bytes", 0, INT64_MAX / kMostGpus).value_or(0),
                      .gpu_latency_us = positive_in(test, "gpu_latency_us"),
                      .gpu_failure = gather_failure_in(test),
                      .why_not = test.text_or_empty("failed")};
  });
  if (!tests) return {};
  return PairResults{.tests = std::move(*tests), .findings = findings_in(*json)};
}

std::optional<RingOrder> ring_order_in(const std::optional<Json>& json) {
  const Json* ring = object_in(json, "ring");
  if (ring == nullptr) return {};
  const auto rank = integer_in(*json, "rank", 0, INT32_MAX);
  const auto members = integer_in(*ring, "members", 2, INT32_MAX);
  const auto place = integer_in(*ring, "place", 0, members.value_or(0) - 1);
  auto previous = neighbour_in(*ring, "previous");
  auto next = neighbour_in(*ring, "next");
  if (!rank || !members || !place || !previous || !next) return {};
  return RingOrder{.rank = static_cast<int>(*rank),
                   .place = static_cast<int>(*place),
                   .members = static_cast<int>(*members),
                   .previous = std::move(*previous),
                   .next = std::move(*next)};
}

std::optional<RingResult> ring_result_in(const std::optional<Json>& json) {
  const Json* result = object_in(json, "all_gather");
  if (result == nullptr) return {};
  const auto ms = number_in(*result, "ms");
  const Json* for_others = result->find("for_others");
  return RingResult{.ms = ms && *ms > 0 ? ms : std::nullopt,
                    .why_not = result->text_or_empty("failed"),
                    .for_others = for_others != nullptr && for_others->as_bool().value_or(false)};
}

}  // namespace

const char* gpu_step_name(GpuStep step) {
  switch (step) {
    case GpuStep::kOpen: return "open";
    case GpuStep::kCompute: return "compute";
    case GpuStep::kGather: return "gather";
  }
  return "open";
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kFatal: return "fatal";
  }
  return "note";
}

std::optional<Severity> read_severity(std::string_view text) {
  for (const Severity known : {Severity::kNote, Severity::kWarning, Severity::kFatal}) {
    if (text == severity_name(known)) return known;
  }
  return {};
}

std::string text_of(const SelfResult& result) {
  Json json = Json::object();
  json.set("port", int{result.port}).set("key", result.key);
  set_number(json, "compute_ms", result.compute_ms);
  set_number(json, "memory_gbps", result.memory_gbps);
  set_findings(json, result.findings);
  if (!result.unfit.empty()) json.set("unfit", result.unfit);
  if (result.master_port != 0) json.set("master_port", int{result.master_port});
  if (result.gpu) json.set("gpu", json_of(*result.gpu));
  if (result.gpu_figures) json.set("gpu_figures", json_of(*result.gpu_figures));
  if (const auto& failure = result.gpu_failure) {
    json.set("gpu_failure",
             std::move(Json::object().set("step", gpu_step_name(failure->step)).set("why", failure->why)));
  }
  return json.dump();
}

std::string text_of(const PairOrders& orders) {
  Json tests = json_of(orders.tests, [](Json& json, const PairOrder& order) { fill(json, order); });
  return Json::object().set("rank", orders.rank).set("tests", std::move(tests)).dump();
}

std::string text_of(const PairResults& results) {
  Json tests = json_of(results.tests, [](Json& json, const PairResult& result) {
    set_number(json, "ms", result.ms);
    set_number(json, "latency_us", result.latency_us);
    set_number(json, "clock_ms", result.clock_ms);
    set_number(json, "gpu_ms", result.gpu_ms);
    if (result.gpu_ms) json.set("gpu_ranks", result.gpu_ranks).set("gpu_bytes", result.gpu_bytes);
    set_number(json, "gpu_latency_us", result.gpu_latency_us);
    if (result.gpu_failure)
      json.set("gpu_failed", result.gpu_failure->why).set("gpu_defect", result.gpu_failure->is_defect);
    if (!result.ms) json.set("failed", result.why_not);
  });
  Json json = Json::object();
  json.set("tests", std::move(tests));
  set_findings(json, results.findings);
  return json.dump();
}

std::string text_of(const RingOrder& order) {
  Json ring = Json::object();
  ring.set("place", order.place)
      .set("members", order.members)
      .set("previous", neighbour_json(order.previous))
      .set("next", neighbour_json(order.next));
  return Json::object().set("rank", order.rank).set("ring", std::move(ring)).dump();
}

std::string text_of(const RingResult& result) {
  Json json = Json::object();
  set_number(json, "ms", result.ms);
  if (!result.ms) json.set("failed", result.why_not).set("for_others", result.for_others);
  return Json::object().set("all_gather", std::move(json)).dump();
}

std::optional<CheckOrder> read_check_order(const std::string& text) {
  const auto json = read(text);
  if (auto ring = ring_order_in(json)) return std::move(*ring);
  if (auto pairs = pair_orders_in(json)) return std::move(*pairs);
  return {};
}

std::optional<CheckResult> read_check_result(std::uint32_t phase, const std::string& text) {
  const auto json = read(text);
  if (phase == kSelfPhase) {
    if (auto self = self_result_in(json)) return std::move(*self);
    return {};
  }
  if (auto ring = phase == kRingPhase ? ring_result_in(json) : std::nullopt) return std::move(*ring);
  if (auto pairs = pair_results_in(json)) return std::move(*pairs);
  return {};
}

std::string text_of_failed(const CheckOrder& order, const std::string& why) {
  const auto* pairs = std::get_if<PairOrders>(&order);
  if (pairs == nullptr) return text_of(RingResult{.why_not = why});
  PairResults results;
  for (const PairOrder& test : pairs->tests) results.tests.push_back({.with = test.with, .why_not = why});
  return text_of(results);
}

}  // namespace elastic::health
