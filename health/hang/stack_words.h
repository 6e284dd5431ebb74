#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "health/hang/hang_facts.h"

// What the innermost frames of a Python stack say about what a rank waits for. A builtin has no frame, so that fsync or
// a lock shows as the function that has called it.
namespace elastic::hang {

enum class Doing : std::uint8_t {
  kUnknown,     // there is no stack
  kCollective,  // it is inside a collective, or waits for one
  kStorage,     // it saves, loads, opens or writes files
  kElse,
};

struct StackMeaning {
  Doing doing = Doing::kUnknown;
  // The collective's name as torch has it ("all_reduce"), "backward" where it waits inside of that, "synchronize" where
  // it waits for its GPU; of storage the function.
  std::string operation = {};
};

// By the first frame, from the innermost one, that is not of a library which only wraps others.
StackMeaning meaning_of(const Stack& stack);

// Whether a kernel function is one in which a process waits for a network file system: NFS, FUSE, Lustre, Ceph, GPFS.
bool is_network_storage(std::string_view wchan);

// "load_batch data.py:88"; empty where there is no frame.
std::string innermost(const Stack& stack);
// The same of the innermost frame that is the script's own, of no library; empty where there is none.
std::string own_place(const Stack& stack);

}  // namespace elastic::hang
