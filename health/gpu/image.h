#pragma once

#include <cstddef>
#include <span>

namespace elastic::health {

// elastic-gpu-probe as it lies in elastic-run: a whole ELF file, to be written to a memfd or a file and executed. Empty
// where there is none for the processor.
std::span<const std::byte> gpu_probe_image();

}  // namespace elastic::health
