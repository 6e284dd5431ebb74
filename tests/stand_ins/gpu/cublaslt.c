// The stand-in for libcublasLt.so.13. It computes real products of small matrices; each costs 1 ms of the events'
// clock.
#include <stdlib.h>
#include <string.h>

#include "tests/stand_ins/gpu/stand_in.h"

#define LT STAND_IN_EXPORT LtStatus

enum { kExecutionFailed = 13 };

struct LtContextObject {
  int unused;
};
struct LtProductObject {
  int unused;
};
struct LtPreferenceObject {
  int unused;
};
struct LtLayoutObject {
  int type;
  uint64_t rows, columns;
  int64_t leading;
};

static int device(void) { return ((DeviceFunction)find_in_cuda("stand_in_device"))(); }

STAND_IN_EXPORT size_t cublasLtGetVersion(void) { return (size_t)fact_number(-1, "cublaslt_version"); }

STAND_IN_EXPORT const char* cublasLtGetStatusName(LtStatus status) {
  return status == kLtNotSupported    ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                      : "CUBLAS_STATUS_UNKNOWN";
}

LT cublasLtCreate(LtHandle* handle) {
  *handle = calloc(1, sizeof **handle);
  return kLtSuccess;
}

LT cublasLtDestroy(LtHandle handle) {
  free(handle);
  return kLtSuccess;
}

LT cublasLtMatmulDescCreate(LtProduct* product, int compute_type, int scale_type) {
  if (compute_type != kLtCompute32F || scale_type != kLtTypeFloat) return kLtNotSupported;
  *product = calloc(1, sizeof **product);
  return kLtSuccess;
}

LT cublasLtMatmulDescDestroy(LtProduct product) {
  free(product);
  return kLtSuccess;
}

LT cublasLtMatrixLayoutCreate(LtLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = malloc(sizeof **layout);
  **layout = (struct LtLayoutObject){type, rows, columns, leading};
  return kLtSuccess;
}

LT cublasLtMatrixLayoutDestroy(LtLayout layout) {
  free(layout);
  return kLtSuccess;
}

LT cublasLtMatmulPreferenceCreate(LtPreference* preference) {
  *preference = calloc(1, sizeof **preference);
  return kLtSuccess;
}

LT cublasLtMatmulPreferenceSetAttribute(LtPreference preference, int attribute, const void* value, size_t bytes) {
  (void)preference, (void)value;
  return attribute == kLtMaxWorkspaceBytes && bytes == sizeof(uint64_t) ? kLtSuccess : kLtNotSupported;
}

LT cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  free(preference);
  return kLtSuccess;
}

LT cublasLtMatmulAlgoGetHeuristic(LtHandle handle, LtProduct product, LtLayout a, LtLayout b, LtLayout c, LtLayout d,
                                  LtPreference preference, int wanted, LtHeuristic* found, int* count) {
  (void)handle, (void)product, (void)b, (void)c, (void)d, (void)preference;
  *count = 0;
  if (wanted < 1 || a->type != kLtTypeBfloat16 || has_fault("no_bfloat16", device(), -1, NULL)) return kLtNotSupported;
  memset(found, 0, sizeof *found);
  *count = 1;
  return kLtSuccess;
}

typedef struct {
  const uint16_t *a, *b;
  float* d;
  struct LtLayoutObject a_layout, b_layout, d_layout;
} Order;

static float float_of(uint16_t bfloat16) {
  uint32_t bits = (uint32_t)bfloat16 << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void multiply(const Order* order) {
  uint64_t rows = order->d_layout.rows, inner = order->a_layout.columns;
  float* row = malloc(inner * sizeof *row);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t k = 0; k < inner; ++k) row[k] = float_of(order->a[i + k * (uint64_t)order->a_layout.leading]);
    for (uint64_t j = 0; j < order->d_layout.columns; ++j) {
      const uint16_t* column = order->b + j * (uint64_t)order->b_layout.leading;
      float sum = 0;
      for (uint64_t k = 0; k < inner; ++k) sum += row[k] * float_of(column[k]);
      order->d[i + j * (uint64_t)order->d_layout.leading] = sum;
    }
  }
  free(row);
}

static double run(void* argument) {
  Order* order = argument;
  if (has_fault("hang_in_product", device(), -1, NULL)) hang_for_ever();
  if (has_fault("crash_in_product", device(), -1, NULL)) crash();
  multiply(order);
  // This is row 3 and column 17 for the probe, whose matrices are row-major.
  if (has_fault("product_wrong", device(), -1, NULL)) order->d[17 + 3 * order->d_layout.leading] += 2;
  free(order);
  return fault_factor("slow", device(), -1);
}

LT cublasLtMatmul(LtHandle handle, LtProduct product, const void* alpha, const void* a, LtLayout a_layout,
                  const void* b, LtLayout b_layout, const void* beta, const void* c, LtLayout c_layout, void* d,
                  LtLayout d_layout, const LtAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                  CudaStream stream) {
  (void)handle, (void)product, (void)alpha, (void)beta, (void)c, (void)c_layout, (void)algorithm, (void)workspace;
  (void)workspace_bytes;
  if (has_fault("product_fails", device(), -1, NULL)) return kExecutionFailed;
  Order* order = malloc(sizeof *order);
  *order = (Order){a, b, d, *a_layout, *b_layout, *d_layout};
  ((EnqueueFunction)find_in_cuda("stand_in_enqueue"))(stream, run, order);
  return kLtSuccess;
}
