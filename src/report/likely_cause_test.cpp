#include "src/report/likely_cause.h"

#include <doctest/doctest.h>

#include <csignal>
#include <set>

#include "src/report/cause_rules.h"

using namespace elastic;
using namespace elastic::report;

namespace {

FailedWorker died(std::string_view stderr_text, ExitStatus exit = {.code = 1}) {
  return {.exit = exit, .tail = {.bytes = std::string(stderr_text)}};
}

// Rules that a test of this file has seen applied; the last test compares them with the table.
std::set<std::string_view> seen;

void check_cause(const FailedWorker& worker, std::string_view rule, std::string_view evidence,
                 std::string_view source = "stderr") {
  const auto cause = likely_cause(worker);
  REQUIRE(cause);
  CHECK(cause->rule == rule);
  CHECK(cause->evidence == evidence);
  CHECK(cause->source == source);
  CHECK_FALSE(cause->sentence.empty());
  seen.insert(cause->rule);
}

std::string raised(std::string_view exception) {
  return "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    "
         "main()\n" +
         std::string(exception) + "\n";
}

}  // namespace

TEST_CASE("cause: a library that needs a newer libc") {
  check_cause(died(raised("ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found "
                          "(required by /opt/flash_attn.so)")),
              "glibc-not-found",
              "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by "
              "/opt/flash_attn.so)");
}

TEST_CASE("cause: driver and CUDA do not fit together") {
  check_cause(died(raised("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).")),
              "cuda-driver-mismatch",
              "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).");
  check_cause(died("Failed to initialize NVML: Driver/library version mismatch\n"), "cuda-driver-mismatch",
              "Failed to initialize NVML: Driver/library version mismatch");
}

TEST_CASE("cause: no code for this kind of GPU") {
  check_cause(died(raised("RuntimeError: CUDA error: no kernel image is available for execution on the device")),
              "cuda-architecture",
              "RuntimeError: CUDA error: no kernel image is available for execution on the device");
}

TEST_CASE("cause: an ECC error that CUDA reports, also where another exception hides it") {
  check_cause(died("terminate: CUDA error: uncorrectable ECC error encountered\n" + raised("RuntimeError: broken")),
              "gpu-ecc", "terminate: CUDA error: uncorrectable ECC error encountered");
}

