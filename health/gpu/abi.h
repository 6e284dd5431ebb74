#pragma once

// The types, constants and functions of the CUDA driver, NCCL, cuBLASLt and NVML that we use, for C and C++. They are
// written from the documentation, so that no header of NVIDIA's is needed to build; where such headers are installed,
// tests/gpu/abi_check.cpp compares these declarations with them. The libraries are loaded at run time.
//
// A list names functions as X(result, name, (parameters)). Each list becomes a struct of function pointers (CudaApi,
// ...) and a table of names to look up (probe/libraries.c). A library that lacks a function of a _NEEDED list is not
// used; a pointer of an _OPTIONAL list may be null.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELASTIC_GPU_MEMBER(result, name, parameters) result(*name) parameters;

// --- The CUDA driver: libcuda.so.1 ---------------------------------------------------------------------

typedef int CudaResult;
typedef int CudaDevice;
typedef uint64_t CudaPointer;  // an address in device memory
typedef struct CudaContextObject* CudaContext;
typedef struct CudaStreamObject* CudaStream;
typedef struct CudaEventObject* CudaEvent;
typedef struct {
  char bytes[16];
} CudaUuid;

enum {
  kCudaSuccess = 0,
  kCudaOutOfMemory = 2,
  kCudaStubLibrary = 34,  // the library is the toolkit's stub for linking, not the driver's
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaEccUncorrectable = 214,
  kCudaNvlinkUncorrectable = 220,
  kCudaNotReady = 600,
  kCudaHardwareStack = 714,
  kCudaUnknown = 999,
  kCudaStreamNonBlocking = 1,
};

#define CUDA_NEEDED(X)                                                                                     \
  X(CudaResult, cuInit, (unsigned flags))                                                                  \
  X(CudaResult, cuDriverGetVersion, (int* version))                                                        \
  X(CudaResult, cuGetErrorName, (CudaResult error, const char** name))                                     \
  X(CudaResult, cuDeviceGetCount, (int* count))                                                            \
  X(CudaResult, cuDeviceGet, (CudaDevice * device, int ordinal))                                           \
  X(CudaResult, cuDeviceGetName, (char* name, int length, CudaDevice device))                              \
  X(CudaResult, cuDeviceGetUuid, (CudaUuid * uuid, CudaDevice device))                                     \
  X(CudaResult, cuDeviceGetPCIBusId, (char* id, int length, CudaDevice device))                            \
  X(CudaResult, cuDeviceTotalMem_v2, (size_t * bytes, CudaDevice device))                                  \
  X(CudaResult, cuDevicePrimaryCtxRetain, (CudaContext * context, CudaDevice device))                      \
  X(CudaResult, cuCtxSetCurrent, (CudaContext context))                                                    \
  X(CudaResult, cuMemAlloc_v2, (CudaPointer * pointer, size_t bytes))                                      \
  X(CudaResult, cuMemFree_v2, (CudaPointer pointer))                                                       \
  X(CudaResult, cuMemAllocHost_v2, (void** pointer, size_t bytes))                                         \
  X(CudaResult, cuMemFreeHost, (void* pointer))                                                            \
  X(CudaResult, cuMemcpyHtoDAsync_v2, (CudaPointer to, const void* from, size_t bytes, CudaStream stream)) \
  X(CudaResult, cuMemcpyDtoHAsync_v2, (void* to, CudaPointer from, size_t bytes, CudaStream stream))       \
  X(CudaResult, cuMemcpyDtoDAsync_v2, (CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream)) \
  X(CudaResult, cuMemsetD8Async, (CudaPointer to, unsigned char byte, size_t bytes, CudaStream stream))    \
  X(CudaResult, cuStreamCreate, (CudaStream * stream, unsigned flags))                                     \
  X(CudaResult, cuStreamSynchronize, (CudaStream stream))                                                  \
  X(CudaResult, cuEventCreate, (CudaEvent * event, unsigned flags))                                        \
  X(CudaResult, cuEventDestroy_v2, (CudaEvent event))                                                      \
  X(CudaResult, cuEventRecord, (CudaEvent event, CudaStream stream))                                       \
  X(CudaResult, cuEventQuery, (CudaEvent event))                                                           \
  X(CudaResult, cuEventElapsedTime, (float* milliseconds, CudaEvent start, CudaEvent end))

