#pragma once

#include <string>
#include <vector>

#include "health/host/facts.h"

namespace elastic::health {

// Every port of every InfiniBand and RoCE device, from sysfs below `root`, which is "" except in tests.
std::vector<InfinibandPort> read_infiniband(const std::string& root);

// The path to the PCI device with this bus id ("0000:1b:00.0", or as NVML writes it, "00000000:1B:00.0"). Empty where
// sysfs does not show the device.
PciPath read_pci_path(const std::string& root, const std::string& bus_id);

}  // namespace elastic::health
