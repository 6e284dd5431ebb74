#pragma once

#include <string>
#include <vector>

#include "src/base/address.h"

namespace elastic::net {

using elastic::is_loopback;
using elastic::without_mapping;

// One address of one network interface of this host.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // numeric, IPv4 or IPv6, without a scope
  bool loopback = false;
  bool up = false;
};

// Lists all addresses of all interfaces in this process's network namespace, in the system's order. An
// interface with several addresses has several entries, one without any has none. Empty, after one warning in the log,
// where the system call fails (no descriptor is left).
std::vector<Interface> interfaces();

}  // namespace elastic::net
