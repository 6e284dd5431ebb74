#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/gpu/probe/probe.h"

// Both matrices repeat a tile of kPeriod by kPeriod small integers. kPeriod is prime, so that two neighbouring blocks
// of a kernel never compute the same part of the tile. Every sum stays below 2^24, so it is exact in float in whatever
// order it is added up, and the expected result follows from the tiles alone.
enum {
  kPeriod = 61,
  kLargest = 2,  // entries are -kLargest ... kLargest
  kTimedRuns = 5,
  kTimedCopies = 3,
  kWorkspaceBytes = 32 * 1024 * 1024,
};

typedef struct {
  signed char a[kPeriod][kPeriod];
  signed char b[kPeriod][kPeriod];
} Tiles;

static void fill_tiles(Tiles* tiles) {
  uint64_t state = 0x9e3779b97f4a7c15ULL;
  signed char* entries = (signed char*)tiles;
  for (size_t i = 0; i < sizeof *tiles; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    entries[i] = (signed char)((int)(state >> 33) % (2 * kLargest + 1) - kLargest);
  }
}

static uint16_t bfloat16_of(int number) {
  float value = (float)number;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);  // exact for small integers
}

typedef struct {
  uint64_t size;  // rows and columns
  Tiles tiles;
  CudaPointer a, b, c, copy, workspace;
  float* expected;      // the first kPeriod rows of the product, which the other rows repeat
  unsigned char* host;  // page-locked
  size_t host_bytes;
  CudaEvent start, end;
} Bench;

static size_t entry_count(const Bench* bench) { return (size_t)(bench->size * bench->size); }

// Copies the first kPeriod rows of a matrix to the device and repeats them there until the matrix is full.
static bool upload(Probe* probe, Bench* bench, signed char tile[kPeriod][kPeriod], CudaPointer to, Reply* reply) {
  uint16_t* strip = (uint16_t*)(void*)bench->host;
  uint64_t size = bench->size, rows = size < kPeriod ? size : kPeriod;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < size; ++column) {
      strip[row * size + column] = bfloat16_of(tile[row % kPeriod][column % kPeriod]);
    }
  }
  size_t row_bytes = (size_t)size * sizeof *strip;
  if (!cuda_did(probe, probe->cuda.cuMemcpyHtoDAsync_v2(to, strip, (size_t)rows * row_bytes, probe->stream),
                "cuMemcpyHtoDAsync", reply)) {
    return false;
  }
  while (rows < size) {
    uint64_t more = size - rows < rows ? size - rows : rows;
    if (!cuda_did(probe,
                  probe->cuda.cuMemcpyDtoDAsync_v2(to + rows * row_bytes, to, (size_t)more * row_bytes, probe->stream),
                  "cuMemcpyDtoDAsync", reply)) {
      return false;
    }
    rows += more;
  }
  // The host memory is written again for the next matrix, so the copy has to be over.
  return cuda_did(probe, probe->cuda.cuStreamSynchronize(probe->stream), "cuMemcpyHtoDAsync", reply);
}

static void work_out_expected(Bench* bench) {
  static int sums[kPeriod][kPeriod];
  memset(sums, 0, sizeof sums);
  for (uint64_t k = 0; k < kPeriod; ++k) {
    // How many times the k-th column of one tile is multiplied by the k-th row of the other.
    int times = (int)(bench->size / kPeriod + (k < bench->size % kPeriod));
    for (int row = 0; row < kPeriod; ++row) {
      for (int column = 0; column < kPeriod; ++column) {
        sums[row][column] += times * bench->tiles.a[row][k] * bench->tiles.b[k][column];
      }
    }
  }
  for (uint64_t row = 0; row < kPeriod; ++row) {
    for (uint64_t column = 0; column < bench->size; ++column) {
      bench->expected[row * bench->size + column] = (float)sums[row][column % kPeriod];
    }
  }
}

static bool compare_rows(const Bench* bench, uint64_t first, uint64_t rows, Reply* reply) {
  const float* found = (const float*)(const void*)bench->host;
  for (uint64_t row = first; row < first + rows; ++row, found += bench->size) {
    const float* wanted = bench->expected + row % kPeriod * bench->size;
    if (memcmp(found, wanted, (size_t)bench->size * sizeof *found) == 0) continue;
    for (uint64_t column = 0; column < bench->size; ++column) {
      if (found[column] == wanted[column]) continue;  // 0 and -0 differ in their bits only
      reply_defect(reply, "the product is wrong: element (%llu, %llu) is %g, not %g", (unsigned long long)row,
                   (unsigned long long)column, (double)found[column], (double)wanted[column]);
      return false;
    }
  }
  return true;
}

