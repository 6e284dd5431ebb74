#pragma once

#include <cstddef>
#include <span>

namespace elastic::health {

// The program elastic-gpu-probe, a whole ELF file that is contained in elastic-run; it is written to a memfd or a file
// and executed. Empty where there is none for this processor.
std::span<const std::byte> gpu_probe_image();

}  // namespace elastic::health
