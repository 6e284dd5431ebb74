#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/gpu/probe/probe.h"

// All ranks have to make the same calls in the same order, so the number of repetitions follows from values that all
// ranks have gathered, never from one rank's own clock.
enum {
  kMaxRanks = 1024,
  kMaxRuns = 20,
  kRunsMs = 200,  // for the second and all later runs of the large size together
  kLatencyRunsMs = 200,
  kSmallBytes = 8,  // each rank's share where latency is measured, and in agree()
  kPieceBytes = 4 * 1024 * 1024,
};
static const int64_t kMaxShareBytes = 1LL << 30;
static const int64_t kMaxGatheredBytes = 1LL << 34;

typedef struct {
  NcclComm* comm;  // Probe.comm
  int rank, world;
  size_t share_bytes;  // each rank's
  double deadline_ms;  // on now_ms()'s clock
  double allowed_ms;
  CudaPointer send, receive;
  unsigned char* host;  // page-locked, kPieceBytes
  CudaEvent start, end;
} Gather;

// --- What NCCL says ------------------------------------------------------------------------------------

static NcclComm comm_of(const Gather* gather) { return gather->comm != NULL ? *gather->comm : NULL; }

static void nccl_failed(Probe* probe, const Gather* gather, const char* what, NcclResult result, Reply* reply) {
  const char* last = probe->nccl.ncclGetLastError != NULL ? probe->nccl.ncclGetLastError(comm_of(gather)) : NULL;
  bool has_more = last != NULL && last[0] != '\0';
  reply_failed(reply, "%s: %s%s%s%s", what, probe->nccl.ncclGetErrorString(result), has_more ? " (" : "",
               has_more ? last : "", has_more ? ")" : "");
}

static bool is_late(const Gather* gather) { return now_ms() >= gather->deadline_ms; }

static void nccl_late(Probe* probe, const Gather* gather, const char* what, Reply* reply) {
  const char* last = probe->nccl.ncclGetLastError != NULL ? probe->nccl.ncclGetLastError(comm_of(gather)) : NULL;
  bool has_more = last != NULL && last[0] != '\0';
  reply_failed(reply, "%s did not end within %.1f s%s%s%s", what, gather->allowed_ms / 1e3, has_more ? " (" : "",
               has_more ? last : "", has_more ? ")" : "");
}

// Does not sleep in the first 2 ms, since most calls take microseconds.
static void wait_a_little(double since_ms) {
  if (now_ms() - since_ms > 2) pause_us(200);
}

// Waits until a nonblocking call of NCCL is over; returns whether it succeeded. Without a communicator there is nothing
// to wait for.
static bool nccl_did(Probe* probe, const Gather* gather, const char* what, NcclResult result, Reply* reply) {
  double begin = now_ms();
  while (result == kNcclInProgress && comm_of(gather) != NULL) {
    NcclResult state = kNcclSuccess;
    result = probe->nccl.ncclCommGetAsyncError(comm_of(gather), &state);
    if (result == kNcclSuccess) result = state;
    if (result != kNcclInProgress) break;
    if (is_late(gather)) {
      nccl_late(probe, gather, what, reply);
      return false;
    }
    wait_a_little(begin);
  }
  if (result == kNcclSuccess) return true;
  nccl_failed(probe, gather, what, result, reply);
  return false;
}

// --- Steps ---------------------------------------------------------------------------------------------

static bool make_communicator(Probe* probe, Gather* gather, NcclId id, Reply* reply) {
  NcclResult result;
  if (probe->nccl.ncclCommInitRankConfig != NULL) {
    NcclConfig config = {sizeof config, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0, NCCL_UNSET};
    result = probe->nccl.ncclCommInitRankConfig(gather->comm, gather->world, id, gather->rank, &config);
  } else {
    result = probe->nccl.ncclCommInitRank(gather->comm, gather->world, id, gather->rank);
  }
  return nccl_did(probe, gather, "NCCL initialization", result, reply);
}

// Waits until the stream has reached the event `end`, NCCL reports an error or the deadline passes.
static bool wait_for_end(Probe* probe, const Gather* gather, Reply* reply) {
  double begin = now_ms();
  for (;;) {
    CudaResult done = probe->cuda.cuEventQuery(gather->end);
    if (done == kCudaSuccess) return true;
    if (done != kCudaNotReady) return cuda_did(probe, done, "the all-gather", reply);
    NcclResult state = kNcclSuccess;
    NcclResult asked = probe->nccl.ncclCommGetAsyncError(comm_of(gather), &state);
    if (asked != kNcclSuccess) state = asked;
    if (state != kNcclSuccess && state != kNcclInProgress) {
      nccl_failed(probe, gather, "the all-gather", state, reply);
      return false;
    }
    if (is_late(gather)) {
      nccl_late(probe, gather, "the all-gather", reply);
      return false;
    }
    wait_a_little(begin);
  }
}

