#pragma once

#include <cstdint>
#include <string>

#include "src/base/text.h"

namespace elastic::run {

// Where an elastic-run serves HTTP, as --status names it.
struct HttpPlace {
  std::string host;  // a name or a numeric address
  std::uint16_t port = 0;
  // "host0:29400", "[::1]:29400"
  std::string text() const {
    return host.contains(':') ? format("[{}]:{}", host, port) : format("{}:{}", printable(host), port);
  }
};

}  // namespace elastic::run
