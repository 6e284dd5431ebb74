#include "src/report/cause_rules.h"

namespace elastic::report {
namespace {

using enum CauseRule::Where;

constexpr Needle kGlibc[] = {
    {"version `GLIBC_", "not found"}, {"version `GLIBCXX_", "not found"}, {"version `CXXABI_", "not found"}};
constexpr Needle kDriver[] = {{"Driver/library version mismatch"},
                              {"CUDA driver version is insufficient for CUDA runtime version"},
                              {"The NVIDIA driver on your system is too old"},
                              {"forward compatibility was attempted on non supported HW"}};
constexpr Needle kArchitecture[] = {{"no kernel image is available for execution on the device"}};
constexpr Needle kEcc[] = {{"uncorrectable ECC error encountered"}, {"uncorrectable NVLink error detected"}};
constexpr Needle kCudaMemory[] = {{"CUDA out of memory"},
                                  {"torch.OutOfMemoryError"},
                                  {"torch.cuda.OutOfMemoryError"},
                                  {"CUDA error: out of memory"},
                                  {"Cuda failure", "out of memory"}};
constexpr Needle kSharedMemory[] = {{"Unexpected bus error encountered in worker"},
                                    {"insufficient shared memory (shm)"},
                                    {"DataLoader worker", "killed by signal: Bus error"},
                                    {"unable to write to file </torch_"},
                                    {"unable to mmap", "from file </torch_"},
                                    {"/dev/shm/nccl-", "No space left on device"},
                                    {"Error while creating shared memory segment /dev/shm"}};
constexpr Needle kNoSpace[] = {{"No space left on device"}, {"Disk quota exceeded"}};
constexpr Needle kLoader[] = {{"DataLoader worker", "killed by signal"}, {"DataLoader worker", "exited unexpectedly"}};
constexpr Needle kAssert[] = {{"block: [", "Assertion `"}, {"CUDA error: device-side assert triggered"}};
constexpr Needle kAddress[] = {{"CUDA error: an illegal memory access was encountered"},
                               {"CUDA error: misaligned address"},
                               {"Cuda failure", "an illegal memory access was encountered"}};
constexpr Needle kLaunch[] = {{"CUDA error: unspecified launch failure"}};
constexpr Needle kOrdinal[] = {
    {"CUDA error: invalid device ordinal"}, {"No CUDA GPUs are available"}, {"Found no NVIDIA driver on your system"}};
constexpr Needle kBusy[] = {{"CUDA error: all CUDA-capable devices are busy or unavailable"},
                            {"CUDA error: CUDA-capable device(s) is/are busy or unavailable"}};
constexpr Needle kCuda[] = {{"CUDA error: "}, {"AcceleratorError: "}};
constexpr Needle kNcclTimeout[] = {{"Watchdog caught collective operation timeout"}};
constexpr Needle kNcclRemote[] = {{"ncclRemoteError"}, {"NCCL", "remote process exited"}};
constexpr Needle kNcclSystem[] = {{"ncclSystemError"}, {"NCCL", "unhandled system error"}};
constexpr Needle kNcclCuda[] = {{"ncclUnhandledCudaError"}, {"NCCL", "unhandled cuda error"}};
constexpr Needle kNcclUsage[] = {
    {"ncclInvalidUsage"}, {"NCCL", "invalid usage"}, {"ncclInvalidArgument"}, {"NCCL", "invalid argument"}};
constexpr Needle kNcclInternal[] = {{"ncclInternalError"}, {"NCCL", "internal error"}};
constexpr Needle kGloo[] = {{"gloo/transport", "Connection closed by peer"},
                            {"gloo/transport", "Connection reset by peer"},
                            {"gloo/transport", "Broken pipe"}};
constexpr Needle kPort[] = {{"EADDRINUSE"}, {"Address already in use"}, {"address already in use"}};
constexpr Needle kStore[] = {{"RendezvousConnectionError"}, {"DistNetworkError", "client socket"}, {"DistStoreError"}};
constexpr Needle kLibrary[] = {
    {"error while loading shared libraries"}, {"cannot open shared object file"}, {"undefined symbol: "}};
constexpr Needle kImport[] = {{"ModuleNotFoundError: "}, {"ImportError: "}};
constexpr Needle kScript[] = {
    {"can't open file", "No such file or directory"}, {"can't find '__main__' module in"}, {": No module named "}};
constexpr Needle kForbidden[] = {{"can't open file", "Permission denied"}, {"PermissionError: [Errno 13]"}};
constexpr Needle kNoFile[] = {{"FileNotFoundError: [Errno 2]"}};
constexpr Needle kTooManyFiles[] = {{"Too many open files"}};
constexpr Needle kHostMemory[] = {
    {"Cannot allocate memory"}, {"std::bad_alloc"}, {"DefaultCPUAllocator: can't allocate memory"}, {"MemoryError"}};
constexpr Needle kFault[] = {{"Fatal Python error: "}};
constexpr Needle kTerminate[] = {{"terminate called after throwing an instance of"},
                                 {"terminate called without an active exception"}};

constexpr CauseRule kRules[] = {
    {"glibc-not-found", kAtEnd, kGlibc,
     "a library needs a newer libc or libstdc++ than this system has: build or install it for this "
     "system"},
    {"cuda-driver-mismatch", kAtEnd, kDriver,
     "the NVIDIA driver and the CUDA libraries are incompatible: update the driver, or reboot if "
     "it was updated while the system was running"},
    {"cuda-architecture", kAtEnd, kArchitecture,
     "the program has no code for this GPU's architecture: install a build that supports it"},
    {"gpu-ecc", kAnywhere, kEcc,
     "the memory or a link of a GPU has failed: remove the node, and reset or replace the GPU"},
    {"cuda-out-of-memory", kAtEnd, kCudaMemory,
     "the GPU ran out of memory (CUDA out of memory): use a smaller batch, or check which other "
     "processes use the GPU (nvidia-smi)"},
    {"shared-memory", kAnywhere, kSharedMemory,
     "shared memory (/dev/shm) was full: give the container more (--shm-size, an emptyDir of "
     "medium Memory), or use fewer data loader workers"},
    {"no-space", kAtEnd, kNoSpace, "a file system was full, or a quota was exceeded: free some space"},
    {"dataloader-worker-killed", kAtEnd, kLoader,
     "a DataLoader worker was killed, most often for lack of memory: use fewer workers, or give the "
     "host more memory"},
    {"cuda-device-assert", kAnywhere, kAssert,
     "an assertion in a CUDA kernel failed, most often an index out of range (a label or token "
     "beyond the size of its table)"},
    {"cuda-illegal-address", kAtEnd, kAddress,
     "a CUDA kernel accessed an invalid address: run again with CUDA_LAUNCH_BLOCKING=1, or "
     "under compute-sanitizer"},
    {"cuda-launch-failure", kAtEnd, kLaunch,
     "a CUDA kernel crashed (unspecified launch failure): see the kernel log for an Xid, or run "
     "under compute-sanitizer"},
    {"cuda-no-device", kAtEnd, kOrdinal,
     "the worker asked for a GPU that does not exist: compare --nproc-per-node and "
     "CUDA_VISIBLE_DEVICES with nvidia-smi -L"},
    {"cuda-device-busy", kAtEnd, kBusy,
     "the GPU is used by another process in exclusive mode, or does not answer: see nvidia-smi"},
    {"nccl-timeout",
     kAnywhere,
     kNcclTimeout,
     "a collective timed out: a rank is slow, stuck or gone, or ranks do not call the "
     "same collectives",
     {},
     true},
    {"cuda-error", kAtEnd, kCuda, "a CUDA call failed"},
    {"nccl-remote-error", kAtEnd, kNcclRemote,
     "NCCL remote error: the connection to another rank was lost, most often because that rank or "
     "its node has failed",
     "Last error:", true},
    {"nccl-system-error", kAtEnd, kNcclSystem,
     "NCCL system error: a socket or another system call failed; NCCL_DEBUG=WARN shows which, "
     "NCCL_SOCKET_IFNAME selects the interface",
     "Last error:", true},
    {"nccl-cuda-error", kAtEnd, kNcclCuda, "NCCL: a CUDA call failed; NCCL_DEBUG=WARN shows which", "Last error:"},
    {"nccl-invalid-usage", kAtEnd, kNcclUsage,
     "NCCL invalid usage: often two ranks on one GPU, or ranks that do not agree on the call or "
     "the version of NCCL",
     "Last error:"},
    {"nccl-internal-error", kAtEnd, kNcclInternal, "NCCL internal error; NCCL_DEBUG=WARN shows more",
     "Last error:", true},
    {"gloo-peer-lost",
     kAtEnd,
     kGloo,
     "the connection to another rank was lost (gloo), most often because that rank has failed",
     {},
     true},
    {"address-in-use", kAtEnd, kPort,
     "a port is in use by another process: end that process or choose another port "
     "(--master-port)"},
    {"store-lost",
     kAtEnd,
     kStore,
     "the store at MASTER_ADDR:MASTER_PORT could not be reached or did not answer in time, most "
     "often because another rank or its node has failed",
     {},
     true},
    {"missing-library", kAtEnd, kLibrary,
     "a shared library is missing or has the wrong version: check LD_LIBRARY_PATH and what is "
     "installed"},
    {"import-error", kAtEnd, kImport,
     "a Python module could not be imported: is it installed for the Python that runs the "
     "workers?"},
    {"script-not-found", kAtEnd, kScript, "the script or module to run does not exist"},
    {"permission-denied", kAtEnd, kForbidden, "a file could not be opened: its permissions forbid it"},
    {"file-not-found", kAtEnd, kNoFile, "a file that the program needs does not exist"},
    {"too-many-files", kAtEnd, kTooManyFiles, "too many files were open: raise the limit (ulimit -n)"},
    {"host-memory", kAtEnd, kHostMemory, "the host ran out of memory, or a memory limit was reached"},
    {"python-fatal-error", kAnywhere, kFault,
     "Python itself crashed, most often because of a bug in an extension module; the lines below "
     "the quoted one show where",
     "(most recent call first):"},
    {"cpp-exception", kAtEnd, kTerminate, "a C++ exception was not caught", "what():"},
};

}  // namespace

std::span<const CauseRule> cause_rules() { return kRules; }

}  // namespace elastic::report
