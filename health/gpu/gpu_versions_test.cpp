#include "health/gpu/gpu_versions.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "health/gpu/gpu_thresholds.h"

using namespace elastic::health;

namespace {

std::vector<NodeGpus> nodes_with(std::string GpuVersions::*member, const std::vector<std::string>& values) {
  std::vector<NodeGpus> nodes;
  for (const std::string& value : values) {
    NodeGpus node{.node = static_cast<int>(nodes.size()), .versions = {.gpus = 8, .nccl_path = "/p/libnccl.so.2"}};
    node.versions.*member = value;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

TEST_CASE("what a node has is what the first of its probes knows") {
  const GpuVersions versions = versions_of({GpuOpened{.nccl_why = "none"},
                                            GpuOpened{.name = "NVIDIA H100",
                                                      .driver_version = "580.65.06",
                                                      .cuda_version = 13000,
                                                      .nccl = GpuLibrary{"/p/libnccl.so.2", 22809},
                                                      .cublaslt = GpuLibrary{"/p/libcublasLt.so.13", 130100}},
                                            GpuOpened{.name = "other", .nccl = GpuLibrary{"/q/libnccl.so.2", 1}}});
  CHECK(versions == GpuVersions{.gpus = 3,
                                .model = "NVIDIA H100",
                                .driver = "580.65.06",
                                .cuda = "13.0",
                                .nccl = "2.28.9",
                                .nccl_path = "/p/libnccl.so.2",
                                .cublaslt = "13.1.0",
                                .cublaslt_path = "/p/libcublasLt.so.13"});
  CHECK(versions_of({}) == GpuVersions{});
}

TEST_CASE("a node that differs from most is told, and by what") {
  const auto nccl = version_findings(nodes_with(&GpuVersions::nccl, {"2.28.9", "2.27.3", "2.28.9", ""}));
  REQUIRE(nccl.size() == 1);
  CHECK(nccl[0].node == 1);
  CHECK(nccl[0].finding == Finding{Severity::kWarning, "its NCCL is 2.27.3, while 2 of 3 nodes have 2.28.9",
                                   "/p/libnccl.so.2", std::string(threshold(GpuRule::kNodesNccl).remedy),
                                   "nodes-nccl"});
  const std::pair<std::string GpuVersions::*, const char*> others[] = {
      {&GpuVersions::model, "its GPU is b, while 2 of 3 nodes have a"},
      {&GpuVersions::driver, "its NVIDIA driver is b, while 2 of 3 nodes have a"},
      {&GpuVersions::cuda, "its driver's CUDA is b, while 2 of 3 nodes have a"},
      {&GpuVersions::cublaslt, "its cuBLASLt is b, while 2 of 3 nodes have a"}};
  for (const auto& [member, what] : others) {
    const auto findings = version_findings(nodes_with(member, {"a", "a", "b"}));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].finding.what == what);
  }
}

TEST_CASE("nodes that have all the same, or of which nothing is known, are not told") {
  CHECK(version_findings({}).empty());
  CHECK(version_findings(nodes_with(&GpuVersions::driver, {"a", "a", "a"})).empty());
  CHECK(version_findings(nodes_with(&GpuVersions::driver, {"", "a", ""})).empty());
  CHECK(version_findings(nodes_with(&GpuVersions::nccl_path, {"a", "b", "c"})).empty());
  CHECK(version_findings(nodes_with(&GpuVersions::cublaslt_path, {"a", "b", "c"})).empty());
}

TEST_CASE("where no version has the most nodes all are told, by rank") {
  const auto two = version_findings(nodes_with(&GpuVersions::driver, {"a", "b"}));
  REQUIRE(two.size() == 2);
  CHECK(two[0].finding.what == "its NVIDIA driver is a, while node 1 has b; which one is right is not known");
  CHECK(two[1].finding.what == "its NVIDIA driver is b, while node 0 has a; which one is right is not known");
  const auto five = version_findings(nodes_with(&GpuVersions::driver, {"c", "b", "b", "a", "a"}));
  REQUIRE(five.size() == 5);
  CHECK(five[0].finding.what ==
        "its NVIDIA driver is c, while nodes 3-4 have a, and others have something else; which one is right is not "
        "known");
  auto nodes = nodes_with(&GpuVersions::driver, {"a", "a", "b", "b"});
  for (NodeGpus& node : nodes) node.versions.nccl = node.versions.driver;
  const auto both = version_findings(nodes);
  REQUIRE(both.size() == 8);
  CHECK(std::ranges::is_sorted(both, {}, &NodeFinding::node));
}
