#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace elastic::process::testing {

// A directory in the place of "/" with what a test writes, which goes with it.
struct FakeRoot {
  FakeRoot() {
    char name[] = "/tmp/elastic-run-devices-XXXXXX";
    path = mkdtemp(name);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  ~FakeRoot() { std::filesystem::remove_all(path); }
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  std::filesystem::path path;
};

}  // namespace elastic::process::testing
