// Compares health/gpu/abi.h with the real NCCL and cuBLASLt, as far as they work without a GPU: they are loaded as the
// probe loads them, all functions are there, our constants are accepted, and attributes that were set are read back.
//
//   real_libraries nccl|cublaslt PATH      one line for each check that fails, and exit status 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "health/gpu/abi.h"

static int failures = 0;

static void check(int is_right, const char* what, long long found) {
  if (is_right) return;
  printf("%s: %lld\n", what, found);
  ++failures;
}

static void* find(void* handle, const char* name) {
  void* address = dlsym(handle, name);
  if (address != NULL) return address;
  printf("there is no %s\n", name);
  exit(1);
}

#define FIND(result, name, parameters) *(void**)(void*)&api.name = find(handle, #name);

static void check_nccl(void* handle) {
  NcclApi api;
  NCCL_NEEDED(FIND)
  NCCL_OPTIONAL(FIND)
  int version = 0;
  NcclId ids[2];
  NcclComm comm = NULL;
  NcclConfig config = {sizeof config, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0, NCCL_UNSET};
  memset(ids, 0, sizeof ids);
  check(api.ncclGetVersion(&version) == kNcclSuccess && version >= 21400, "ncclGetVersion", version);
  for (int i = 0; i < 2; ++i) check(api.ncclGetUniqueId(&ids[i]) == kNcclSuccess, "ncclGetUniqueId", i);
  check(memcmp(&ids[0], &ids[1], sizeof ids[0]) != 0, "two ids are the same", 0);
  check(strcmp(api.ncclGetErrorString(kNcclSuccess), "no error") == 0, "ncclGetErrorString", kNcclSuccess);
  check(strstr(api.ncclGetErrorString(kNcclCudaError), "cuda") != NULL, "ncclGetErrorString", kNcclCudaError);
  check(strstr(api.ncclGetErrorString(kNcclSystemError), "system") != NULL, "ncclGetErrorString", kNcclSystemError);
  check(strstr(api.ncclGetErrorString(kNcclInternalError), "internal") != NULL, "ncclGetErrorString",
        kNcclInternalError);
  check(strstr(api.ncclGetErrorString(kNcclInvalidArgument), "argument") != NULL, "ncclGetErrorString",
        kNcclInvalidArgument);
  check(strstr(api.ncclGetErrorString(kNcclInvalidUsage), "usage") != NULL, "ncclGetErrorString", kNcclInvalidUsage);
  check(strstr(api.ncclGetErrorString(kNcclRemoteError), "remote") != NULL, "ncclGetErrorString", kNcclRemoteError);
  check(strstr(api.ncclGetErrorString(kNcclInProgress), "progress") != NULL, "ncclGetErrorString", kNcclInProgress);
  // Without a driver NCCL reports an error; a struct passed in a wrong way would make it crash.
  NcclResult result = api.ncclCommInitRankConfig(&comm, 2, ids[0], 0, &config);
  check(result == kNcclCudaError && comm == NULL, "ncclCommInitRankConfig without a driver", result);
  check(api.ncclGetLastError(NULL) != NULL, "ncclGetLastError", 0);
  check(api.ncclCommGetAsyncError(NULL, &result) == kNcclInvalidArgument, "ncclCommGetAsyncError of nothing", result);
  printf("version %d\n", version);
}

// Attributes that the probe does not set are read back by their numbers in cublasLt.h.
typedef LtStatus (*GetAttribute)(const void* object, int attribute, void* value, size_t bytes, size_t* written);

static long long attribute_of(GetAttribute get, const void* object, int attribute, size_t bytes) {
  int64_t value = 0;
  size_t written = 0;
  LtStatus status = get(object, attribute, &value, bytes, &written);
  return status == kLtSuccess && written == bytes ? (long long)value : -1000 - status;
}

static void check_attribute(GetAttribute get, const void* object, int attribute, size_t bytes, long long wanted,
                            const char* what) {
  long long found = attribute_of(get, object, attribute, bytes);
  check(found == wanted, what, found);
}