// Runs `runs` all-gathers of `bytes` from each rank, one after the other. `milliseconds` is the device's time of one.
static bool run_gathers(Probe* probe, const Gather* gather, size_t bytes, int runs, double* milliseconds,
                        Reply* reply) {
  float time = 0;
  if (!cuda_did(probe, probe->cuda.cuEventRecord(gather->start, probe->stream), "cuEventRecord", reply)) return false;
  for (int run = 0; run < runs; ++run) {
    NcclResult result =
        probe->nccl.ncclAllGather((const void*)(uintptr_t)gather->send, (void*)(uintptr_t)gather->receive, bytes,
                                  kNcclInt8, comm_of(gather), probe->stream);
    if (!nccl_did(probe, gather, "the all-gather", result, reply)) return false;
  }
  if (!cuda_did(probe, probe->cuda.cuEventRecord(gather->end, probe->stream), "cuEventRecord", reply) ||
      !wait_for_end(probe, gather, reply) ||
      !cuda_did(probe, probe->cuda.cuEventElapsedTime(&time, gather->start, gather->end), "cuEventElapsedTime",
                reply)) {
    return false;
  }
  *milliseconds = (double)time / runs;
  return true;
}

// Runs one all-gather of the large size. The memory is overwritten first, so that bytes left from an earlier run cannot
// pass for gathered ones; NCCL prepares its kernel meanwhile, which is then not part of the measured time.
static bool run_large(Probe* probe, const Gather* gather, double* milliseconds, Reply* reply) {
  size_t all = gather->share_bytes * (size_t)gather->world;
  return cuda_did(probe, probe->cuda.cuMemsetD8Async(gather->receive, 0xff, all, probe->stream), "cuMemsetD8Async",
                  reply) &&
         run_gathers(probe, gather, gather->share_bytes, 1, milliseconds, reply);
}

// The value of a word of a rank's share: it differs between words and between ranks.
static uint32_t word_of(int rank, size_t index) {
  return (uint32_t)index * 2654435761U + (uint32_t)rank * 0x9e3779b9U + 0x5bd1e995U;
}

static bool copy_piece(Probe* probe, CudaPointer device, void* host, size_t bytes, bool to_device, Reply* reply) {
  CudaResult result = to_device ? probe->cuda.cuMemcpyHtoDAsync_v2(device, host, bytes, probe->stream)
                                : probe->cuda.cuMemcpyDtoHAsync_v2(host, device, bytes, probe->stream);
  return cuda_did(probe, result, "a copy", reply) &&
         cuda_did(probe, probe->cuda.cuStreamSynchronize(probe->stream), "a copy", reply);
}

static bool check_words(const uint32_t* words, size_t first, size_t count, int rank, Reply* reply) {
  for (size_t i = 0; i < count; ++i) {
    if (words[i] != word_of(rank, first + i)) {
      reply_defect(reply, "the all-gather is wrong: byte %zu of rank %d is not what rank %d sent", (first + i) * 4,
                   rank, rank);
      return false;
    }
  }
  return true;
}

// Fills one rank's share on the device, or compares it with what that rank sent.
static bool fill_or_check(Probe* probe, const Gather* gather, CudaPointer share, int rank, bool is_filling,
                          Reply* reply) {
  uint32_t* words = (uint32_t*)(void*)gather->host;
  for (size_t at = 0; at < gather->share_bytes; at += kPieceBytes) {
    size_t left = gather->share_bytes - at, bytes = left < kPieceBytes ? left : kPieceBytes;
    for (size_t i = 0; is_filling && i < bytes / 4; ++i) words[i] = word_of(rank, at / 4 + i);
    if (!copy_piece(probe, share + at, words, bytes, is_filling, reply)) return false;
    if (!is_filling && !check_words(words, at / 4, bytes / 4, rank, reply)) return false;
    if (is_late(gather)) {
      nccl_late(probe, gather, "the comparison of the gathered bytes", reply);
      return false;
    }
  }
  return true;
}

static bool check_gathered(Probe* probe, const Gather* gather, Reply* reply) {
  for (int rank = 0; rank < gather->world; ++rank) {
    CudaPointer share = gather->receive + (CudaPointer)rank * gather->share_bytes;
    if (!fill_or_check(probe, gather, share, rank, false, reply)) return false;
  }
  return true;
}