// Compares every element of the product with what is expected.
static bool compare_product(Probe* probe, const Bench* bench, Reply* reply) {
  size_t row_bytes = (size_t)bench->size * sizeof(float);
  uint64_t at_once = bench->host_bytes / row_bytes;
  for (uint64_t row = 0; row < bench->size; row += at_once) {
    uint64_t rows = bench->size - row < at_once ? bench->size - row : at_once;
    if (!cuda_did(probe,
                  probe->cuda.cuMemcpyDtoHAsync_v2(bench->host, bench->c + row * row_bytes, (size_t)rows * row_bytes,
                                                   probe->stream),
                  "cuMemcpyDtoHAsync", reply) ||
        !cuda_did(probe, probe->cuda.cuStreamSynchronize(probe->stream), "cuMemcpyDtoHAsync", reply) ||
        !compare_rows(bench, row, rows, reply)) {
      return false;
    }
  }
  return true;
}

// Waits for the stream and sets the time between the two events.
static bool elapsed(Probe* probe, const Bench* bench, const char* what, double* milliseconds, Reply* reply) {
  float time = 0;
  if (!cuda_did(probe, probe->cuda.cuStreamSynchronize(probe->stream), what, reply) ||
      !cuda_did(probe, probe->cuda.cuEventElapsedTime(&time, bench->start, bench->end), what, reply)) {
    return false;
  }
  *milliseconds = (double)time;
  return true;
}

typedef struct {
  LtHandle handle;
  LtProduct product;
  LtLayout layout;         // of both inputs: square, bfloat16
  LtLayout result_layout;  // square, float
  LtPreference preference;
  LtHeuristic found;
} Plan;

// Returns NULL, or why cuBLASLt cannot multiply these matrices.
static const char* make_plan(Probe* probe, const Bench* bench, Plan* plan, char* room, size_t bytes) {
  const LtApi* lt = &probe->lt;
  uint64_t size = bench->size, workspace = kWorkspaceBytes;
  int count = 0;
  LtStatus status = lt->cublasLtCreate(&plan->handle);
  if (status == kLtSuccess) status = lt->cublasLtMatmulDescCreate(&plan->product, kLtCompute32F, kLtTypeFloat);
  if (status == kLtSuccess) {
    status = lt->cublasLtMatrixLayoutCreate(&plan->layout, kLtTypeBfloat16, size, size, (int64_t)size);
  }
  if (status == kLtSuccess) {
    status = lt->cublasLtMatrixLayoutCreate(&plan->result_layout, kLtTypeFloat, size, size, (int64_t)size);
  }
  if (status == kLtSuccess) status = lt->cublasLtMatmulPreferenceCreate(&plan->preference);
  if (status == kLtSuccess) {
    status =
        lt->cublasLtMatmulPreferenceSetAttribute(plan->preference, kLtMaxWorkspaceBytes, &workspace, sizeof workspace);
  }
  if (status == kLtSuccess) {
    status =
        lt->cublasLtMatmulAlgoGetHeuristic(plan->handle, plan->product, plan->layout, plan->layout, plan->result_layout,
                                           plan->result_layout, plan->preference, 1, &plan->found, &count);
  }
  if (status == kLtSuccess && count == 0) status = kLtNotSupported;
  if (status == kLtSuccess) status = plan->found.state;  // of the one algorithm that was asked for
  if (status == kLtSuccess) return NULL;
  char number[32];
  snprintf(room, bytes, "cuBLASLt: %s", lt_error(probe, status, number, sizeof number));
  return room;
}

static void drop_plan(Probe* probe, Plan* plan) {
  const LtApi* lt = &probe->lt;
  if (plan->preference != NULL) lt->cublasLtMatmulPreferenceDestroy(plan->preference);
  if (plan->result_layout != NULL) lt->cublasLtMatrixLayoutDestroy(plan->result_layout);
  if (plan->layout != NULL) lt->cublasLtMatrixLayoutDestroy(plan->layout);
  if (plan->product != NULL) lt->cublasLtMatmulDescDestroy(plan->product);
  if (plan->handle != NULL) lt->cublasLtDestroy(plan->handle);
}

