#include "health/report/health_json.h"

#include <utility>

#include "src/base/json.h"

namespace elastic::health {
namespace {

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json json_of(const std::vector<int>& ranks) {
  Json list = Json::array();
  for (const int rank : ranks) list.push(rank);
  return list;
}

Json json_of(const Finding& finding) {
  Json json = Json::object();
  json.set("severity", severity_name(finding.severity));
  json.set("what", finding.what);
  json.set("where", finding.where);
  json.set("remedy", finding.remedy);
  json.set("name", finding.name);
  return json;
}

Json json_of(const NearestPort& port) {
  Json json = Json::object();
  json.set("gpu", port.gpu);
  json.set("distance", port.distance);
  json.set("port", port.port);
  return json;
}

// A node's GPUs and their figures; null where they were not tested.
Json gpu_json(const NodeHealth& node, const NodeExchanges& gathers) {
  if (!node.gpu && !node.gpu_figures) return Json();
  const GpuVersions versions = node.gpu.value_or(GpuVersions{});
  const GpuFigures figures = node.gpu_figures.value_or(GpuFigures{});
  Json json = Json::object();
  json.set("gpus", versions.gpus);
  json.set("model", versions.model);
  json.set("driver", versions.driver);
  json.set("cuda", versions.cuda);
  json.set("nccl", versions.nccl);
  json.set("nccl_path", versions.nccl_path);
  json.set("cublaslt", versions.cublaslt);
  json.set("cublaslt_path", versions.cublaslt_path);
  json.set("product_ms", json_of(figures.product_ms));
  json.set("tflops", json_of(figures.tflops));
  json.set("memory_gbps", json_of(figures.memory_gbps));
  json.set("host_to_device_gbps", json_of(figures.host_to_device_gbps));
  json.set("device_to_host_gbps", json_of(figures.device_to_host_gbps));
  json.set("node_ms", json_of(figures.node_ms));
  json.set("best_busbw_gbps", json_of(gathers.best_busbw_gbps));
  json.set("worst_busbw_gbps", json_of(gathers.worst_busbw_gbps));
  json.set("latency_us", json_of(gathers.latency_us));
  Json ports = Json::array();
  for (const NearestPort& port : versions.nearest_ports) ports.push(json_of(port));
  json.set("nearest_ports", std::move(ports));
  return json;
}

Json json_of(const NodeHealth& node, const NodeExchanges& exchanges, const NodeExchanges& gathers) {
  Json json = Json::object();
  json.set("rank", node.rank);
  json.set("name", node.name);
  json.set("local_world_size", node.local_world_size);
  json.set("verdict", standing_name(standing_of(node)));
  json.set("why", node.verdict.why);
  json.set("slow_in_compute", node.verdict.is_slow_in_compute);
  json.set("slow_in_exchange", node.verdict.is_slow_in_exchange);
  json.set("left_out", node.left_out);
  json.set("compute_ms", json_of(node.compute_ms));
  json.set("memory_gbps", json_of(node.memory_gbps));
  json.set("exchange_ms", json_of(node.verdict.exchange_ms));
  json.set("best_busbw_gbps", json_of(exchanges.best_busbw_gbps));
  json.set("worst_busbw_gbps", json_of(exchanges.worst_busbw_gbps));
  json.set("latency_us", json_of(exchanges.latency_us));
  json.set("gpu", gpu_json(node, gathers));
  Json findings = Json::array();
  for (const Finding& finding : node.findings) findings.push(json_of(finding));
  json.set("findings", std::move(findings));
  return json;
}

Json json_of(const HealthReport& report, const PairHealth& pair) {
  Json json = Json::object();
  json.set("low", pair.low);
  json.set("high", pair.high);
  json.set("stage", pair.stage);
  json.set("passed", pair.passed);
  json.set("ms", pair.passed ? Json(pair.ms) : Json());
  json.set("busbw_gbps", json_of(busbw_gbps(report, pair, Way::kTcp)));
  json.set("latency_us", json_of(pair.latency_us));
  json.set("clock_ms", json_of(pair.clock_ms));
  json.set("gpu_ms", json_of(pair.gpu_ms));
  json.set("gpu_ranks", pair.gpu_ranks);
  json.set("gpu_bytes", pair.gpu_bytes);
  json.set("gpu_busbw_gbps", json_of(busbw_gbps(report, pair, Way::kNccl)));
  json.set("gpu_latency_us", json_of(pair.gpu_latency_us));
  json.set("gpu_why_not", pair.gpu_why_not);
  json.set("why_not", pair.why_not);
  return json;
}

Json json_of(const std::vector<PairTest>& links) {
  Json list = Json::array();
  for (const PairTest& link : links) {
    Json json = Json::object();
    json.set("low", link.low);
    json.set("high", link.high);
    json.set("ms", link.passed ? Json(link.time_ms) : Json());
    list.push(std::move(json));
  }
  return list;
}

Json json_of(const JudgeSettings& settings) {
  Json json = Json::object();
  json.set("slow_factor", settings.slow_factor);
  json.set("compute_floor_ms", settings.compute_floor_ms);
  json.set("exchange_floor_ms", settings.exchange_floor_ms);
  return json;
}

Json all_gather_json(const HealthReport& report) {
  if (!report.all_gather) return Json();
  const std::optional<AllGatherRate> rate = all_gather_rate(report);
  Json json = Json::object();
  json.set("world", report.all_gather->nodes);
  json.set("bytes", report.all_gather->bytes);
  json.set("ms", json_of(report.all_gather->ms));
  json.set("algobw_gbps", rate ? Json(rate->algobw_gbps) : Json());
  json.set("busbw_gbps", rate ? Json(rate->busbw_gbps) : Json());
  json.set("why_not", report.all_gather->why_not);
  return json;
}

}  // namespace

std::string health_json(const HealthReport& report) {
  Json out = Json::object();
  out.set("schema", kHealthJsonSchema);
  out.set("job", report.job);
  out.set("round", report.round);
  out.set("wall_ms", report.wall_ms);
  Json phases = Json::array();
  for (const double ms : report.phase_ms) phases.push(ms);
  out.set("phase_ms", std::move(phases));
  out.set("summary", sentence(report));
  out.set("fit", json_of(ranks_of(report, Standing::kFit)));
  out.set("slow", json_of(ranks_of(report, Standing::kSlow)));
  out.set("faulty", json_of(ranks_of(report, Standing::kFaulty)));
  out.set("undetermined", json_of(ranks_of(report, Standing::kUndetermined)));
  out.set("exchange_bytes", report.exchange_bytes > 0 ? Json(report.exchange_bytes) : Json());
  out.set("median_busbw_gbps", json_of(median_busbw_gbps(report, Way::kTcp)));
  out.set("median_gpu_busbw_gbps", json_of(median_busbw_gbps(report, Way::kNccl)));
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