typedef struct CudaApi {
  CUDA_NEEDED(ELASTIC_GPU_MEMBER)
} CudaApi;

// --- NCCL: libnccl.so.2 --------------------------------------------------------------------------------

typedef int NcclResult;
typedef struct NcclCommObject* NcclComm;

enum { kNcclIdBytes = 128 };

typedef struct {
  char bytes[kNcclIdBytes];
} NcclId;  // passed by value

// The members of ncclConfig_t in NCCL 2.14. A newer NCCL reads as many bytes as `size` says and gives members that are
// newer than `version` their defaults, so this struct works with every NCCL since 2.14.
typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int unset;  // padding in 2.14, a member since 2.17; NCCL_UNSET gives it its default
} NcclConfig;

enum {
  kNcclSuccess = 0,
  kNcclCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
  kNcclInt8 = 0,
};
#define NCCL_CONFIG_MAGIC 0xcafebeefU
#define NCCL_CONFIG_VERSION 21400U
#define NCCL_UNSET INT32_MIN

#define NCCL_NEEDED(X)                                                                           \
  X(NcclResult, ncclGetVersion, (int* version))                                                  \
  X(NcclResult, ncclGetUniqueId, (NcclId * id))                                                  \
  X(NcclResult, ncclCommInitRank, (NcclComm * comm, int ranks, NcclId id, int rank))             \
  X(NcclResult, ncclAllGather,                                                                   \
    (const void* send, void* receive, size_t count, int type, NcclComm comm, CudaStream stream)) \
  X(NcclResult, ncclCommGetAsyncError, (NcclComm comm, NcclResult * error))                      \
  X(NcclResult, ncclCommAbort, (NcclComm comm))                                                  \
  X(NcclResult, ncclCommDestroy, (NcclComm comm))                                                \
  X(const char*, ncclGetErrorString, (NcclResult error))

#define NCCL_OPTIONAL(X)                                                   \
  X(NcclResult, ncclCommInitRankConfig, /* 2.14 */                         \
    (NcclComm * comm, int ranks, NcclId id, int rank, NcclConfig* config)) \
  X(NcclResult, ncclCommFinalize, (NcclComm comm))  /* 2.14 */             \
  X(const char*, ncclGetLastError, (NcclComm comm)) /* 2.13 */

typedef struct NcclApi {
  NCCL_NEEDED(ELASTIC_GPU_MEMBER)
  NCCL_OPTIONAL(ELASTIC_GPU_MEMBER)
} NcclApi;

// --- cuBLASLt: libcublasLt.so.12 and .13 ---------------------------------------------------------------

typedef int LtStatus;
typedef struct LtContextObject* LtHandle;
typedef struct LtProductObject* LtProduct;  // cublasLtMatmulDesc_t
typedef struct LtLayoutObject* LtLayout;
typedef struct LtPreferenceObject* LtPreference;
typedef struct {
  uint64_t data[8];
} LtAlgorithm;
typedef struct {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
} LtHeuristic;

enum {
  kLtSuccess = 0,
  kLtArchMismatch = 8,
  kLtNotSupported = 15,
  kLtCompute32F = 68,
  kLtTypeFloat = 0,
  kLtTypeBfloat16 = 14,
  kLtMaxWorkspaceBytes = 1,  // an attribute of a preference
};

