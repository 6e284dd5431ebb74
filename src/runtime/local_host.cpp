#include "src/runtime/local_host.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>

#include "src/base/address.h"
#include "src/base/check.h"
#include "src/runtime/hosts_file.h"

namespace elastic::runtime {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  ELASTIC_CHECK(getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number));
  return number;
}

protocol::Nonce random_nonce() {
  protocol::Nonce nonce{};
  ELASTIC_CHECK(getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size()));
  return nonce;
}

std::int64_t wall_clock_ms() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
}

int utc_offset_s() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  return localtime_r(&now, &local) == nullptr ? 0 : static_cast<int>(local.tm_gmtoff);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string full_host_name() {
  std::string name = host_name();
  if (name.contains('.')) return name;
  std::ifstream file("/etc/hosts", std::ios::binary);
  const std::string hosts{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string full = full_name_in_hosts(hosts, name);
  return full.empty() ? name : full;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  for (const net::Interface& interface : net::interfaces()) {
    if (interface.up && !interface.loopback) out.push_back(interface.address);
  }
  return out;
}

std::vector<std::string> interfaces_with(const std::string& address, const std::vector<net::Interface>& interfaces) {
  std::vector<std::string> names;
  for (const net::Interface& interface : interfaces) {
    if (same_address(interface.address, address) && std::ranges::count(names, interface.name) == 0) {
      names.push_back(interface.name);
    }
  }
  return names;
}

}  // namespace elastic::runtime
