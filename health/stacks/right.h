#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elastic::stacks {

// What decides whether the memory of a process may be read (ptrace(2), "Ptrace access mode checking").
struct RightFacts {
  std::uint32_t our_user = 0;
  std::optional<std::uint32_t> its_user = {};    // the effective one
  std::optional<std::uint32_t> files_user = {};  // who owns its files in /proc
  int yama_scope = 0;                            // kernel.yama.ptrace_scope; 0 where there is no Yama
};

// Why it may not be read, as a clause with the remedy.
std::string no_right_because(const RightFacts& facts);

}  // namespace elastic::stacks
