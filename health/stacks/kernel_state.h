#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What the kernel says of a process or a thread, from the texts of its files in /proc.
namespace elastic::stacks {

struct KernelState {
  std::string name;  // comm, printable
  char state = '?';  // as in ps
};
// From "stat". The state is '?' where the text is none.
KernelState kernel_state(std::string_view stat);

// The user (the effective one) of "status"; nothing where it does not say.
std::optional<std::uint32_t> user_of(std::string_view status);

// What a thread does, for people: "running", "sleeping in futex_do_wait (futex)", "stopped". `wchan` and `syscall` are
// those files' texts, empty where they could not be read.
std::string wait_text(char state, std::string_view wchan, std::string_view syscall);

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
