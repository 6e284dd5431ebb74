#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/address.h"

namespace elastic::run {

// Where an elastic-run serves HTTP, as --status names it.
struct HttpPlace {
  std::string host;  // a name or a numeric address
  std::uint16_t port = 0;
  // "host0:29400", "[::1]:29400"
  std::string text() const { return with_port(host, port); }
  bool operator==(const HttpPlace&) const = default;
};

// How many redirects a question, or an order, follows.
inline constexpr int kMostHops = 3;

// The place that this text names in the form of HttpPlace::text(); not set: it is none.
std::optional<HttpPlace> place_of(std::string_view text);
// The place of a URL to which an elastic-run has led: "http://10.0.0.2:29400/status".
std::optional<HttpPlace> place_of_url(std::string_view url);

}  // namespace elastic::run
