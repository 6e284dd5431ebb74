#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "health/gpu/probe/probe.h"

typedef struct {
  const char* name;
  size_t offset;
  bool is_needed;
} Symbol;

#define CUDA_ROW(result, name, parameters) {#name, offsetof(CudaApi, name), true},
#define NCCL_ROW(result, name, parameters) {#name, offsetof(NcclApi, name), true},
#define NCCL_ROW_OPTIONAL(result, name, parameters) {#name, offsetof(NcclApi, name), false},
#define LT_ROW(result, name, parameters) {#name, offsetof(LtApi, name), true},
#define LT_ROW_OPTIONAL(result, name, parameters) {#name, offsetof(LtApi, name), false},
#define NVML_ROW(result, name, parameters) {#name, offsetof(NvmlApi, name), true},
#define NVML_ROW_OPTIONAL(result, name, parameters) {#name, offsetof(NvmlApi, name), false},

static const Symbol kCudaSymbols[] = {CUDA_NEEDED(CUDA_ROW){NULL, 0, false}};
static const Symbol kNcclSymbols[] = {NCCL_NEEDED(NCCL_ROW) NCCL_OPTIONAL(NCCL_ROW_OPTIONAL){NULL, 0, false}};
static const Symbol kLtSymbols[] = {LT_NEEDED(LT_ROW) LT_OPTIONAL(LT_ROW_OPTIONAL){NULL, 0, false}};
static const Symbol kNvmlSymbols[] = {NVML_NEEDED(NVML_ROW) NVML_OPTIONAL(NVML_ROW_OPTIONAL){NULL, 0, false}};

// Appends a reason, after "; " if there is one already. What does not fit is cut off.
static void add_why(Library* library, const char* why) {
  size_t used = strlen(library->why);
  snprintf(library->why + used, sizeof library->why - used, "%s%s", used != 0 ? "; " : "", why);
}

// Fills the pointers of `api`. Returns NULL, or the name of a needed function that the library lacks.
static const char* look_up(void* handle, const Symbol* symbols, void* api) {
  for (const Symbol* symbol = symbols; symbol->name != NULL; ++symbol) {
    void* address = dlsym(handle, symbol->name);
    if (address == NULL && symbol->is_needed) return symbol->name;
    memcpy((char*)api + symbol->offset, &address, sizeof address);
  }
  return NULL;
}

static void keep_path(Library* library, void* handle, const Symbol* symbols, const char* candidate) {
  Dl_info info;
  const char* path = candidate;
  if (dladdr(dlsym(handle, symbols[0].name), &info) != 0 && info.dli_fname != NULL) path = info.dli_fname;
  snprintf(library->path, sizeof library->path, "%s", path);
}

static void load(Library* library, const char* const* candidates, size_t count, const Symbol* symbols, void* api) {
  char why[kReasonBytes + 1];
  library->is_there = false;
  library->why[0] = '\0';
  for (size_t i = 0; i < count; ++i) {
    // A path without a file is not worth a reason, unless it is the last candidate; a name that the loader does not
    // find is.
    if (candidates[i][0] == '/' && access(candidates[i], F_OK) != 0 && errno == ENOENT && i + 1 < count) continue;
    void* handle = dlopen(candidates[i], RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
      const char* error = dlerror();
      add_why(library, error != NULL ? error : candidates[i]);
      continue;
    }
    const char* missing = look_up(handle, symbols, api);
    if (missing == NULL) {
      keep_path(library, handle, symbols, candidates[i]);
      library->is_there = true;
      return;
    }
    snprintf(why, sizeof why, "%s has no %s", candidates[i], missing);
    add_why(library, why);
    dlclose(handle);
  }
  if (library->why[0] == '\0') add_why(library, "no path to look for it was given");
}

// With LAZY, kernels are loaded when they are first used. Drivers before CUDA 12.2 otherwise load all kernels of NCCL
// and cuBLASLt at the first use, which takes seconds and device memory. PyTorch of that time sets the same.
void load_cuda(Probe* probe, const char* const* candidates, size_t count) {
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);
  load(&probe->cuda_library, candidates, count, kCudaSymbols, &probe->cuda);
}

void load_nccl(Probe* probe, const char* const* candidates, size_t count) {
  load(&probe->nccl_library, candidates, count, kNcclSymbols, &probe->nccl);
}

void load_lt(Probe* probe, const char* const* candidates, size_t count) {
  load(&probe->lt_library, candidates, count, kLtSymbols, &probe->lt);
}

void load_nvml(Probe* probe, const char* const* candidates, size_t count) {
  load(&probe->nvml_library, candidates, count, kNvmlSymbols, &probe->nvml);
}

const char* cuda_error(const Probe* probe, CudaResult error) {
  const char* name = NULL;
  if (probe->cuda.cuGetErrorName(error, &name) != kCudaSuccess || name == NULL) return "an error without a name";
  return name;
}

const char* lt_error(const Probe* probe, LtStatus status, char* room, size_t bytes) {
  if (probe->lt.cublasLtGetStatusName != NULL) return probe->lt.cublasLtGetStatusName(status);
  snprintf(room, bytes, "status %d", status);
  return room;
}

bool cuda_did(const Probe* probe, CudaResult result, const char* what, Reply* reply) {
  if (result == kCudaSuccess) return true;
  bool is_hardware =
      result == kCudaEccUncorrectable || result == kCudaNvlinkUncorrectable || result == kCudaHardwareStack;
  (is_hardware ? reply_defect : reply_failed)(reply, "%s: %s", what, cuda_error(probe, result));
  return false;
}
