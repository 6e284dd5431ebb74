#pragma once

#include <cstdint>

namespace elastic::run {

// Serves one worker store on all addresses until SIGTERM, SIGINT, SIGHUP or SIGQUIT arrives; port 0: a
// free one. Prints the port to stderr. Returns the exit status: 0 after a signal, 1 where the port
// cannot be opened.
int serve_store(std::uint16_t port);

}  // namespace elastic::run