#define LT_NEEDED(X)                                                                                              \
  X(size_t, cublasLtGetVersion, (void))                                                                           \
  X(LtStatus, cublasLtCreate, (LtHandle * handle))                                                                \
  X(LtStatus, cublasLtDestroy, (LtHandle handle))                                                                 \
  X(LtStatus, cublasLtMatmulDescCreate, (LtProduct * product, int compute_type, int scale_type))                  \
  X(LtStatus, cublasLtMatmulDescDestroy, (LtProduct product))                                                     \
  X(LtStatus, cublasLtMatrixLayoutCreate,                                                                         \
    (LtLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                              \
  X(LtStatus, cublasLtMatrixLayoutDestroy, (LtLayout layout))                                                     \
  X(LtStatus, cublasLtMatmulPreferenceCreate, (LtPreference * preference))                                        \
  X(LtStatus, cublasLtMatmulPreferenceSetAttribute,                                                               \
    (LtPreference preference, int attribute, const void* value, size_t bytes))                                    \
  X(LtStatus, cublasLtMatmulPreferenceDestroy, (LtPreference preference))                                         \
  X(LtStatus, cublasLtMatmulAlgoGetHeuristic,                                                                     \
    (LtHandle handle, LtProduct product, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference preference, \
     int wanted, LtHeuristic* found, int* count))                                                                 \
  X(LtStatus, cublasLtMatmul,                                                                                     \
    (LtHandle handle, LtProduct product, const void* alpha, const void* a, LtLayout a_layout, const void* b,      \
     LtLayout b_layout, const void* beta, const void* c, LtLayout c_layout, void* d, LtLayout d_layout,           \
     const LtAlgorithm* algorithm, void* workspace, size_t workspace_bytes, CudaStream stream))

#define LT_OPTIONAL(X) X(const char*, cublasLtGetStatusName, (LtStatus status)) /* 11.4 */

typedef struct LtApi {
  LT_NEEDED(ELASTIC_GPU_MEMBER)
  LT_OPTIONAL(ELASTIC_GPU_MEMBER)
} LtApi;

// --- NVML: libnvidia-ml.so.1 ---------------------------------------------------------------------------

typedef int NvmlResult;
typedef struct NvmlDeviceObject* NvmlDevice;

typedef struct {
  char legacy_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char id[32];
} NvmlPci;

typedef struct {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // with what the driver keeps for itself
} NvmlMemory;

typedef struct {
  unsigned version;  // NVML_MEMORY_V2
  unsigned long long total;
  unsigned long long reserved;  // by the driver
  unsigned long long free;
  unsigned long long used;
} NvmlMemory2;

typedef struct {
  unsigned pid;
  unsigned long long used_bytes;  // NVML_UNKNOWN_BYTES where NVML does not know it
  unsigned gpu_instance;
  unsigned compute_instance;
} NvmlProcess;

typedef union {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_long;
  unsigned long long as_long_long;
  unsigned short as_short;
} NvmlValue;

typedef struct {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  NvmlResult result;
  NvmlValue value;
} NvmlField;

// Percent of the last moments (a sixth of a second to a second) in which a kernel ran, or memory was read or written.
typedef struct {
  unsigned gpu;
  unsigned memory;
} NvmlUtilization;

typedef struct {
  unsigned char cluster[16];
  NvmlResult status;  // valid if `state` is kNvmlFabricCompleted
  unsigned clique;
  unsigned char state;
} NvmlFabric;

enum {
  kNvmlSuccess = 0,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlGpuIsLost = 15,
  kNvmlResetRequired = 16,
  kNvmlUncorrected = 1,     // nvmlMemoryErrorType_t
  kNvmlVolatile = 0,        // nvmlEccCounterType_t: since the driver was loaded
  kNvmlTemperatureGpu = 0,  // nvmlTemperatureSensors_t
  kNvmlMaxLinks = 18,
  kNvmlLinkErrorKinds = 4,         // replay, recovery, CRC of flits, CRC of data
  kNvmlFieldRecoveryAction = 230,  // since driver 570
  kNvmlTypeUnsigned = 1,
  kNvmlRecoveryNone = 0,
  kNvmlRecoveryReset = 1,
  kNvmlRecoveryReboot = 2,
  kNvmlRecoveryDrain = 3,  // no reset, only peer-to-peer traffic has to be drained
  kNvmlRecoveryDrainAndReset = 4,
  kNvmlFabricNotSupported = 0,
  kNvmlFabricNotStarted = 1,
  kNvmlFabricInProgress = 2,
  kNvmlFabricCompleted = 3,
};
#define NVML_MEMORY_V2 (40U | 2U << 24)
#define NVML_UNKNOWN_BYTES (~0ULL)

#define NVML_NEEDED(X)                                    \
  X(NvmlResult, nvmlInit_v2, (void))                      \
  X(const char*, nvmlErrorString, (NvmlResult result))    \
  X(NvmlResult, nvmlDeviceGetCount_v2, (unsigned* count)) \
  X(NvmlResult, nvmlDeviceGetHandleByIndex_v2, (unsigned index, NvmlDevice* device))

#define NVML_OPTIONAL(X)                                                                                           \
  X(NvmlResult, nvmlSystemGetDriverVersion, (char* version, unsigned length))                                      \
  X(NvmlResult, nvmlSystemGetProcessName, (unsigned pid, char* name, unsigned length))                             \
  X(NvmlResult, nvmlDeviceGetName, (NvmlDevice device, char* name, unsigned length))                               \
  X(NvmlResult, nvmlDeviceGetUUID, (NvmlDevice device, char* uuid, unsigned length))                               \
  X(NvmlResult, nvmlDeviceGetPciInfo_v3, (NvmlDevice device, NvmlPci * pci))                                       \
  X(NvmlResult, nvmlDeviceGetTotalEccErrors,                                                                       \
    (NvmlDevice device, int error_type, int counter_type, unsigned long long* count))                              \
  X(NvmlResult, nvmlDeviceGetRemappedRows,                                                                         \
    (NvmlDevice device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending, unsigned* failed))      \
  X(NvmlResult, nvmlDeviceGetMemoryInfo, (NvmlDevice device, NvmlMemory * memory))                                 \
  X(NvmlResult, nvmlDeviceGetMemoryInfo_v2, (NvmlDevice device, NvmlMemory2 * memory))                             \
  X(NvmlResult, nvmlDeviceGetComputeRunningProcesses_v3, (NvmlDevice device, unsigned* count, NvmlProcess* found)) \
  X(NvmlResult, nvmlDeviceGetCurrPcieLinkWidth, (NvmlDevice device, unsigned* width))                              \
  X(NvmlResult, nvmlDeviceGetMaxPcieLinkWidth, (NvmlDevice device, unsigned* width))                               \
  X(NvmlResult, nvmlDeviceGetCurrPcieLinkGeneration, (NvmlDevice device, unsigned* generation))                    \
  X(NvmlResult, nvmlDeviceGetMaxPcieLinkGeneration, (NvmlDevice device, unsigned* generation))                     \
  X(NvmlResult, nvmlDeviceGetNvLinkState, (NvmlDevice device, unsigned link, int* is_active))                      \
  X(NvmlResult, nvmlDeviceGetNvLinkErrorCounter,                                                                   \
    (NvmlDevice device, unsigned link, int kind, unsigned long long* count))                                       \
  X(NvmlResult, nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice device, unsigned long long* reasons))       \
  X(NvmlResult, nvmlDeviceGetPersistenceMode, (NvmlDevice device, int* is_on))                                     \
  X(NvmlResult, nvmlDeviceGetMigMode, (NvmlDevice device, unsigned* current, unsigned* pending))                   \
  X(NvmlResult, nvmlDeviceGetGpuFabricInfo, (NvmlDevice device, NvmlFabric * fabric))                              \
  X(NvmlResult, nvmlDeviceGetTemperature, (NvmlDevice device, int sensor, unsigned* celsius))                      \
  X(NvmlResult, nvmlDeviceGetPowerUsage, (NvmlDevice device, unsigned* milliwatts))                                \
  X(NvmlResult, nvmlDeviceGetUtilizationRates, (NvmlDevice device, NvmlUtilization * percent))                     \
  X(NvmlResult, nvmlDeviceGetFieldValues, (NvmlDevice device, int count, NvmlField* values))

typedef struct NvmlApi {
  NVML_NEEDED(ELASTIC_GPU_MEMBER)
  NVML_OPTIONAL(ELASTIC_GPU_MEMBER)
} NvmlApi;

#undef ELASTIC_GPU_MEMBER

#ifdef __cplusplus
}
#endif
