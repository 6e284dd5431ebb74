// Compares health/gpu/abi.h with the headers of CUDA, cuBLASLt, NCCL and NVML, as far as HAVE_CUDA, HAVE_NCCL and
// HAVE_NVML say that they are there. It is only compiled, by tests/structure/test_gpu_abi.py, and never run.
#include <cstddef>
#include <type_traits>

#include "health/gpu/abi.h"

#ifdef HAVE_CUDA
#define __CUDA_API_VERSION_INTERNAL  // declares the functions by their exported names
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL
#include <cublasLt.h>
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#endif
#ifdef HAVE_NVML
#include <nvml.h>
#endif

namespace {

// Whether values of both types are passed to a function in the same way.
template <class Ours, class Theirs>
struct Same;

template <class Type>
concept Opaque = std::is_void_v<Type> || !requires {
  sizeof(Type);
};

template <class Ours, class Theirs>
constexpr bool same_pointee() {
  if constexpr (Opaque<Ours> || Opaque<Theirs>) {
    return true;
  } else {
    return Same<std::remove_cv_t<Ours>, std::remove_cv_t<Theirs>>::value;
  }
}

template <class Ours, class Theirs>
constexpr bool same_value() {
  if constexpr (std::is_function_v<std::remove_pointer_t<Ours>>) {
    return false;  // functions with the same number of parameters are compared by the Same below
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    return same_pointee<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  } else if constexpr (std::is_enum_v<Theirs> && std::is_integral_v<Ours>) {
    return sizeof(Ours) == sizeof(Theirs);
  } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    // Where the first member of a struct is its size, our struct may have only the first members of theirs.
    return (sizeof(Ours) == sizeof(Theirs) || std::is_same_v<Ours, NcclConfig>)&&alignof(Ours) == alignof(Theirs);
  } else {
    return std::is_same_v<Ours, Theirs>;
  }
}

template <class Ours, class Theirs>
struct Same : std::bool_constant<same_value<Ours, Theirs>()> {};

template <class R1, class... P1, class R2, class... P2>
requires(sizeof...(P1) == sizeof...(P2)) struct Same<R1 (*)(P1...), R2 (*)(P2...)>
    : std::bool_constant<Same<R1, R2>::value && (Same<P1, P2>::value && ...)> {
};

