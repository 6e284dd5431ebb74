#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace elastic::testing {

// A directory in the place of "/" with what a test writes, which goes with it.
struct FakeRoot {
  FakeRoot() {
    char name[] = "/tmp/elastic-run-root-XXXXXX";
    path = mkdtemp(name);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  ~FakeRoot() { std::filesystem::remove_all(path); }
  // "sys/class" and "/sys/class" are the same place.
  std::filesystem::path at(const std::string& name) const { return path / std::filesystem::path(name).relative_path(); }
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << text;
  }
  void link(const std::string& name, const std::string& to) const {
    std::filesystem::create_directories(at(name).parent_path());
    std::filesystem::create_symlink(to, at(name));
  }
  std::filesystem::path path;
};

}  // namespace elastic::testing