static void check_cublaslt(void* handle) {
  LtApi api;
  LT_NEEDED(FIND)
  LT_OPTIONAL(FIND)
  GetAttribute of_product = (GetAttribute)find(handle, "cublasLtMatmulDescGetAttribute");
  GetAttribute of_layout = (GetAttribute)find(handle, "cublasLtMatrixLayoutGetAttribute");
  GetAttribute of_preference = (GetAttribute)find(handle, "cublasLtMatmulPreferenceGetAttribute");
  enum { kSize = 8192, kColumnOrder = 0, kNotTransposed = 0, kNoEpilogue = 1 };
  LtProduct product = NULL;
  LtLayout layouts[2] = {NULL, NULL};
  LtPreference preference = NULL;
  uint64_t workspace = 32 << 20;
  size_t version = api.cublasLtGetVersion();
  check(version >= 120000, "cublasLtGetVersion", (long long)version);
  check(strcmp(api.cublasLtGetStatusName(kLtNotSupported), "CUBLAS_STATUS_NOT_SUPPORTED") == 0, "kLtNotSupported",
        kLtNotSupported);
  check(strcmp(api.cublasLtGetStatusName(kLtArchMismatch), "CUBLAS_STATUS_ARCH_MISMATCH") == 0, "kLtArchMismatch",
        kLtArchMismatch);
  check(strcmp(api.cublasLtGetStatusName(kLtSuccess), "CUBLAS_STATUS_SUCCESS") == 0, "kLtSuccess", kLtSuccess);

  LtStatus status = api.cublasLtMatmulDescCreate(&product, kLtCompute32F, kLtTypeFloat);
  check(status == kLtSuccess, "cublasLtMatmulDescCreate", status);
  check_attribute(of_product, product, 0, 4, kLtCompute32F, "CUBLASLT_MATMUL_DESC_COMPUTE_TYPE");
  check_attribute(of_product, product, 1, 4, kLtTypeFloat, "CUBLASLT_MATMUL_DESC_SCALE_TYPE");
  check_attribute(of_product, product, 2, 4, 0, "CUBLASLT_MATMUL_DESC_POINTER_MODE, which is to be the host's");
  check_attribute(of_product, product, 3, 4, kNotTransposed, "CUBLASLT_MATMUL_DESC_TRANSA");
  check_attribute(of_product, product, 4, 4, kNotTransposed, "CUBLASLT_MATMUL_DESC_TRANSB");
  check_attribute(of_product, product, 7, 4, kNoEpilogue, "CUBLASLT_MATMUL_DESC_EPILOGUE");

  const int types[2] = {kLtTypeBfloat16, kLtTypeFloat};
  for (int i = 0; i < 2; ++i) {
    status = api.cublasLtMatrixLayoutCreate(&layouts[i], types[i], kSize, kSize / 2, kSize);
    check(status == kLtSuccess, "cublasLtMatrixLayoutCreate", status);
    check_attribute(of_layout, layouts[i], 0, 4, types[i], "CUBLASLT_MATRIX_LAYOUT_TYPE");
    check_attribute(of_layout, layouts[i], 1, 4, kColumnOrder, "CUBLASLT_MATRIX_LAYOUT_ORDER");
    check_attribute(of_layout, layouts[i], 2, 8, kSize, "CUBLASLT_MATRIX_LAYOUT_ROWS");
    check_attribute(of_layout, layouts[i], 3, 8, kSize / 2, "CUBLASLT_MATRIX_LAYOUT_COLS");
    check_attribute(of_layout, layouts[i], 4, 8, kSize, "CUBLASLT_MATRIX_LAYOUT_LD");
  }
  status = api.cublasLtMatmulPreferenceCreate(&preference);
  check(status == kLtSuccess, "cublasLtMatmulPreferenceCreate", status);
  status = api.cublasLtMatmulPreferenceSetAttribute(preference, kLtMaxWorkspaceBytes, &workspace, sizeof workspace);
  check(status == kLtSuccess, "cublasLtMatmulPreferenceSetAttribute", status);
  check_attribute(of_preference, preference, 1, 8, (long long)workspace, "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES");

  check(api.cublasLtMatmulPreferenceDestroy(preference) == kLtSuccess, "cublasLtMatmulPreferenceDestroy", 0);
  for (int i = 0; i < 2; ++i)
    check(api.cublasLtMatrixLayoutDestroy(layouts[i]) == kLtSuccess, "cublasLtMatrixLayoutDestroy", i);
  check(api.cublasLtMatmulDescDestroy(product) == kLtSuccess, "cublasLtMatmulDescDestroy", 0);
  printf("version %zu\n", version);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  void* handle = dlopen(argv[2], RTLD_LAZY | RTLD_LOCAL);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  if (strcmp(argv[1], "nccl") == 0)
    check_nccl(handle);
  else
    check_cublaslt(handle);
  _exit(failures != 0);
}
