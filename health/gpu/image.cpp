#include "health/gpu/image.h"

#ifdef ELASTIC_NO_GPU_PROBE

namespace elastic::health {

std::span<const std::byte> gpu_probe_image() { return {}; }

}  // namespace elastic::health

#else

// Defined in image.S.
extern "C" const std::byte elastic_gpu_probe_begin[];
extern "C" const std::byte elastic_gpu_probe_end[];

namespace elastic::health {

std::span<const std::byte> gpu_probe_image() { return {elastic_gpu_probe_begin, elastic_gpu_probe_end}; }

}  // namespace elastic::health

#endif
