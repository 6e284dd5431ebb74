// The least that a test of two nodes' GPUs can cost: two processes, each with a context, a communicator of both, one
// all-gather, and the end of it, by the functions of NVIDIA's libraries alone and nothing verified.
//
//   gpu_floor LIBCUDA LIBNCCL BYTES     each rank's share
//
// Both use the first device, with a NCCL_HOSTID of their own each, so that NCCL takes them for two hosts. Prints one
// line of JSON: milliseconds of each step, of the slower rank, and of all from before the first process to the end of
// both.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "health/gpu/abi.h"

enum { kRanks = 2, kSteps = 5 };
static const char* const kStepNames[kSteps] = {"context_ms", "id_ms", "init_ms", "gather_ms", "teardown_ms"};

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fail(const char* what, const char* why, int code) {
  fprintf(stderr, "gpu_floor: error: %s: %s %d\n", what, why, code);
  _exit(1);
}

static void* open_library(const char* path) {
  void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (handle == NULL) fail(path, dlerror(), 0);
  return handle;
}

static void* find(void* handle, const char* name) {
  void* address = dlsym(handle, name);
  if (address == NULL) fail(name, "is not there", 0);
  return address;
}

#define FIND(result, name, parameters) *(void**)(void*)&api->name = find(handle, #name);

static void load_cuda(const char* path, CudaApi* api) {
  void* handle = open_library(path);
  CUDA_NEEDED(FIND)
}

static void load_nccl(const char* path, NcclApi* api) {
  void* handle = open_library(path);
  NCCL_NEEDED(FIND)
}

static void cuda_did(CudaResult result, const char* what) {
  if (result != kCudaSuccess) fail(what, "CUDA error", result);
}

static void nccl_did(NcclResult result, const char* what) {
  if (result != kNcclSuccess) fail(what, "NCCL error", result);
}

static double step_end(double begin, double* step) {
  double now = now_ms();
  *step = now - begin;
  return now;
}

// One process's part. `id_pipe`: rank 0 writes the id into it, the other reads it.
static void run_rank(int rank, char** arguments, const int id_pipe[2], double steps[kSteps]) {
  CudaApi cuda;
  NcclApi nccl;
  CudaDevice device;
  CudaContext context;
  CudaStream stream;
  CudaPointer send = 0, receive = 0;
  NcclId id;
  NcclComm comm = NULL;
  size_t bytes = strtoull(arguments[3], NULL, 10);
  double at = now_ms();

  setenv("NCCL_HOSTID", rank == 0 ? "floor-0" : "floor-1", 1);
  load_cuda(arguments[1], &cuda);
  cuda_did(cuda.cuInit(0), "cuInit");
  cuda_did(cuda.cuDeviceGet(&device, 0), "cuDeviceGet");
  cuda_did(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  cuda_did(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  cuda_did(cuda.cuStreamCreate(&stream, kCudaStreamNonBlocking), "cuStreamCreate");
  at = step_end(at, &steps[0]);

  load_nccl(arguments[2], &nccl);
  if (rank == 0) {
    nccl_did(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    if (write(id_pipe[1], &id, sizeof id) != sizeof id) fail("the id", "cannot be written", 0);
  } else if (read(id_pipe[0], &id, sizeof id) != sizeof id) {
    fail("the id", "did not come", 0);
  }
  at = step_end(at, &steps[1]);

  nccl_did(nccl.ncclCommInitRank(&comm, kRanks, id, rank), "ncclCommInitRank");
  at = step_end(at, &steps[2]);

  cuda_did(cuda.cuMemAlloc_v2(&send, bytes), "cuMemAlloc");
  cuda_did(cuda.cuMemAlloc_v2(&receive, kRanks * bytes), "cuMemAlloc");
  nccl_did(nccl.ncclAllGather((const void*)(uintptr_t)send, (void*)(uintptr_t)receive, bytes, kNcclInt8, comm, stream),
           "ncclAllGather");
  cuda_did(cuda.cuStreamSynchronize(stream), "the all-gather");
  at = step_end(at, &steps[3]);

  nccl_did(nccl.ncclCommDestroy(comm), "ncclCommDestroy");
  cuda_did(cuda.cuMemFree_v2(send), "cuMemFree");
  cuda_did(cuda.cuMemFree_v2(receive), "cuMemFree");
  step_end(at, &steps[4]);
}

int main(int argc, char** argv) {
  int id_pipe[2], told[2], is_well = 1;
  double slowest[kSteps] = {0}, begin = now_ms();
  if (argc != 4) {
    fprintf(stderr, "usage: gpu_floor LIBCUDA LIBNCCL BYTES\n");
    return 2;
  }
  if (pipe(id_pipe) != 0 || pipe(told) != 0) fail("pipe", "failed", 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    pid_t child = fork();
    if (child < 0) fail("fork", "failed", 0);
    if (child > 0) continue;
    double steps[kSteps];
    close(id_pipe[rank]);                // the end of the other
    dup2(STDERR_FILENO, STDOUT_FILENO);  // where NCCL writes
    run_rank(rank, argv, id_pipe, steps);
    _exit(write(told[1], steps, sizeof steps) == sizeof steps ? 0 : 1);
  }
  close(id_pipe[0]);
  close(id_pipe[1]);
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) is_well = 0;
  }
  double total = now_ms() - begin;
  if (!is_well) return 1;
  for (int rank = 0; rank < kRanks; ++rank) {
    double steps[kSteps];
    if (read(told[0], steps, sizeof steps) != sizeof steps) return 1;
    for (int step = 0; step < kSteps; ++step) {
      if (steps[step] > slowest[step]) slowest[step] = steps[step];
    }
  }
  printf("{");
  for (int step = 0; step < kSteps; ++step) printf("\"%s\": %.3f, ", kStepNames[step], slowest[step]);
  printf("\"total_ms\": %.3f}\n", total);
  return 0;
}