// Enqueues one product and times it. cuBLASLt's matrices are column-major and ours row-major, so what it sees as b
// times a is a times b for us.
static bool multiply(Probe* probe, const Bench* bench, const Plan* plan, double* milliseconds, Reply* reply) {
  float one = 1, zero = 0;
  char number[32];
  // Every element becomes NaN first, so that one which the kernel does not write is found.
  if (!cuda_did(probe, probe->cuda.cuMemsetD8Async(bench->c, 0xff, entry_count(bench) * sizeof(float), probe->stream),
                "cuMemsetD8Async", reply) ||
      !cuda_did(probe, probe->cuda.cuEventRecord(bench->start, probe->stream), "cuEventRecord", reply)) {
    return false;
  }
  LtStatus status = probe->lt.cublasLtMatmul(plan->handle, plan->product, &one, (const void*)(uintptr_t)bench->b,
                                             plan->layout, (const void*)(uintptr_t)bench->a, plan->layout, &zero,
                                             (const void*)(uintptr_t)bench->c, plan->result_layout,
                                             (void*)(uintptr_t)bench->c, plan->result_layout, &plan->found.algorithm,
                                             (void*)(uintptr_t)bench->workspace, kWorkspaceBytes, probe->stream);
  if (status != kLtSuccess) {
    reply_failed(reply, "cublasLtMatmul: %s", lt_error(probe, status, number, sizeof number));
    return false;
  }
  return cuda_did(probe, probe->cuda.cuEventRecord(bench->end, probe->stream), "cuEventRecord", reply) &&
         elapsed(probe, bench, "the product", milliseconds, reply);
}

// The least time of several; the first product, which does not count, and the last are compared.
static bool measure_product(Probe* probe, const Bench* bench, const Plan* plan, double* least_ms, Reply* reply) {
  for (int run = 0; run <= kTimedRuns; ++run) {
    double time = 0;
    if (!multiply(probe, bench, plan, &time, reply)) return false;
    if (run == 1 || (run > 1 && time < *least_ms)) *least_ms = time;
    if ((run == 0 || run == kTimedRuns) && !compare_product(probe, bench, reply)) return false;
  }
  return true;
}

typedef enum { kWithinDevice, kToDevice, kToHost } Way;

static CudaResult copy_once(Probe* probe, const Bench* bench, Way way, size_t bytes) {
  if (way == kWithinDevice) return probe->cuda.cuMemcpyDtoDAsync_v2(bench->copy, bench->c, bytes, probe->stream);
  if (way == kToDevice) return probe->cuda.cuMemcpyHtoDAsync_v2(bench->copy, bench->host, bytes, probe->stream);
  return probe->cuda.cuMemcpyDtoHAsync_v2(bench->host, bench->copy, bytes, probe->stream);
}

// The least time of several copies, of which the first does not count.
static bool measure_copy(Probe* probe, const Bench* bench, Way way, size_t bytes, double* least_ms, Reply* reply) {
  static const char* const kNames[] = {"a copy within the device", "a copy to the device", "a copy to the host"};
  for (int run = 0; run <= kTimedCopies; ++run) {
    double time = 0;
    if (!cuda_did(probe, probe->cuda.cuEventRecord(bench->start, probe->stream), "cuEventRecord", reply) ||
        !cuda_did(probe, copy_once(probe, bench, way, bytes), kNames[way], reply) ||
        !cuda_did(probe, probe->cuda.cuEventRecord(bench->end, probe->stream), "cuEventRecord", reply) ||
        !elapsed(probe, bench, kNames[way], &time, reply)) {
      return false;
    }
    if (run == 1 || (run > 1 && time < *least_ms)) *least_ms = time;
  }
  return true;
}

