#pragma once

#include <string>
#include <vector>

#include "health/host/facts.h"

namespace elastic::health {

// Every port of every device of InfiniBand and RoCE, of sysfs below `root`, "" but for tests.
std::vector<InfinibandPort> read_infiniband(const std::string& root);

// Where the PCI device with this bus id hangs ("0000:1b:00.0", or as NVML writes it: "00000000:1B:00.0"). Empty where
// sysfs does not show it.
PciPath read_pci_path(const std::string& root, const std::string& bus_id);

}  // namespace elastic::health
