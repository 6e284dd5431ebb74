#include "src/base/address.h"

#include "src/base/text.h"

namespace elastic {
namespace {

constexpr std::string_view kMapped = "::ffff:";

std::string_view without_scope(std::string_view address) { return address.substr(0, address.find('%')); }

}  // namespace

std::string without_mapping(std::string_view address) {
  const bool mapped = lower(address.substr(0, kMapped.size())) == kMapped && address.contains('.');
  return std::string(mapped ? address.substr(kMapped.size()) : address);
}

bool is_loopback(std::string_view address) {
  const std::string plain = without_mapping(address);
  return plain.starts_with("127.") || plain == "::1";
}

bool is_unspecified(std::string_view address) {
  const std::string plain = without_mapping(address);
  return plain == "0.0.0.0" || plain == "::";
}

std::string plain_address(std::string_view address) { return lower(without_scope(without_mapping(address))); }

bool same_address(std::string_view left, std::string_view right) { return plain_address(left) == plain_address(right); }

std::string with_port(std::string_view host, std::uint16_t port) {
  return host.contains(':') ? format("[{}]:{}", host, port) : format("{}:{}", printable(host), port);
}

}  // namespace elastic