// Allocates, on the device, two inputs, the product and a copy of it; on the host, a quarter of the product's size, and
// at least what upload() and compare_product() write at a time.
static bool make_bench(Probe* probe, Bench* bench, Reply* reply) {
  const CudaApi* cuda = &probe->cuda;
  size_t entries = entry_count(bench), strip = kPeriod * (size_t)bench->size * sizeof(float);
  bench->host_bytes = entries > strip ? entries : strip;
  bench->expected = malloc(strip);
  if (bench->expected == NULL) {
    reply_failed(reply, "no memory for %zu bytes", strip);
    return false;
  }
  return cuda_did(probe, cuda->cuMemAllocHost_v2((void**)&bench->host, bench->host_bytes), "cuMemAllocHost", reply) &&
         cuda_did(probe, cuda->cuMemAlloc_v2(&bench->a, entries * 2), "cuMemAlloc", reply) &&
         cuda_did(probe, cuda->cuMemAlloc_v2(&bench->b, entries * 2), "cuMemAlloc", reply) &&
         cuda_did(probe, cuda->cuMemAlloc_v2(&bench->c, entries * 4), "cuMemAlloc", reply) &&
         cuda_did(probe, cuda->cuMemAlloc_v2(&bench->copy, entries * 4), "cuMemAlloc", reply) &&
         cuda_did(probe, cuda->cuMemAlloc_v2(&bench->workspace, kWorkspaceBytes), "cuMemAlloc", reply) &&
         cuda_did(probe, cuda->cuEventCreate(&bench->start, 0), "cuEventCreate", reply) &&
         cuda_did(probe, cuda->cuEventCreate(&bench->end, 0), "cuEventCreate", reply);
}

static void drop_bench(Probe* probe, Bench* bench) {
  CudaPointer all[] = {bench->a, bench->b, bench->c, bench->copy, bench->workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (all[i] != 0) probe->cuda.cuMemFree_v2(all[i]);
  }
  if (bench->host != NULL) probe->cuda.cuMemFreeHost(bench->host);
  if (bench->start != NULL) probe->cuda.cuEventDestroy_v2(bench->start);
  if (bench->end != NULL) probe->cuda.cuEventDestroy_v2(bench->end);
  free(bench->expected);
}

static void write_rate(JsonLine* line, const char* name, double bytes, double milliseconds) {
  json_real(line, name, bytes / milliseconds / 1e6);
}

// Measures the product, or sets `why_not` where it cannot be measured. Returns false if the reply has failed.
static bool try_product(Probe* probe, Bench* bench, Plan* plan, double* least_ms, const char** why_not, char* room,
                        size_t bytes, Reply* reply) {
  *why_not = probe->lt_library.is_there ? make_plan(probe, bench, plan, room, bytes) : probe->lt_library.why;
  if (*why_not != NULL) return true;
  fill_tiles(&bench->tiles);
  work_out_expected(bench);
  return upload(probe, bench, bench->tiles.a, bench->a, reply) &&
         upload(probe, bench, bench->tiles.b, bench->b, reply) && measure_product(probe, bench, plan, least_ms, reply);
}

static void write_product(const Bench* bench, double least_ms, const char* why_not, JsonLine* line) {
  double size = (double)bench->size;
  if (why_not == NULL) {
    json_real(line, "product_ms", least_ms);
    json_real(line, "tflops", 2 * size * size * size / least_ms / 1e9);
  } else {
    json_null(line, "product_ms");
    json_null(line, "tflops");
    json_text(line, "compute_why", why_not);
  }
}

static void compute_with(Probe* probe, Bench* bench, Plan* plan, Reply* reply) {
  double product_ms = 0, within_ms = 0, in_ms = 0, out_ms = 0;
  size_t device_bytes = entry_count(bench) * 4, host_bytes = entry_count(bench);
  char room[kReasonBytes + 1];
  const char* why_not = NULL;
  if (!make_bench(probe, bench, reply) ||
      !try_product(probe, bench, plan, &product_ms, &why_not, room, sizeof room, reply) ||
      !measure_copy(probe, bench, kWithinDevice, device_bytes, &within_ms, reply) ||
      !measure_copy(probe, bench, kToDevice, host_bytes, &in_ms, reply) ||
      !measure_copy(probe, bench, kToHost, host_bytes, &out_ms, reply)) {
    return;
  }
  write_product(bench, product_ms, why_not, &reply->line);
  write_rate(&reply->line, "memory_gbps", 2 * (double)device_bytes, within_ms);  // read and written
  write_rate(&reply->line, "host_to_device_gbps", (double)host_bytes, in_ms);
  write_rate(&reply->line, "device_to_host_gbps", (double)host_bytes, out_ms);
}

void do_compute(Probe* probe, Reply* reply) {
  Bench bench;
  Plan plan;
  memset(&bench, 0, sizeof bench);
  memset(&plan, 0, sizeof plan);
  bench.size = probe->product_size;
  if (!probe->is_open) {
    reply_failed(reply, "no device is open");
    return;
  }
  compute_with(probe, &bench, &plan, reply);
  drop_plan(probe, &plan);
  drop_bench(probe, &bench);
}
