#include "health/hang/stack_words.h"

#include <doctest/doctest.h>

namespace elastic::hang {
namespace {

constexpr const char* kC10d = "/usr/lib/python3/torch/distributed/distributed_c10d.py";
constexpr const char* kLogger = "/usr/lib/python3/torch/distributed/c10d_logger.py";

}  // namespace

TEST_CASE("a rank in a collective of torch is in that, below what only passes the call on") {
  const StackMeaning meaning =
      meaning_of({{{"all_reduce", kC10d, 2806}, {"wrapper", kLogger, 81}, {"step", "train.py", 150}}});
  CHECK(meaning.doing == Doing::kCollective);
  CHECK(meaning.operation == "all_reduce");
  CHECK(meaning_of({{{"wrapper", kLogger, 81}, {"barrier", kC10d, 9}}}).operation == "barrier");
  CHECK(meaning_of({{{"recv", kC10d, 2806}}}).operation == "recv");
}

TEST_CASE("a collective that a script has by itself counts by its name") {
  CHECK(meaning_of({{{"all_reduce", "worker.py", 12}, {"main", "worker.py", 30}}}).doing == Doing::kCollective);
  CHECK(meaning_of({{{"recv", "worker.py", 12}}}).doing == Doing::kElse);
  CHECK(meaning_of({{{"reduce", "worker.py", 12}}}).doing == Doing::kElse);
}

TEST_CASE("what a collective of the script calls is what the rank does") {
  CHECK(meaning_of({{{"load_batch", "data.py", 88}, {"all_reduce", "worker.py", 12}}}).doing == Doing::kElse);
  CHECK(meaning_of({{{"acquire", "lock.py", 1}, {"barrier", "worker.py", 12}}}).doing == Doing::kElse);
}

TEST_CASE("a rank that waits in its backward pass, or for its GPU, waits") {
  const StackMeaning backward = meaning_of(
      {{{"_engine_run_backward", "torch/autograd/graph.py", 824}, {"backward", "torch/autograd/__init__.py", 3}}});
  CHECK(backward.doing == Doing::kCollective);
  CHECK(backward.operation == "backward");
  CHECK(meaning_of({{{"synchronize", "torch/cuda/streams.py", 105}}}).operation == "synchronize");
  CHECK(meaning_of({{{"synchronize", "mine.py", 105}}}).doing == Doing::kElse);
}

TEST_CASE("a rank that saves or loads files is at its storage, and a data loader is not") {
  CHECK(meaning_of({{{"save_checkpoint", "train.py", 88}}}).doing == Doing::kStorage);
  CHECK(meaning_of({{{"_save", "/x/torch/serialization.py", 1068}, {"save", "/x/torch/serialization.py", 5}}}).doing ==
        Doing::kStorage);
  CHECK(meaning_of({{{"write_data", "/x/torch/distributed/checkpoint/filesystem.py", 6}}}).doing == Doing::kStorage);
  CHECK(meaning_of({{{"load_batch", "data.py", 88}}}).doing == Doing::kElse);
  CHECK(meaning_of({{{"get", "multiprocessing/queues.py", 103}}}).doing == Doing::kElse);
  CHECK(meaning_of({{{"wait", "/usr/lib/python3.11/threading.py", 320}}}).doing == Doing::kElse);
}

TEST_CASE("without a frame nothing is known") {
  CHECK(meaning_of({}).doing == Doing::kUnknown);
  CHECK(innermost({}) == "");
  CHECK(innermost({{{"load_batch", "/home/u/data.py", 88}}}) == "load_batch data.py:88");
}

TEST_CASE("network file systems are known by the kernel's functions, and a local disk is none") {
  for (const char* wchan : {"nfs_wait_bit_killable", "rpc_wait_bit_killable", "request_wait_answer", "fuse_get_req",
                            "ll_file_io", "ptlrpc_set_wait", "ceph_mdsc_do_request"}) {
    CHECK(is_network_storage(wchan));
  }
  for (const char* wchan : {"", "io_schedule", "pipe_write", "kernel_clone", "futex_do_wait"})
    CHECK(!is_network_storage(wchan));
}

}  // namespace elastic::hang
