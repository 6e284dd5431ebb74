#pragma once

#include "health/gpu/abi.h"
#include "health/gpu/probe/json.h"

// elastic-gpu-probe: tests one GPU on request. It is the only program of ours that loads CUDA, NCCL, cuBLASLt and
// NVML; docs/gpu-probe.md has its lines. It is C that runs on every glibc from 2.2.5 on.

enum { kPathBytes = 1024 };

// A library that is loaded, or why it is not.
typedef struct {
  bool is_there;
  char path[kPathBytes];
  char why[kTextBytes + 1];
} Library;

typedef struct {
  CudaApi cuda;
  NcclApi nccl;
  LtApi lt;
  NvmlApi nvml;
  Library cuda_library, nccl_library, lt_library, nvml_library;
  bool is_nvml_up;
  bool is_open;  // the device, with a context
  CudaStream stream;
  // Lies here and not on a stack: NCCL 2.14 to 2.17 write it again from a thread of theirs, however late that ends.
  NcclComm comm;
  // It is to be aborted once the reply is sent, since that may hang. The memory that it uses until then:
  bool is_doomed;
  CudaPointer doomed_memory[2];
  void* doomed_host;
  uint64_t product_size;  // rows and columns of the matrices
} Probe;

// What a request came to. Unless it is kOk, `why` says it, and nothing else is told.
typedef enum { kOk, kUnavailable, kFailed } Outcome;

typedef struct {
  Outcome outcome;
  bool is_defect;  // of kFailed: the device itself is at fault
  char why[kTextBytes + 1];
  JsonLine line;  // the members after "ok": true
} Reply;

// Sets outcome and reason, printf's way.
void reply_failed(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));
void reply_defect(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));
void reply_unavailable(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));

// libraries.c: loads the first candidate that has all that is needed.
void load_cuda(Probe* probe, const char* const* candidates, size_t count);
void load_nccl(Probe* probe, const char* const* candidates, size_t count);
void load_lt(Probe* probe, const char* const* candidates, size_t count);
void load_nvml(Probe* probe, const char* const* candidates, size_t count);
const char* cuda_error(const Probe* probe, CudaResult error);  // its name
const char* lt_error(const Probe* probe, LtStatus status, char* room, size_t bytes);
// Whether a call went well; otherwise the reply says which one did not and how.
bool cuda_did(const Probe* probe, CudaResult result, const char* what, Reply* reply);

// device.c, compute.c, gather.c, facts.c: the requests.
void do_open(Probe* probe, const JsonObject* request, Reply* reply);
void do_compute(Probe* probe, Reply* reply);
void do_id(Probe* probe, Reply* reply);
void do_gather(Probe* probe, const JsonObject* request, Reply* reply);
void abort_doomed(Probe* probe);
void do_facts(Probe* probe, const JsonObject* request, Reply* reply);
void read_driver_version(Probe* probe, char* version, size_t bytes);  // "" if it is not known

// support.c: milliseconds since some moment; a pause; the number that a text begins with, 0 without one.
double now_ms(void);
void pause_us(long microseconds);
int leading_number(const char* text);
