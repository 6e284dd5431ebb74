// The stand-in for libcuda.so.1.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stand_ins/gpu/stand_in.h"

#define CUDA STAND_IN_EXPORT CudaResult

enum { kMaxVisible = 64 };

// --- Devices -------------------------------------------------------------------------------------------

static int visible[kMaxVisible];
static int visible_count = -1;
static int current_device;
static bool is_open;

static void read_visible(void) {
  int all = (int)fact_number(-1, "devices");
  const char* given = getenv("CUDA_VISIBLE_DEVICES");
  visible_count = 0;
  if (given == NULL) {
    while (visible_count < all && visible_count < kMaxVisible) visible[visible_count] = visible_count, ++visible_count;
    return;
  }
  for (const char* at = given; *at != '\0' && visible_count < kMaxVisible; at += strcspn(at, ","), at += *at == ',') {
    int device = atoi(at);
    if (*at < '0' || *at > '9' || device >= all) return;  // the entries after it are not visible either
    visible[visible_count++] = device;
  }
}

STAND_IN_EXPORT int stand_in_device(void) { return current_device; }
STAND_IN_EXPORT int stand_in_opened(void) { return is_open ? current_device : -1; }

CUDA cuInit(unsigned flags) {
  double code = kCudaUnknown;
  (void)flags;
  if (has_fault("driver_fails", -1, -1, &code)) return code > 1 ? (CudaResult)code : kCudaUnknown;
  const char* loading = getenv("CUDA_MODULE_LOADING");
  if (has_fault("needs_lazy_loading", -1, -1, NULL) && (loading == NULL || strcmp(loading, "LAZY") != 0))
    return kCudaUnknown;
  read_visible();
  return visible_count == 0 ? kCudaNoDevice : kCudaSuccess;
}

CUDA cuDriverGetVersion(int* version) {
  *version = (int)fact_number(-1, "cuda_version");
  return kCudaSuccess;
}

CUDA cuGetErrorName(CudaResult error, const char** name) {
  static const struct {
    CudaResult error;
    const char* name;
  } kNames[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},    {100, "CUDA_ERROR_NO_DEVICE"},
                {101, "CUDA_ERROR_INVALID_DEVICE"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                {719, "CUDA_ERROR_LAUNCH_FAILED"},  {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                {999, "CUDA_ERROR_UNKNOWN"}};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    if (kNames[i].error == error) {
      *name = kNames[i].name;
      return kCudaSuccess;
    }
  }
  return 1;
}

CUDA cuDeviceGetCount(int* count) {
  *count = visible_count;
  return kCudaSuccess;
}

CUDA cuDeviceGet(CudaDevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= visible_count) return kCudaInvalidDevice;
  *device = visible[ordinal];
  return kCudaSuccess;
}

CUDA cuDeviceGetName(char* name, int length, CudaDevice device) {
  snprintf(name, (size_t)length, "%s", fact(device, "name"));
  return kCudaSuccess;
}

CUDA cuDeviceGetUuid(CudaUuid* uuid, CudaDevice device) {
  const char* at = fact(device, "uuid") + strlen("GPU-");
  for (int i = 0; i < 16; ++i, at += 2) {
    if (*at == '-') ++at;
    unsigned byte = 0;
    sscanf(at, "%2x", &byte);
    uuid->bytes[i] = (char)byte;
  }
  return kCudaSuccess;
}

CUDA cuDeviceGetPCIBusId(char* id, int length, CudaDevice device) {
  snprintf(id, (size_t)length, "%s", fact(device, "bus_id"));
  return kCudaSuccess;
}

CUDA cuDeviceTotalMem_v2(size_t* bytes, CudaDevice device) {
  *bytes = (size_t)fact_number(device, "memory_bytes");
  return kCudaSuccess;
}