// Gathers each rank's number and sets `largest`, the same on all ranks. `took_ms` is the device's time of the
// all-gather.
static bool agree(Probe* probe, const Gather* gather, double mine, double* largest, double* took_ms, Reply* reply) {
  size_t bytes = (size_t)gather->world * kSmallBytes;
  memcpy(gather->host, &mine, kSmallBytes);
  if (!copy_piece(probe, gather->send, gather->host, kSmallBytes, true, reply) ||
      !run_gathers(probe, gather, kSmallBytes, 1, took_ms, reply) ||
      !copy_piece(probe, gather->receive, gather->host, bytes, false, reply)) {
    return false;
  }
  *largest = 0;
  for (int rank = 0; rank < gather->world; ++rank) {
    double theirs;
    memcpy(&theirs, gather->host + (size_t)rank * kSmallBytes, kSmallBytes);
    if (theirs > *largest) *largest = theirs;
  }
  return true;
}

static int runs_within(double total_ms, double each_ms) {
  double runs = each_ms > 0 ? total_ms / each_ms : kMaxRuns;
  return runs >= kMaxRuns ? kMaxRuns : runs < 1 ? 1 : (int)runs;
}

static int compare_times(const void* left, const void* right) {
  double a = *(const double*)left, b = *(const double*)right;
  return a < b ? -1 : a > b;
}

// Sets the median of `runs` times, of which `times[0]` has been measured already.
static bool measure_large(Probe* probe, const Gather* gather, double* times, int runs, double* median_ms,
                          Reply* reply) {
  for (int run = 1; run < runs; ++run) {
    if (!run_large(probe, gather, &times[run], reply)) return false;
  }
  qsort(times, (size_t)runs, sizeof *times, compare_times);
  *median_ms = times[(runs - 1) / 2];
  return true;
}

static bool measure(Probe* probe, const Gather* gather, double* first_ms, double* median_ms, double* latency_us,
                    Reply* reply) {
  double times[kMaxRuns], ignored, largest, small_ms, latency_ms;
  double begin = now_ms();
  if (!run_large(probe, gather, &ignored, reply)) return false;
  *first_ms = now_ms() - begin;
  if (!check_gathered(probe, gather, reply) ||
      // Ranks end the comparison at different times. This makes them wait for each other outside of what is measured.
      !agree(probe, gather, 0, &ignored, &small_ms, reply) || !run_large(probe, gather, &times[0], reply) ||
      !agree(probe, gather, times[0], &largest, &small_ms, reply) ||
      !measure_large(probe, gather, times, runs_within(kRunsMs, largest), median_ms, reply) ||
      // The first all-gather of the small size may include making connections, so the second gives the time.
      !agree(probe, gather, 0, &ignored, &small_ms, reply) ||
      !agree(probe, gather, small_ms, &largest, &ignored, reply) ||
      !run_gathers(probe, gather, kSmallBytes, runs_within(kLatencyRunsMs, largest), &latency_ms, reply)) {
    return false;
  }
  *latency_us = latency_ms * 1e3;
  return true;
}

static bool drop_communicator(Probe* probe, Gather* gather, Reply* reply) {
  if (probe->nccl.ncclCommFinalize != NULL &&
      !nccl_did(probe, gather, "ncclCommFinalize", probe->nccl.ncclCommFinalize(comm_of(gather)), reply)) {
    return false;
  }
  NcclComm comm = comm_of(gather);
  *gather->comm = NULL;
  NcclResult result = probe->nccl.ncclCommDestroy(comm);
  return result == kNcclInProgress || nccl_did(probe, gather, "ncclCommDestroy", result, reply);
}

// --- Requests ------------------------------------------------------------------------------------------

static bool has_nccl(Probe* probe, Reply* reply) {
  if (!probe->is_open)
    reply_failed(reply, "no device is open");
  else if (!probe->nccl_library.is_there)
    reply_unavailable(reply, "no NCCL: %s", probe->nccl_library.why);
  else
    return true;
  return false;
}

static bool read_id(const Request* request, NcclId* id) {
  static const char kDigits[] = "0123456789abcdef";
  const char* text = request_text(request, "id");
  if (text == NULL || strlen(text) != 2 * kNcclIdBytes) return false;
  for (size_t i = 0; i < 2 * kNcclIdBytes; ++i) {
    const char* digit = strchr(kDigits, text[i]);
    if (digit == NULL) return false;
    unsigned value = (unsigned)(digit - kDigits);
    id->bytes[i / 2] = (char)(i % 2 == 0 ? value << 4 : (unsigned)(unsigned char)id->bytes[i / 2] | value);
  }
  return true;
}

static bool read_number(const Request* request, const char* name, int64_t least, int64_t most, int64_t* number,
                        Reply* reply) {
  if (request_number(request, name, number) && *number >= least && *number <= most) return true;
  reply_failed(reply, "the request gather needs %s, from %lld to %lld", name, (long long)least, (long long)most);
  return false;
}

