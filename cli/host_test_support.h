#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/launch_plan.h"

namespace elastic::cli {

// A host of a test's own making.
struct FakeHost : HostView {
  std::map<std::string, PathFacts> files;
  std::map<std::string, std::string> contents;
  std::map<std::string, std::string> links;
  std::vector<std::string> own = {"/usr/local/bin/elastic-run"};
  int cpus = 6;
  int gpus = 0;
  OtherDevices others;
  numa::Topology topology;

  void file(const std::string& path) { files[path] = {true, false, true, false}; }
  void program(const std::string& path) { files[path] = {true, false, true, true}; }
  void directory(const std::string& path) { files[path] = {true, true, true, true, true}; }

  PathFacts look_at(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? PathFacts{} : found->second;
  }
  std::string resolved(const std::string& path) const override {
    const auto link = links.find(path);
    return link == links.end() ? path : link->second;
  }
  std::vector<std::string> own_paths() const override { return own; }
  int usable_cpus() const override { return cpus; }
  int visible_gpus(const std::optional<std::string>& visible) const override { return visible == "" ? 0 : gpus; }
  OtherDevices other_devices(const Environment&) const override { return others; }
  numa::Topology numa_topology(numa::Mode, const std::optional<std::string>&,
                               const std::optional<std::string>&) const override {
    return topology;
  }
  Result<std::string> read_file(const std::string& path, std::size_t) const override {
    const auto found = contents.find(path);
    if (found == contents.end()) return fail(path, "no such file");
    return found->second;
  }
  std::string random_uuid() const override { return "uuid"; }
};

}  // namespace elastic::cli
