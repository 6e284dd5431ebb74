#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "health/gpu/abi.h"

// Libraries in the place of NVIDIA's, for tests on machines without a GPU. "Device" memory is host memory; a stream
// is a thread that does one thing after the other; events have times of a clock that goes on by what each thing
// would cost, so that figures do not depend on how busy the machine is; NCCL gathers over TCP.
//
//   STAND_IN_GPU_FACTS=FILE    lines "name=value", or "1.name=value" for device 1 alone, which goes before. Devices are
//                              counted as NVML does; CUDA_VISIBLE_DEVICES is obeyed. "opened.name" and "1.opened.name"
//                              go before these once the process has a context on a GPU. facts.c has names and defaults
//   STAND_IN_GPU_FAULTS=LIST   "name", "name=number", with "@d1" for device 1 alone, with "@r0" for that rank of a
//                              communicator alone; separated by commas. The list is in README.md
//   STAND_IN_GPU_SHM=DIR       in the place of /dev/shm, which NCCL needs
//   STAND_IN_GPU_KMSG=FILE     in the place of the kernel log, for the fault "xid"

#define STAND_IN_EXPORT __attribute__((visibility("default")))

// Whether the fault is there for this device and rank (-1: none is known yet). `value`, if not NULL, becomes its
// number, 1 if it has none.
bool has_fault(const char* name, int device, int rank, double* value);
// The number of a fault, or 1.
double fault_factor(const char* name, int device, int rank);

// A fact of a device. It lives until the next call of this thread.
const char* fact(int device, const char* name);
unsigned long long fact_number(int device, const char* name);
bool is_fact_known(int device, const char* name);  // "none" is not

void hang_for_ever(void);
void crash(void);

// What stand-in libraries know of each other: found in libcuda.so.1 by these names.
typedef double (*StreamWork)(void* argument);  // returns what it costs, in ms
typedef void (*EnqueueFunction)(CudaStream stream, StreamWork work, void* argument);
typedef int (*DeviceFunction)(void);  // the current context's, as NVML counts
void* find_in_cuda(const char* name);
