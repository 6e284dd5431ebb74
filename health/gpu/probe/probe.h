#pragma once

#include "health/gpu/abi.h"
#include "health/gpu/probe/json.h"
#include "health/gpu/probe/reply.h"
#include "health/gpu/probe/request.h"

// elastic-gpu-probe tests one GPU on request. Of our programs it alone loads CUDA, NCCL, cuBLASLt and NVML.
// docs/gpu-probe.md describes its requests and replies. It is written in C, so that it runs on every glibc since 2.2.5.

enum { kPathBytes = 1024 };

// A library that has been loaded, or the reason why none was.
typedef struct {
  bool is_there;
  char path[kPathBytes];
  char why[kReasonBytes + 1];
} Library;

typedef struct {
  CudaApi cuda;
  NcclApi nccl;
  LtApi lt;
  NvmlApi nvml;
  Library cuda_library, nccl_library, lt_library, nvml_library;
  bool is_nvml_up;
  bool is_open;  // the device has a context, and `stream` exists
  CudaStream stream;
  // Not on a stack, since NCCL 2.14 to 2.17 write it once more from a thread of their own, at any later time.
  NcclComm comm;
  // The communicator has failed and is aborted after the reply is sent, since ncclCommAbort may hang. Until then it
  // uses this memory.
  bool is_doomed;
  CudaPointer doomed_memory[2];
  void* doomed_host;
  uint64_t product_size;  // rows and columns of the matrices
} Probe;

// libraries.c. Each loads the first candidate that has all functions which are needed.
void load_cuda(Probe* probe, const char* const* candidates, size_t count);
void load_nccl(Probe* probe, const char* const* candidates, size_t count);
void load_lt(Probe* probe, const char* const* candidates, size_t count);
void load_nvml(Probe* probe, const char* const* candidates, size_t count);
const char* cuda_error(const Probe* probe, CudaResult error);  // the name of an error
const char* lt_error(const Probe* probe, LtStatus status, char* room, size_t bytes);
// Returns whether a call succeeded; if not, the reply gets the name of the call and of the error.
bool cuda_did(const Probe* probe, CudaResult result, const char* what, Reply* reply);

// device.c, compute.c, gather.c, facts.c. Each carries out one request.
void do_open(Probe* probe, const Request* request, Reply* reply);
void do_compute(Probe* probe, Reply* reply);
void do_id(Probe* probe, Reply* reply);
void do_gather(Probe* probe, const Request* request, Reply* reply);
void abort_doomed(Probe* probe);  // after the reply to do_gather() is sent
void do_facts(Probe* probe, const Request* request, Reply* reply);
void read_driver_version(Probe* probe, char* version, size_t bytes);  // "" if not known

// support.c, for what newer versions of the C library do by newer symbols.
double now_ms(void);  // of a monotonic clock
void pause_us(long microseconds);
int leading_number(const char* text);  // the number at the beginning of a text; 0 if there is none
