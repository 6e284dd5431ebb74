#include "health/report/health_json.h"

#include <utility>

#include "src/base/json.h"
#include "src/base/json_archive.h"

namespace elastic::health {
namespace {

template <class T>
Json list_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push(write_json(value, JsonForm::kForgiving));
  return list;
}

// A node's GPUs and their figures; null where they were not tested.
Json gpu_json(const NodeHealth& node, const NodeExchanges& gathers) {
  if (!node.gpu && !node.gpu_figures) return Json();
  const GpuVersions versions = node.gpu.value_or(GpuVersions{});
  const GpuFigures figures = node.gpu_figures.value_or(GpuFigures{});
  Json json = Json::object();
  JsonWriter out(json, JsonForm::kPlain);
  each(out, "gpus", versions.gpus, "model", versions.model, "driver", versions.driver, "cuda", versions.cuda);
  each(out, "nccl", versions.nccl, "nccl_path", versions.nccl_path, "cublaslt", versions.cublaslt);
  each(out, "cublaslt_path", versions.cublaslt_path, "product_ms", figures.product_ms, "tflops", figures.tflops);
  each(out, "memory_gbps", figures.memory_gbps, "host_to_device_gbps", figures.host_to_device_gbps);
  each(out, "device_to_host_gbps", figures.device_to_host_gbps, "node_ms", figures.node_ms);
  each(out, "best_busbw_gbps", gathers.best_busbw_gbps, "worst_busbw_gbps", gathers.worst_busbw_gbps);
  out("latency_us", gathers.latency_us);
  json.set("nearest_ports", list_of(versions.nearest_ports));
  return json;
}

Json json_of(const NodeHealth& node, const NodeExchanges& exchanges, const NodeExchanges& gathers) {
  Json json = Json::object();
  JsonWriter out(json, JsonForm::kPlain);
  each(out, "rank", node.rank, "name", node.name, "local_world_size", node.local_world_size);
  out("verdict", standing_name(standing_of(node)));
  each(out, "why", node.verdict.why, "slow_in_compute", node.verdict.is_slow_in_compute);
  each(out, "slow_in_exchange", node.verdict.is_slow_in_exchange, "left_out", node.left_out);
  each(out, "compute_ms", node.compute_ms, "memory_gbps", node.memory_gbps, "exchange_ms", node.verdict.exchange_ms);
  each(out, "best_busbw_gbps", exchanges.best_busbw_gbps, "worst_busbw_gbps", exchanges.worst_busbw_gbps);
  out("latency_us", exchanges.latency_us);
  json.set("gpu", gpu_json(node, gathers));
  json.set("findings", list_of(node.findings));
  return json;
}

Json json_of(const HealthReport& report, const PairHealth& pair) {
  Json json = Json::object();
  JsonWriter out(json, JsonForm::kPlain);
  each(out, "low", pair.low, "high", pair.high, "stage", pair.stage, "passed", pair.passed);
  json.set("ms", pair.passed ? Json(pair.ms) : Json());
  out("busbw_gbps", busbw_gbps(report, pair, Way::kTcp));
  each(out, "latency_us", pair.latency_us, "clock_ms", pair.clock_ms, "gpu_ms", pair.gpu_ms);
  each(out, "gpu_ranks", pair.gpu_ranks, "gpu_bytes", pair.gpu_bytes);
  out("gpu_busbw_gbps", busbw_gbps(report, pair, Way::kNccl));
  each(out, "gpu_latency_us", pair.gpu_latency_us, "gpu_why_not", pair.gpu_why_not, "why_not", pair.why_not);
  return json;
}

Json json_of(const std::vector<PairTest>& links) {
  Json list = Json::array();
  for (const PairTest& link : links) {
    Json json = Json::object();
    json.set("low", link.low).set("high", link.high).set("ms", link.passed ? Json(link.time_ms) : Json());
    list.push(std::move(json));
  }
  return list;
}

Json json_of(const JudgeSettings& settings) {
  Json json = Json::object();
  JsonWriter out(json, JsonForm::kPlain);
  each(out, "slow_factor", settings.slow_factor, "compute_floor_ms", settings.compute_floor_ms);
  out("exchange_floor_ms", settings.exchange_floor_ms);
  return json;
}

Json all_gather_json(const HealthReport& report) {
  if (!report.all_gather) return Json();
  const std::optional<AllGatherRate> rate = all_gather_rate(report);
  Json json = Json::object();
  JsonWriter out(json, JsonForm::kPlain);
  each(out, "world", report.all_gather->nodes, "bytes", report.all_gather->bytes, "ms", report.all_gather->ms);
  json.set("algobw_gbps", rate ? Json(rate->algobw_gbps) : Json());
  json.set("busbw_gbps", rate ? Json(rate->busbw_gbps) : Json());
  out("why_not", report.all_gather->why_not);
  return json;
}

}  // namespace

std::string health_json(const HealthReport& report) {
  Json out = Json::object();
  JsonWriter writer(out, JsonForm::kPlain);
  out.set("schema", kHealthJsonSchema);
  each(writer, "job", report.job, "round", report.round, "wall_ms", report.wall_ms, "phase_ms", report.phase_ms);
  out.set("summary", sentence(report));
  writer("fit", ranks_of(report, Standing::kFit));
  writer("slow", ranks_of(report, Standing::kSlow));
  writer("faulty", ranks_of(report, Standing::kFaulty));
  writer("undetermined", ranks_of(report, Standing::kUndetermined));
  out.set("exchange_bytes", report.exchange_bytes > 0 ? Json(report.exchange_bytes) : Json());
  writer("median_busbw_gbps", median_busbw_gbps(report, Way::kTcp));
  writer("median_gpu_busbw_gbps", median_busbw_gbps(report, Way::kNccl));
  out.set("judged_by", report.by_nccl ? "nccl" : "tcp");
  out.set("all_gather", all_gather_json(report));
  out.set("settings", json_of(report.settings));
  const std::vector<NodeExchanges> exchanges = exchanges_of_nodes(report, Way::kTcp);
  const std::vector<NodeExchanges> gathers = exchanges_of_nodes(report, Way::kNccl);
  Json nodes = Json::array();
  for (std::size_t i = 0; i < report.nodes.size(); ++i) nodes.push(json_of(report.nodes[i], exchanges[i], gathers[i]));
  out.set("nodes", std::move(nodes));
  Json pairs = Json::array();
  for (const PairHealth& pair : report.pairs) pairs.push(json_of(report, pair));
  out.set("pairs", std::move(pairs));
  out.set("bad_links", json_of(report.bad_links));
  out.set("slow_links", json_of(report.slow_links));
  return out.dump(2) + "\n";
}

}  // namespace elastic::health
