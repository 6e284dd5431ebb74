#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elastic::process {

// Names the process that listens on a TCP port of this host: "process 4711 (python)", as far as /proc shows it to this
// user; none if no listening socket is seen. A socket whose owner may not be seen gives "another user's process (uid
// 1000)".
std::optional<std::string> port_holder(std::uint16_t port);

}  // namespace elastic::process