CUDA cuDevicePrimaryCtxRetain(CudaContext* context, CudaDevice device) {
  static char places[kMaxVisible];
  double code = 0;
  if (has_fault("hang_in_open", device, -1, NULL)) hang_for_ever();
  if (has_fault("crash_in_open", device, -1, NULL)) crash();
  if (has_fault("open_fails", device, -1, &code)) return code > 1 ? (CudaResult)code : kCudaUnknown;
  *context = (CudaContext)(void*)&places[device];
  current_device = device;
  is_open = true;
  return kCudaSuccess;
}

CUDA cuCtxSetCurrent(CudaContext context) {
  (void)context;
  return kCudaSuccess;
}

// --- Streams -------------------------------------------------------------------------------------------

typedef struct Work {
  struct Work* next;
  StreamWork run;
  void* argument;
} Work;

struct CudaStreamObject {
  Work* first;
  Work** end;
  bool is_busy;
  double clock_ms;
};

struct CudaEventObject {
  bool is_done;
  double at_ms;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void* serve_stream(void* argument) {
  CudaStream stream = argument;
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (stream->first == NULL) pthread_cond_wait(&changed, &mutex);
    Work* work = stream->first;
    stream->first = work->next;
    if (stream->first == NULL) stream->end = &stream->first;
    stream->is_busy = true;
    pthread_mutex_unlock(&mutex);
    double cost_ms = work->run(work->argument);
    free(work);
    pthread_mutex_lock(&mutex);
    stream->clock_ms += cost_ms;
    stream->is_busy = false;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

STAND_IN_EXPORT void stand_in_enqueue(CudaStream stream, StreamWork run, void* argument) {
  Work* work = malloc(sizeof *work);
  *work = (Work){NULL, run, argument};
  pthread_mutex_lock(&mutex);
  *stream->end = work;
  stream->end = &work->next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

CUDA cuStreamCreate(CudaStream* stream, unsigned flags) {
  pthread_t thread;
  (void)flags;
  *stream = calloc(1, sizeof **stream);
  (*stream)->end = &(*stream)->first;
  if (pthread_create(&thread, NULL, serve_stream, *stream) != 0) return kCudaOutOfMemory;
  pthread_detach(thread);
  return kCudaSuccess;
}

CUDA cuStreamSynchronize(CudaStream stream) {
  pthread_mutex_lock(&mutex);
  while (stream->first != NULL || stream->is_busy) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  return kCudaSuccess;
}

// --- Events --------------------------------------------------------------------------------------------

typedef struct {
  CudaEvent event;
  CudaStream stream;
} Recording;

static double record(void* argument) {
  Recording* recording = argument;
  pthread_mutex_lock(&mutex);
  recording->event->at_ms = recording->stream->clock_ms;
  recording->event->is_done = true;
  pthread_mutex_unlock(&mutex);
  free(recording);
  return 0;
}

CUDA cuEventCreate(CudaEvent* event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof **event);
  return kCudaSuccess;
}

CUDA cuEventDestroy_v2(CudaEvent event) {
  (void)event;  // it is never freed, since a stream that hangs may still reach it
  return kCudaSuccess;
}

CUDA cuEventRecord(CudaEvent event, CudaStream stream) {
  Recording* recording = malloc(sizeof *recording);
  *recording = (Recording){event, stream};
  pthread_mutex_lock(&mutex);
  event->is_done = false;
  pthread_mutex_unlock(&mutex);
  stand_in_enqueue(stream, record, recording);
  return kCudaSuccess;
}

CUDA cuEventQuery(CudaEvent event) {
  pthread_mutex_lock(&mutex);
  bool is_done = event->is_done;
  pthread_mutex_unlock(&mutex);
  return is_done ? kCudaSuccess : kCudaNotReady;
}

CUDA cuEventElapsedTime(float* milliseconds, CudaEvent start, CudaEvent end) {
  *milliseconds = (float)(end->at_ms - start->at_ms);
  return kCudaSuccess;
}

// --- Memory --------------------------------------------------------------------------------------------

typedef struct {
  void* to;
  const void* from;  // NULL: `byte` is written
  int byte;
  size_t bytes;
  double cost_ms;
} Copy;

static double copy(void* argument) {
  Copy* order = argument;
  if (order->from != NULL)
    memcpy(order->to, order->from, order->bytes);
  else
    memset(order->to, order->byte, order->bytes);
  double cost_ms = order->cost_ms;
  free(order);
  return cost_ms;
}

static CudaResult enqueue_copy(CudaStream stream, void* to, const void* from, int byte, size_t bytes, double cost_ms) {
  Copy* order = malloc(sizeof *order);
  *order = (Copy){to, from, byte, bytes, cost_ms};
  stand_in_enqueue(stream, copy, order);
  return kCudaSuccess;
}

// The bandwidths of an H100, in bytes per ms.
static double cost_of(size_t bytes, double per_ms, const char* fault) {
  return (double)bytes / per_ms * fault_factor(fault, current_device, -1);
}

// Free memory, the one that was freed first in front. Like device memory, it is handed out again with its old content.
typedef struct {
  char* memory;
  size_t bytes;
} Block;
enum { kBlocks = 64 };
static Block free_blocks[kBlocks], used_blocks[kBlocks];

// Takes the block with this memory out of a list or, if `memory` is NULL, the first one of this size. Returns a block
// without memory if there is none.
static Block take_block(Block blocks[kBlocks], const char* memory, size_t bytes) {
  for (int i = 0; i < kBlocks && blocks[i].memory != NULL; ++i) {
    if (memory != NULL ? blocks[i].memory != memory : blocks[i].bytes != bytes) continue;
    Block found = blocks[i];
    memmove(blocks + i, blocks + i + 1, (size_t)(kBlocks - 1 - i) * sizeof *blocks);
    blocks[kBlocks - 1] = (Block){NULL, 0};
    return found;
  }
  return (Block){NULL, 0};
}

static bool keep_block(Block blocks[kBlocks], Block block) {
  for (int i = 0; i < kBlocks; ++i) {
    if (blocks[i].memory != NULL) continue;
    blocks[i] = block;
    return true;
  }
  return false;
}

CUDA cuMemAlloc_v2(CudaPointer* pointer, size_t bytes) {
  if (has_fault("no_memory", current_device, -1, NULL)) return kCudaOutOfMemory;
  Block block = take_block(free_blocks, NULL, bytes);
  if (block.memory == NULL) block = (Block){malloc(bytes), bytes};
  if (block.memory == NULL || !keep_block(used_blocks, block)) return kCudaOutOfMemory;
  *pointer = (CudaPointer)(uintptr_t)block.memory;
  return kCudaSuccess;
}

CUDA cuMemFree_v2(CudaPointer pointer) {
  Block block = take_block(used_blocks, (const char*)(uintptr_t)pointer, 0);
  if (block.memory == NULL) return 1;  // CUDA_ERROR_INVALID_VALUE
  if (!keep_block(free_blocks, block)) free(block.memory);
  return kCudaSuccess;
}

CUDA cuMemAllocHost_v2(void** pointer, size_t bytes) {
  *pointer = malloc(bytes);
  return *pointer != NULL ? kCudaSuccess : kCudaOutOfMemory;
}

CUDA cuMemFreeHost(void* pointer) {
  free(pointer);
  return kCudaSuccess;
}

CUDA cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t bytes, CudaStream stream) {
  return enqueue_copy(stream, (void*)(uintptr_t)to, from, 0, bytes, cost_of(bytes, 55e6, "slow_host"));
}

CUDA cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t bytes, CudaStream stream) {
  return enqueue_copy(stream, to, (const void*)(uintptr_t)from, 0, bytes, cost_of(bytes, 54e6, "slow_host"));
}

CUDA cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream) {
  return enqueue_copy(stream, (void*)(uintptr_t)to, (const void*)(uintptr_t)from, 0, bytes,
                      cost_of(2 * bytes, 2900e6, "slow_memory"));
}

CUDA cuMemsetD8Async(CudaPointer to, unsigned char byte, size_t bytes, CudaStream stream) {
  return enqueue_copy(stream, (void*)(uintptr_t)to, NULL, byte, bytes, cost_of(bytes, 2900e6, "slow_memory"));
}