#define SIGNATURE(result, name, parameters) \
  static_assert(Same<result(*) parameters, decltype(&::name)>::value, #name " has other parameters");
#define EQUAL(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #ours);
#define MEMBER(our_type, ours, their_type, theirs)                          \
  static_assert(offsetof(our_type, ours) == offsetof(their_type, theirs) && \
                    sizeof(our_type::ours) == sizeof(their_type::theirs),   \
                #our_type "." #ours);
#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #ours);

#ifdef HAVE_CUDA
CUDA_NEEDED(SIGNATURE)
EQUAL(kCudaSuccess, CUDA_SUCCESS)
EQUAL(kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
EQUAL(kCudaStubLibrary, CUDA_ERROR_STUB_LIBRARY)
EQUAL(kCudaNoDevice, CUDA_ERROR_NO_DEVICE)
EQUAL(kCudaInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
EQUAL(kCudaEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
EQUAL(kCudaNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
EQUAL(kCudaNotReady, CUDA_ERROR_NOT_READY)
EQUAL(kCudaHardwareStack, CUDA_ERROR_HARDWARE_STACK_ERROR)
EQUAL(kCudaUnknown, CUDA_ERROR_UNKNOWN)
EQUAL(kCudaStreamNonBlocking, CU_STREAM_NON_BLOCKING)
SIZE(CudaUuid, CUuuid)
SIZE(CudaPointer, CUdeviceptr)

LT_NEEDED(SIGNATURE)
LT_OPTIONAL(SIGNATURE)
EQUAL(kLtSuccess, CUBLAS_STATUS_SUCCESS)
EQUAL(kLtArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH)
EQUAL(kLtNotSupported, CUBLAS_STATUS_NOT_SUPPORTED)
EQUAL(kLtCompute32F, CUBLAS_COMPUTE_32F)
EQUAL(kLtTypeFloat, CUDA_R_32F)
EQUAL(kLtTypeBfloat16, CUDA_R_16BF)
EQUAL(kLtMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
SIZE(LtAlgorithm, cublasLtMatmulAlgo_t)
SIZE(LtHeuristic, cublasLtMatmulHeuristicResult_t)
MEMBER(LtHeuristic, algorithm, cublasLtMatmulHeuristicResult_t, algo)
MEMBER(LtHeuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize)
MEMBER(LtHeuristic, state, cublasLtMatmulHeuristicResult_t, state)
MEMBER(LtHeuristic, waves, cublasLtMatmulHeuristicResult_t, wavesCount)
#endif

#ifdef HAVE_NCCL
NCCL_NEEDED(SIGNATURE)
NCCL_OPTIONAL(SIGNATURE)
EQUAL(kNcclIdBytes, NCCL_UNIQUE_ID_BYTES)
EQUAL(kNcclSuccess, ncclSuccess)
EQUAL(kNcclCudaError, ncclUnhandledCudaError)
EQUAL(kNcclSystemError, ncclSystemError)
EQUAL(kNcclInternalError, ncclInternalError)
EQUAL(kNcclInvalidArgument, ncclInvalidArgument)
EQUAL(kNcclInvalidUsage, ncclInvalidUsage)
EQUAL(kNcclRemoteError, ncclRemoteError)
EQUAL(kNcclInProgress, ncclInProgress)
EQUAL(kNcclInt8, ncclInt8)
EQUAL(NCCL_UNSET, NCCL_CONFIG_UNDEF_INT)
SIZE(NcclId, ncclUniqueId)
MEMBER(NcclConfig, size, ncclConfig_t, size)
MEMBER(NcclConfig, magic, ncclConfig_t, magic)
MEMBER(NcclConfig, version, ncclConfig_t, version)
MEMBER(NcclConfig, blocking, ncclConfig_t, blocking)
MEMBER(NcclConfig, unset, ncclConfig_t, cgaClusterSize)
constexpr unsigned magic_of_theirs(ncclConfig_t config = NCCL_CONFIG_INITIALIZER) { return config.magic; }
EQUAL(NCCL_CONFIG_MAGIC, magic_of_theirs())
#endif

#ifdef HAVE_NVML
NVML_NEEDED(SIGNATURE)
NVML_OPTIONAL(SIGNATURE)
EQUAL(kNvmlSuccess, NVML_SUCCESS)
EQUAL(kNvmlInvalidArgument, NVML_ERROR_INVALID_ARGUMENT)
EQUAL(kNvmlNotSupported, NVML_ERROR_NOT_SUPPORTED)
EQUAL(kNvmlNotFound, NVML_ERROR_NOT_FOUND)
EQUAL(kNvmlInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE)
EQUAL(kNvmlGpuIsLost, NVML_ERROR_GPU_IS_LOST)
EQUAL(kNvmlResetRequired, NVML_ERROR_RESET_REQUIRED)
EQUAL(kNvmlUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
EQUAL(kNvmlVolatile, NVML_VOLATILE_ECC)
EQUAL(kNvmlTemperatureGpu, NVML_TEMPERATURE_GPU)
EQUAL(kNvmlMaxLinks, NVML_NVLINK_MAX_LINKS)
EQUAL(kNvmlLinkErrorKinds, NVML_NVLINK_ERROR_DL_ECC_DATA)
EQUAL(kNvmlFieldRecoveryAction, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
EQUAL(kNvmlTypeUnsigned, NVML_VALUE_TYPE_UNSIGNED_INT)
EQUAL(kNvmlRecoveryNone, NVML_GPU_RECOVERY_ACTION_NONE)
EQUAL(kNvmlRecoveryReset, NVML_GPU_RECOVERY_ACTION_GPU_RESET)
EQUAL(kNvmlRecoveryReboot, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT)
EQUAL(kNvmlRecoveryDrain, NVML_GPU_RECOVERY_ACTION_DRAIN_P2P)
EQUAL(kNvmlRecoveryDrainAndReset, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
EQUAL(kNvmlFabricNotSupported, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED)
EQUAL(kNvmlFabricNotStarted, NVML_GPU_FABRIC_STATE_NOT_STARTED)
EQUAL(kNvmlFabricInProgress, NVML_GPU_FABRIC_STATE_IN_PROGRESS)
EQUAL(kNvmlFabricCompleted, NVML_GPU_FABRIC_STATE_COMPLETED)
EQUAL(NVML_MEMORY_V2, nvmlMemory_v2)
SIZE(NvmlPci, nvmlPciInfo_t)
MEMBER(NvmlPci, domain, nvmlPciInfo_t, domain)
MEMBER(NvmlPci, bus, nvmlPciInfo_t, bus)
MEMBER(NvmlPci, device, nvmlPciInfo_t, device)
MEMBER(NvmlPci, id, nvmlPciInfo_t, busId)
SIZE(NvmlMemory, nvmlMemory_t)
MEMBER(NvmlMemory, total, nvmlMemory_t, total)
MEMBER(NvmlMemory, used, nvmlMemory_t, used)
SIZE(NvmlMemory2, nvmlMemory_v2_t)
MEMBER(NvmlMemory2, version, nvmlMemory_v2_t, version)
MEMBER(NvmlMemory2, total, nvmlMemory_v2_t, total)
MEMBER(NvmlMemory2, used, nvmlMemory_v2_t, used)
SIZE(NvmlProcess, nvmlProcessInfo_t)
MEMBER(NvmlProcess, pid, nvmlProcessInfo_t, pid)
MEMBER(NvmlProcess, used_bytes, nvmlProcessInfo_t, usedGpuMemory)
EQUAL(NVML_UNKNOWN_BYTES, NVML_VALUE_NOT_AVAILABLE)
SIZE(NvmlField, nvmlFieldValue_t)
MEMBER(NvmlField, field, nvmlFieldValue_t, fieldId)
MEMBER(NvmlField, scope, nvmlFieldValue_t, scopeId)
MEMBER(NvmlField, type, nvmlFieldValue_t, valueType)
MEMBER(NvmlField, result, nvmlFieldValue_t, nvmlReturn)
MEMBER(NvmlField, value, nvmlFieldValue_t, value)
SIZE(NvmlUtilization, nvmlUtilization_t)
MEMBER(NvmlUtilization, gpu, nvmlUtilization_t, gpu)
MEMBER(NvmlUtilization, memory, nvmlUtilization_t, memory)
SIZE(NvmlFabric, nvmlGpuFabricInfo_t)
MEMBER(NvmlFabric, status, nvmlGpuFabricInfo_t, status)
MEMBER(NvmlFabric, state, nvmlGpuFabricInfo_t, state)
#endif

}  // namespace
