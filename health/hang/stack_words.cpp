#include "health/hang/stack_words.h"

#include <algorithm>
#include <array>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

// Functions that wait for other ranks, whatever file they are in.
constexpr auto kCollectives = std::to_array<std::string_view>({"all_gather",
                                                               "all_gather_into_tensor",
                                                               "all_gather_object",
                                                               "all_reduce",
                                                               "all_reduce_coalesced",
                                                               "all_to_all",
                                                               "all_to_all_single",
                                                               "barrier",
                                                               "batch_isend_irecv",
                                                               "broadcast",
                                                               "broadcast_object_list",
                                                               "gather_object",
                                                               "init_process_group",
                                                               "monitored_barrier",
                                                               "new_group",
                                                               "reduce_scatter",
                                                               "reduce_scatter_tensor",
                                                               "scatter_object_list",
                                                               "_store_based_barrier",
                                                               "_all_gather_base",
                                                               "_reduce_scatter_base"});
// Others do so in torch's own files only: elsewhere their names are everybody's.
constexpr auto kTorchCollectives = std::to_array<std::string_view>(
    {"gather", "irecv", "isend", "recv", "recv_object_list", "reduce", "scatter", "send", "send_object_list", "wait"});
constexpr std::string_view kDistributed = "torch/distributed/";
// DistributedDataParallel reduces gradients in here.
constexpr std::string_view kBackward = "_engine_run_backward";

// Files whose frames only pass a call on to those below.
constexpr auto kWrappers = std::to_array<std::string_view>(
    {"torch/distributed/c10d_logger.py", "torch/distributed/distributed_c10d.py", "torch/_tensor.py",
     "torch/autograd/__init__.py", "torch/utils/_contextlib.py", "contextlib.py", "functools.py"});

constexpr auto kStorageFunctions = std::to_array<std::string_view>(
    {"fdatasync", "fsync", "load", "load_checkpoint", "load_file", "load_model", "load_state_dict", "open", "save",
     "save_checkpoint", "save_file", "save_model", "save_pretrained", "torch_save", "write_checkpoint"});
constexpr auto kStorageFiles = std::to_array<std::string_view>(
    {"torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/", "shutil.py"});

constexpr auto kNetworkStorage = std::to_array<std::string_view>(
    {"nfs", "rpc_wait", "__rpc_", "fuse", "request_wait_answer", "ll_", "cl_", "osc_", "ptlrpc", "ldlm", "ceph", "gpfs",
     "cifs", "wait_for_response", "v9fs", "p9_client"});

template <class Words>
bool has_word(const Words& words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

template <class Words>
bool is_in_file(const Words& files, std::string_view file) {
  return std::ranges::any_of(files, [&](std::string_view part) {
    const std::size_t at = file.rfind(part);
    return at != std::string_view::npos && (at == 0 || file[at - 1] == '/');
  });
}

std::string_view base_name(std::string_view file) { return file.substr(file.rfind('/') + 1); }

}  // namespace

StackMeaning meaning_of(const Stack& stack) {
  if (stack.frames.empty()) return {};
  for (const Frame& frame : stack.frames) {
    const bool is_distributed = frame.file.find(kDistributed) != std::string::npos;
    if (is_in_file(kStorageFiles, frame.file) || has_word(kStorageFunctions, frame.function)) {
      return {Doing::kStorage, frame.function};
    }
    if (has_word(kCollectives, frame.function) || (is_distributed && has_word(kTorchCollectives, frame.function))) {
      return {Doing::kCollective, frame.function};
    }
    if (frame.function == kBackward) return {Doing::kCollective, "backward"};
    if (frame.function == "synchronize" && frame.file.find("torch/cuda/") != std::string::npos) {
      return {Doing::kCollective, "synchronize"};
    }
    if (!is_in_file(kWrappers, frame.file)) break;
  }
  return {Doing::kElse, {}};
}

bool is_network_storage(std::string_view wchan) {
  return std::ranges::any_of(kNetworkStorage, [&](std::string_view word) { return wchan.starts_with(word); });
}

namespace {

std::string place_of(const Frame& frame) {
  return format("{} {}:{}", frame.function, base_name(frame.file), frame.line);
}

// Of a package that is installed, of Python's own library, or of its core.
bool is_of_library(std::string_view file) {
  constexpr auto kParts =
      std::to_array<std::string_view>({"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"});
  return file.starts_with("<") ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return file.find(part) != std::string_view::npos; });
}

}  // namespace

std::string innermost(const Stack& stack) { return stack.frames.empty() ? "" : place_of(stack.frames.front()); }

std::string own_place(const Stack& stack) {
  const auto own = std::ranges::find_if(stack.frames, [](const Frame& frame) { return !is_of_library(frame.file); });
  return own == stack.frames.end() ? "" : place_of(*own);
}

}  // namespace elastic::hang
