#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

// Which mistake of tests/mistakes.py is on in elastic-run-planted. No other program has any.
namespace elastic::planted {

// The name of the directory in which the program lies. A test starts elastic-run with an environment of its own and
// under its own name, and every process of the job has this one program.
inline const std::string active = [] {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().filename().string();
}();

inline bool is(std::string_view which) { return active == which; }

}  // namespace elastic::planted