TEST_CASE("cause: CUDA out of memory, in the words of old and new torch and of NCCL") {
  constexpr std::string_view kNew =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
      "capacity of 79.10 GiB of which 9.69 GiB is free.";
  check_cause(died(raised(kNew)), "cuda-out-of-memory", kNew);
  check_cause(died(raised("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB")),
              "cuda-out-of-memory", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB");
  check_cause(died(raised("RuntimeError: CUDA error: out of memory")), "cuda-out-of-memory",
              "RuntimeError: CUDA error: out of memory");
  check_cause(died("node1:10:11 [0] NCCL WARN Cuda failure 2 'out of memory'\n"
                   "ncclUnhandledCudaError: Call to CUDA function failed.\n"),
              "cuda-out-of-memory", "node1:10:11 [0] NCCL WARN Cuda failure 2 'out of memory'");
}

TEST_CASE("cause: shared memory was full, said before the exception that follows from it") {
  check_cause(died("ERROR: Unexpected bus error encountered in worker. This might be caused by "
                   "insufficient shared "
                   "memory (shm).\n" +
                   raised("RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly")),
              "shared-memory",
              "ERROR: Unexpected bus error encountered in worker. This might be caused by "
              "insufficient shared memory (shm).");
  check_cause(died(raised("RuntimeError: unable to write to file </torch_99_1>: No space left on device (28)")),
              "shared-memory", "RuntimeError: unable to write to file </torch_99_1>: No space left on device (28)");
  check_cause(died(raised("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. ")), "shared-memory",
              "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.");
}

TEST_CASE("cause: no space left") {
  check_cause(died(raised("OSError: [Errno 28] No space left on device: '/ckpt/step_100.pt'")), "no-space",
              "OSError: [Errno 28] No space left on device: '/ckpt/step_100.pt'");
  check_cause(died(raised("OSError: [Errno 122] Disk quota exceeded")), "no-space",
              "OSError: [Errno 122] Disk quota exceeded");
}

TEST_CASE("cause: a DataLoader's process was killed") {
  check_cause(died(raised("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ")),
              "dataloader-worker-killed", "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.");
}

TEST_CASE(
    "cause: a device-side assert, with the assertion of the kernel rather than the error that "
    "follows") {
  constexpr std::string_view kAssertion =
      "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce: block: [0,0,0], "
      "thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.";
  check_cause(
      died(std::string(kAssertion) + "\n" + raised("torch.AcceleratorError: CUDA error: device-side assert triggered")),
      "cuda-device-assert", kAssertion);
  check_cause(died(raised("RuntimeError: CUDA error: device-side assert triggered")), "cuda-device-assert",
              "RuntimeError: CUDA error: device-side assert triggered");
  check_cause(died(raised("RuntimeError: NCCL watchdog") + std::string(kAssertion) + "\n"), "cuda-device-assert",
              kAssertion);
}

TEST_CASE("cause: an illegal address on the GPU, also where NCCL's watchdog reports it") {
  check_cause(died("[rank1]:[E1121 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 1] Process group "
                   "watchdog thread terminated "
                   "with exception: CUDA error: an illegal memory access was encountered\n",
                   {.signal = SIGABRT}),
              "cuda-illegal-address",
              "[rank1]:[E1121 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 1] Process group watchdog "
              "thread terminated with exception: CUDA error: an illegal memory access was "
              "encountered");
}

TEST_CASE("cause: a CUDA kernel that crashed") {
  check_cause(died(raised("RuntimeError: CUDA error: unspecified launch failure")), "cuda-launch-failure",
              "RuntimeError: CUDA error: unspecified launch failure");
}

TEST_CASE("cause: a GPU that is not there") {
  check_cause(died(raised("RuntimeError: CUDA error: invalid device ordinal")), "cuda-no-device",
              "RuntimeError: CUDA error: invalid device ordinal");
  check_cause(died(raised("RuntimeError: No CUDA GPUs are available")), "cuda-no-device",
              "RuntimeError: No CUDA GPUs are available");
  check_cause(died(raised("RuntimeError: Found no NVIDIA driver on your system.")), "cuda-no-device",
              "RuntimeError: Found no NVIDIA driver on your system.");
}

TEST_CASE("cause: a GPU that is busy") {
  check_cause(died(raised("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable")),
              "cuda-device-busy", "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable");
}

TEST_CASE("cause: a collective that did not end in time, of whatever the worker died then") {
  constexpr std::string_view kWatchdog =
      "[rank0]:[E1121 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
      "ran for 600012 milliseconds before timing out.";
  check_cause(
      died(std::string(kWatchdog) + "\nterminate called after throwing an instance of 'c10::DistBackendError'\n",
           {.signal = SIGABRT}),
      "nccl-timeout", kWatchdog);
  CHECK(likely_cause(died(kWatchdog, {.signal = SIGABRT}))->lost_peer);
}

TEST_CASE("cause: another error of CUDA") {
  check_cause(died(raised("RuntimeError: CUDA error: an error nobody has a rule for")), "cuda-error",
              "RuntimeError: CUDA error: an error nobody has a rule for");
}

TEST_CASE("cause: NCCL errors with their kind and NCCL's own last error") {
  const auto nccl = [](std::string_view kind, std::string_view code, std::string_view last) {
    return died(
        "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 1, in "
        "<module>\n[rank0]: "
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, " +
        std::string(kind) + "\n[rank0]: " + std::string(code) +
        "\n[rank0]: Last error:\n[rank0]: " + std::string(last) + "\n");
  };
  check_cause(nccl("remote process exited or there was a network error, NCCL version 2.21.5",
                   "ncclRemoteError: A call failed possibly due to a network error or a remote process "
                   "exiting prematurely.",
                   "socketProgressOpt: Call to recv from 10.0.0.2<33759> failed : Connection reset by peer"),
              "nccl-remote-error",
              "[rank0]: ncclRemoteError: A call failed possibly due to a network error or a remote process "
              "exiting prematurely. / [rank0]: socketProgressOpt: Call to recv from 10.0.0.2<33759> failed "
              ": Connection reset by peer");
  check_cause(nccl("unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.6",
                   "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
                   "device error.",
                   "socketStartConnect: Connect to 10.0.0.2<52822> failed : No route to host"),
              "nccl-system-error",
              "[rank0]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed "
              "or device error. / [rank0]: socketStartConnect: Connect to 10.0.0.2<52822> failed : No "
              "route to host");
  check_cause(nccl("unhandled cuda error, NCCL version 2.21.5", "ncclUnhandledCudaError: Call to CUDA function failed.",
                   "Cuda failure 'peer access is not supported between these two devices'"),
              "nccl-cuda-error",
              "[rank0]: ncclUnhandledCudaError: Call to CUDA function failed. / [rank0]: Cuda "
              "failure 'peer access is not supported between these two devices'");
  check_cause(nccl("invalid usage, NCCL version 2.28.9",
                   "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
                   "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3000"),
              "nccl-invalid-usage",
              "[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library. / "
              "[rank0]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3000");
  check_cause(nccl("internal error, NCCL version 2.21.5", "ncclInternalError: Internal check failed.",
                   "Proxy Call to rank 1 failed (Connect)"),
              "nccl-internal-error",
              "[rank0]: ncclInternalError: Internal check failed. / [rank0]: Proxy Call to rank 1 failed "
              "(Connect)");
  CHECK(likely_cause(nccl("x", "ncclRemoteError: y", "z"))->lost_peer);
}

TEST_CASE("cause: a peer that gloo lost") {
  constexpr std::string_view kLost =
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
      "peer [127.0.0.1]:29261";
  check_cause(died(raised(kLost)), "gloo-peer-lost", kLost);
  CHECK(likely_cause(died(raised(kLost)))->lost_peer);
  constexpr std::string_view kReset =
      "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:545] Read error "
      "[127.0.0.1]:35523: Connection reset by peer. This is typically caused by a remote worker";
  check_cause(died(raised(kReset)), "gloo-peer-lost", kReset);
}

TEST_CASE("cause: an address in use") {
  constexpr std::string_view kInUse =
      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
      "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
      "already in use";
  check_cause(died(raised(kInUse)), "address-in-use", kInUse);
  check_cause(died(raised("OSError: [Errno 98] Address already in use")), "address-in-use",
              "OSError: [Errno 98] Address already in use");
}

TEST_CASE("cause: the store is out of reach") {
  constexpr std::string_view kRendezvous =
      "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
      "C10d store has failed.";
  check_cause(died(raised(kRendezvous)), "store-lost", kRendezvous);
}

TEST_CASE("cause: a shared library that is missing") {
  check_cause(died(raised("ImportError: libcudart.so.12: cannot open shared object file: No such file or "
                          "directory")),
              "missing-library",
              "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory");
}

TEST_CASE("cause: an import that failed") {
  check_cause(died(raised("ModuleNotFoundError: No module named 'flash_attn'")), "import-error",
              "ModuleNotFoundError: No module named 'flash_attn'");
  check_cause(died(raised("ImportError: cannot import name 'x' from 'y' (/lib/y.py)")), "import-error",
              "ImportError: cannot import name 'x' from 'y' (/lib/y.py)");
}

TEST_CASE("cause: a script or module that is not there") {
  constexpr std::string_view kGone =
      "/usr/bin/python3: can't open file '/job/trian.py': [Errno 2] No such file or directory";
  check_cause(died(kGone, {.code = 2}), "script-not-found", kGone);
  check_cause(died("/usr/bin/python3: No module named trian\n"), "script-not-found",
              "/usr/bin/python3: No module named trian");
}

TEST_CASE("cause: a file that may not be opened") {
  constexpr std::string_view kShut = "/usr/bin/python3: can't open file '/job/train.py': [Errno 13] Permission denied";
  check_cause(died(kShut, {.code = 2}), "permission-denied", kShut);
}

TEST_CASE("cause: a file that is not there") {
  check_cause(died(raised("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'")),
              "file-not-found", "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'");
}

TEST_CASE("cause: too many open files") {
  check_cause(died(raised("OSError: [Errno 24] Too many open files")), "too-many-files",
              "OSError: [Errno 24] Too many open files");
}

TEST_CASE("cause: no memory left on the host, where the kernel killed nobody") {
  check_cause(died(raised("OSError: [Errno 12] Cannot allocate memory")), "host-memory",
              "OSError: [Errno 12] Cannot allocate memory");
  check_cause(died(raised("MemoryError")), "host-memory", "MemoryError");
  check_cause(died(raised("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB")), "host-memory",
              "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB");
  check_cause(died("terminate called after throwing an instance of 'std::bad_alloc'\n", {.signal = SIGABRT}),
              "host-memory", "terminate called after throwing an instance of 'std::bad_alloc'");
}

TEST_CASE("cause: a fault that faulthandler saw, with where Python stood") {
  check_cause(died("Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1 (most "
                   "recent call first):\n"
                   "  File \"/job/train.py\", line 12 in step\n  File \"/job/train.py\", line 30 "
                   "in <module>\n",
                   {.signal = SIGSEGV}),
              "python-fatal-error", "Fatal Python error: Segmentation fault / File \"/job/train.py\", line 12 in step");
}

TEST_CASE("cause: a C++ exception that nobody caught") {
  check_cause(died("terminate called after throwing an instance of 'std::runtime_error'\n  what():  no "
                   "such codec\n",
                   {.signal = SIGABRT}),
              "cpp-exception", "terminate called after throwing an instance of 'std::runtime_error' / no such codec");
}

TEST_CASE("cause: killed for memory, with the evidence, before all that the worker said") {
  FailedWorker worker = died(raised("RuntimeError: CUDA error: out of memory"), {.signal = SIGKILL});
  worker.oom_evidence = "memory.events of /user.slice/job: oom_kill 0 -> 1\n";
  check_cause(worker, "killed-for-memory", "memory.events of /user.slice/job: oom_kill 0 -> 1", "cgroup");
  worker.oom_evidence = "Out of memory: Killed process 4711 (python3) total-vm:1kB";
  check_cause(worker, "killed-for-memory", "Out of memory: Killed process 4711 (python3) total-vm:1kB", "kernel log");
}

TEST_CASE("cause: a file timer that expired, with where Python stood, behind what the kernel says") {
  FailedWorker worker = died(raised("RuntimeError: CUDA error: out of memory"), {.signal = SIGKILL});
  worker.pid = 4711;
  worker.timer = ExpiredTimer{.scope = "load",
                              .late_ms = 104,
                              .signal = SIGKILL,
                              .pid = 4711,
                              .stack = {{.function = "load_batch", .file = "/job/train.py", .line = 12}}};
  check_cause(worker, "timer-expired", "at load_batch train.py:12", "Python stack");
  CHECK(likely_cause(worker)->sentence ==
        "its timer 'load' expired (file timer), and elastic-run sent it SIGKILL 0.104 s later");
  CHECK(!likely_cause(worker)->lost_peer);
  worker.timer->pid = 4712;
  worker.timer->stack.clear();
  worker.timer->problem = "there was no time for it";
  check_cause(worker, "timer-expired", "not known: there was no time for it", "Python stack");
  CHECK(likely_cause(worker)->sentence ==
        "the timer 'load' of its process 4712 expired (file timer), and elastic-run sent that process SIGKILL 0.104 s "
        "later");
  worker.oom_evidence = "memory.events of /user.slice/job: oom_kill 0 -> 1\n";
  check_cause(worker, "killed-for-memory", "memory.events of /user.slice/job: oom_kill 0 -> 1", "cgroup");
}

TEST_CASE("cause: every known Xid has its meaning, hardware comes before programs") {
  const auto sentence = [](std::string_view log) {
    return likely_cause({.exit = {.signal = SIGABRT}, .kernel_log = std::string(log)})->sentence;
  };
  for (const int number : {13, 31, 43, 48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120}) {
    CAPTURE(number);
    const std::string text = sentence("NVRM: Xid (PCI:0000:3b:00): " + std::to_string(number) + ", pid=4711, x\n");
    CHECK(text.starts_with("Xid " + std::to_string(number) + ": "));
    CHECK_FALSE(text.contains("that NVIDIA's driver reported"));
  }
  FailedWorker worker = died(raised("RuntimeError: CUDA error: unknown error"));
  worker.kernel_log =
      "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 45, pid=4711, Ch 00000010\n"
      "4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, MMU Fault\n"
      "4,3,3,-;NVRM: Xid (PCI:0000:86:00): 79, pid=4711, GPU has fallen off the bus.\n"
      "4,4,4,-;NVRM: Xid (PCI:0000:86:00): 94, pid=4711, Contained\n";
  check_cause(worker, "gpu-xid", "4,3,3,-;NVRM: Xid (PCI:0000:86:00): 79, pid=4711, GPU has fallen off the bus.",
              "kernel log");
  CHECK(likely_cause(worker)->sentence.contains("has fallen off the bus"));
}

TEST_CASE(
    "cause: an Xid of a program says less than the program, one of a clean-up nothing, an unknown "
    "one little") {
  FailedWorker worker = died(raised("RuntimeError: CUDA error: an illegal memory access was encountered"));
  worker.kernel_log = "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, MMU Fault";
  CHECK(likely_cause(worker)->rule == "cuda-illegal-address");
  worker.tail.bytes.clear();
  check_cause(worker, "gpu-xid", "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, MMU Fault", "kernel log");
  worker.kernel_log = "NVRM: Xid (PCI:0000:3b:00): 45, pid=4711, Ch 00000010";
  CHECK_FALSE(likely_cause(worker));
  worker.kernel_log = "NVRM: Xid (PCI:0000:3b:00): 999, pid=4711";
  CHECK(likely_cause(worker)->sentence.contains("Xid 999: "));
  for (const char* broken : {"NVRM: Xid", "NVRM: Xid (PCI:", "NVRM: Xid (PCI): x", "NVRM: Xid (PCI): 99999999999999"}) {
    worker.kernel_log = broken;
    CHECK_FALSE(likely_cause(worker));
  }
}

TEST_CASE("cause: a bare signal or exit code says at least what it usually means") {
  const auto rule = [](ExitStatus exit) {
    const auto cause = likely_cause(died("some text\n", exit));
    return cause ? cause->rule : "";
  };
  CHECK(rule({.signal = SIGKILL}) == "killed");
  CHECK(rule({.signal = SIGSEGV}) == "segmentation-fault");
  CHECK(rule({.signal = SIGBUS}) == "bus-error");
  CHECK(rule({.signal = SIGILL}) == "illegal-instruction");
  CHECK(rule({.signal = SIGFPE}) == "arithmetic-error");
  CHECK(rule({.signal = SIGABRT}) == "aborted");
  CHECK(rule({.code = 126}) == "not-executable");
  CHECK(rule({.code = 127}) == "command-not-found");
  CHECK(rule({.code = 1}).empty());
  CHECK(rule({.signal = SIGTERM}).empty());
  check_cause(died("", {.signal = SIGSEGV, .core_dumped = true}), "segmentation-fault",
              "was killed by SIGSEGV (core dumped)", "exit status");
}

TEST_CASE("an error that the worker survived is not held against it") {
  const std::string survived = raised("torch.OutOfMemoryError: CUDA out of memory.") + "\nretrying with batch size 8\n";
  CHECK_FALSE(likely_cause(died(survived + raised("ValueError: bad label"))));
  // Without an exception at the end it is unknown which errors the worker survived.
  CHECK(likely_cause(died(survived))->rule == "cuda-out-of-memory");
  CHECK(likely_cause(died(survived + raised("ValueError: bad label"), {.signal = SIGABRT}))->rule ==
        "cuda-out-of-memory");
}

TEST_CASE("the cause is found in error.json where stderr was not kept, and in a chained exception") {
  FailedWorker worker = died("");
  worker.error = ErrorFile{.message = "RuntimeError: step failed",
                           .traceback = raised("torch.OutOfMemoryError: CUDA out of memory.") +
                                        "\nThe above exception was the direct cause of the following exception:\n\n" +
                                        raised("RuntimeError: step failed")};
  check_cause(worker, "cuda-out-of-memory", "torch.OutOfMemoryError: CUDA out of memory.", "error.json");
}

TEST_CASE("the cause is found in a traceback that Python has coloured for a terminal") {
  check_cause(died("Traceback (most recent call last):\r\n  File \x1b[35m\"a.py\"\x1b[0m, line "
                   "\x1b[35m1\x1b[0m, in "
                   "\x1b[35m<module>\x1b[0m\r\n    \x1b[1;31mimport\x1b[0m x\r\n"
                   "\x1b[1;35mModuleNotFoundError\x1b[0m: \x1b[35mNo module named 'x'\x1b[0m\r\n"),
              "import-error", "ModuleNotFoundError: No module named 'x'");
}

TEST_CASE("evidence is one bounded printable line, cut around what was found") {
  const std::string line = std::string(5000, 'x') + " \x1b[31mCUDA out of memory\x07 " + std::string(5000, 'y');
  const auto cause = likely_cause(died(line));
  REQUIRE(cause);
  CHECK(cause->evidence.size() <= kEvidenceBytes + 3);
  CHECK(cause->evidence.contains("xx CUDA out of memory\\x07 yy"));
  CHECK(cause->evidence.starts_with("...xx"));
  CHECK(cause->evidence.ends_with("yy..."));
}

TEST_CASE("a worker that we stopped has no cause of its own") {
  FailedWorker worker = died("CUDA out of memory\n", {.signal = SIGTERM});
  worker.stopped_by_us = true;
  CHECK_FALSE(likely_cause(worker));
}

TEST_CASE("every rule of the table has a test above, and no name stands there twice") {
  std::set<std::string_view> names;
  for (const CauseRule& rule : cause_rules()) {
    CAPTURE(rule.name);
    CHECK(names.insert(rule.name).second);
    if (!seen.empty()) CHECK(seen.contains(rule.name));  // empty: this test was asked to run alone
    CHECK_FALSE(rule.needles.empty());
  }
}
