#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "health/gpu/abi.h"

// Libraries that stand in for NVIDIA's, for tests on machines without a GPU. "Device" memory is host memory. A stream
// is a thread that works off one task after the other. Events have the times of a clock that each task advances by what
// it would cost, so that figures do not depend on how busy the machine is. NCCL gathers over TCP.
//
//   STAND_IN_GPU_FACTS=FILE    lines "name=value", or "1.name=value" for device 1 only, which takes precedence. Devices
//   are
//                              numbered as in NVML; CUDA_VISIBLE_DEVICES is obeyed. Once the process has a context on a
//                              GPU, "opened.name" and "1.opened.name" take precedence. facts.c has names and defaults
//   STAND_IN_GPU_FAULTS=LIST   "name" or "name=number", separated by commas; with "@d1" for device 1 only, with "@r0"
//   for
//                              that rank of a communicator only. README.md lists them
//   STAND_IN_GPU_SHM=DIR       stands for /dev/shm, which NCCL needs
//   STAND_IN_GPU_KMSG=FILE     stands for the kernel log, for the fault "xid"

#define STAND_IN_EXPORT __attribute__((visibility("default")))

// Whether the fault is set for this device and rank (-1: not known yet). `value`, if not NULL, gets its number, or 1 if
// it has none.
bool has_fault(const char* name, int device, int rank, double* value);
// The number of a fault, or 1.
double fault_factor(const char* name, int device, int rank);

// A fact about a device. The text is valid until this thread's next call.
const char* fact(int device, const char* name);
unsigned long long fact_number(int device, const char* name);
bool is_fact_known(int device, const char* name);  // false if the value is "none"

void hang_for_ever(void);
void crash(void);

// What the other stand-ins use of the stand-in for libcuda.so.1, by name.
typedef double (*StreamWork)(void* argument);  // returns what it costs, in ms
typedef void (*EnqueueFunction)(CudaStream stream, StreamWork work, void* argument);
typedef int (*DeviceFunction)(void);  // the device of the current context, as NVML numbers it
void* find_in_cuda(const char* name);