static bool read_request(const Request* request, Gather* gather, NcclId* id, Reply* reply) {
  int64_t rank, world, bytes, deadline_ms;
  if (!read_id(request, id)) {
    reply_failed(reply, "the request gather needs an id of %d hexadecimal digits", 2 * kNcclIdBytes);
    return false;
  }
  if (!read_number(request, "world", 1, kMaxRanks, &world, reply) ||
      !read_number(request, "rank", 0, world - 1, &rank, reply) ||
      !read_number(request, "bytes", kSmallBytes, kMaxShareBytes, &bytes, reply) ||
      !read_number(request, "deadline_ms", 1, INT_MAX, &deadline_ms, reply)) {
    return false;
  }
  if (bytes % kSmallBytes != 0 || bytes * world > kMaxGatheredBytes) {
    reply_failed(reply, "the request gather needs bytes in multiples of %d, of at most %lld in all", kSmallBytes,
                 (long long)kMaxGatheredBytes);
    return false;
  }
  gather->rank = (int)rank;
  gather->world = (int)world;
  gather->share_bytes = (size_t)bytes;
  gather->allowed_ms = (double)deadline_ms;
  gather->deadline_ms = now_ms() + gather->allowed_ms;
  return true;
}

static bool make_room(Probe* probe, Gather* gather, Reply* reply) {
  size_t all = gather->share_bytes * (size_t)gather->world;
  return cuda_did(probe, probe->cuda.cuMemAlloc_v2(&gather->send, gather->share_bytes), "cuMemAlloc", reply) &&
         cuda_did(probe, probe->cuda.cuMemAlloc_v2(&gather->receive, all), "cuMemAlloc", reply) &&
         cuda_did(probe, probe->cuda.cuMemAllocHost_v2((void**)&gather->host, kPieceBytes), "cuMemAllocHost", reply) &&
         cuda_did(probe, probe->cuda.cuEventCreate(&gather->start, 0), "cuEventCreate", reply) &&
         cuda_did(probe, probe->cuda.cuEventCreate(&gather->end, 0), "cuEventCreate", reply) &&
         fill_or_check(probe, gather, gather->send, gather->rank, true, reply);
}

static void free_memory(Probe* probe, const CudaPointer memory[2], void* host) {
  if (memory[0] != 0) probe->cuda.cuMemFree_v2(memory[0]);
  if (memory[1] != 0) probe->cuda.cuMemFree_v2(memory[1]);
  if (host != NULL) probe->cuda.cuMemFreeHost(host);
}

// Frees the memory, unless the communicator still exists: it is aborted later and uses the memory until then.
static void drop_room(Probe* probe, Gather* gather) {
  CudaPointer memory[2] = {gather->send, gather->receive};
  if (gather->start != NULL) probe->cuda.cuEventDestroy_v2(gather->start);
  if (gather->end != NULL) probe->cuda.cuEventDestroy_v2(gather->end);
  if (comm_of(gather) == NULL) {
    free_memory(probe, memory, gather->host);
    return;
  }
  probe->is_doomed = true;
  memcpy(probe->doomed_memory, memory, sizeof memory);
  probe->doomed_host = gather->host;
}

void do_id(Probe* probe, Reply* reply) {
  NcclId id;
  char text[2 * kNcclIdBytes + 1];
  if (!has_nccl(probe, reply)) return;
  NcclResult result = probe->nccl.ncclGetUniqueId(&id);
  if (result != kNcclSuccess) {
    Gather nobody = {0};
    nccl_failed(probe, &nobody, "ncclGetUniqueId", result, reply);
    return;
  }
  for (size_t i = 0; i < kNcclIdBytes; ++i) sprintf(text + 2 * i, "%02x", (unsigned)(unsigned char)id.bytes[i]);
  json_text(&reply->line, "id", text);
}

void do_gather(Probe* probe, const Request* request, Reply* reply) {
  Gather gather = {.comm = &probe->comm};
  NcclId id;
  double first_ms = 0, median_ms = 0, latency_us = 0;
  if (!has_nccl(probe, reply) || !read_request(request, &gather, &id, reply)) return;
  double begin = now_ms(), init_ms = 0;
  bool is_well = make_room(probe, &gather, reply);
  if (is_well) {
    begin = now_ms();
    is_well = make_communicator(probe, &gather, id, reply);
    init_ms = now_ms() - begin;
  }
  is_well = is_well && measure(probe, &gather, &first_ms, &median_ms, &latency_us, reply) &&
            drop_communicator(probe, &gather, reply);
  drop_room(probe, &gather);
  if (!is_well) return;
  json_real(&reply->line, "init_ms", init_ms);
  json_real(&reply->line, "first_ms", first_ms);
  json_real(&reply->line, "ms", median_ms);
  json_real(&reply->line, "latency_us", latency_us);
}

void abort_doomed(Probe* probe) {
  if (!probe->is_doomed) return;
  probe->nccl.ncclCommAbort(probe->comm);
  probe->comm = NULL;
  probe->is_doomed = false;
  free_memory(probe, probe->doomed_memory, probe->doomed_host);
}
