#include "health/gpu/gpu_versions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "health/gpu/gpu_thresholds.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

struct Compared {
  GpuRule rule;
  std::string_view what;
  std::string GpuVersions::*value;
  std::string GpuVersions::*path = nullptr;  // the library's file
};

constexpr Compared kCompared[] = {
    {GpuRule::kNodesModel, "GPU", &GpuVersions::model},
    {GpuRule::kNodesDriver, "NVIDIA driver", &GpuVersions::driver},
    {GpuRule::kNodesCuda, "driver's CUDA", &GpuVersions::cuda},
    {GpuRule::kNodesNccl, "NCCL", &GpuVersions::nccl, &GpuVersions::nccl_path},
    {GpuRule::kNodesCublaslt, "cuBLASLt", &GpuVersions::cublaslt, &GpuVersions::cublaslt_path},
};

using Groups = std::map<std::string, std::vector<int>>;  // from a value to the nodes that have it

// The value that the most nodes have; nothing where two values are equally common.
std::optional<std::string> most_common(const Groups& groups) {
  std::size_t most = 0;
  for (const auto& [value, nodes] : groups) most = std::max(most, nodes.size());
  std::optional<std::string> common;
  for (const auto& [value, nodes] : groups) {
    if (nodes.size() != most) continue;
    if (common) return {};
    common = value;
  }
  return common;
}

std::string text_of_group(const std::string& value, const std::vector<int>& nodes) {
  constexpr std::size_t kNamed = 3;
  if (nodes.size() == 1) return format("node {} has {}", nodes.front(), printable(value));
  const std::string who = nodes.size() <= kNamed ? "nodes " + rank_ranges(nodes) : format("{} nodes", nodes.size());
  return format("{} have {}", who, printable(value));
}

// For each value, what other nodes have: "7 of 8 nodes have 2.28.9".
std::map<std::string, std::string> texts_of_others(const Groups& groups, const std::optional<std::string>& common) {
  std::size_t all = 0;
  for (const auto& [value, nodes] : groups) all += nodes.size();
  std::map<std::string, std::string> texts;
  for (const auto& [own, unused] : groups) {
    if (common) {
      texts[own] = format("{} of {} nodes have {}", groups.at(*common).size(), all, printable(*common));
      continue;
    }
    const auto& [value, nodes] = own == groups.begin()->first ? *std::next(groups.begin()) : *groups.begin();
    texts[own] = text_of_group(value, nodes) + (groups.size() == 2 ? "" : ", and others have something else") +
                 "; which one is right is not known";
  }
  return texts;
}

void compare(const std::vector<NodeGpus>& nodes, const Compared& compared, std::vector<NodeFinding>& findings) {
  Groups groups;
  for (const NodeGpus& node : nodes) {
    const std::string& value = node.versions.*compared.value;
    if (!value.empty()) groups[value].push_back(node.node);
  }
  if (groups.size() < 2) return;
  const auto common = most_common(groups);
  const auto others = texts_of_others(groups, common);
  for (const NodeGpus& node : nodes) {
    const std::string& value = node.versions.*compared.value;
    if (value.empty() || value == common) continue;
    const std::string where = compared.path == nullptr ? "" : printable(node.versions.*compared.path);
    findings.push_back(
        {node.node,
         finding_of(threshold(compared.rule),
                    format("its {} is {}, while {}", compared.what, printable(value), others.at(value)), where)});
  }
}

}  // namespace

GpuVersions versions_of(const std::vector<GpuOpened>& probes) {
  GpuVersions versions{.gpus = static_cast<int>(probes.size())};
  const auto fill = [](std::string& into, const std::string& value) {
    if (into.empty()) into = value;
  };
  for (const GpuOpened& probe : probes) {
    fill(versions.model, probe.name);
    fill(versions.driver, probe.driver_version);
    fill(versions.cuda, cuda_version_text(probe.cuda_version));
    if (probe.nccl && versions.nccl.empty()) {
      versions.nccl = nccl_version_text(probe.nccl->version);
      versions.nccl_path = probe.nccl->path;
    }
    if (probe.cublaslt && versions.cublaslt.empty()) {
      versions.cublaslt = cublaslt_version_text(probe.cublaslt->version);
      versions.cublaslt_path = probe.cublaslt->path;
    }
  }
  return versions;
}

std::vector<NodeFinding> version_findings(const std::vector<NodeGpus>& nodes) {
  std::vector<NodeFinding> findings;
  for (const Compared& compared : kCompared) compare(nodes, compared, findings);
  std::ranges::stable_sort(findings, {}, &NodeFinding::node);
  return findings;
}

}  // namespace elastic::health
