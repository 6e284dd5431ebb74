#pragma once

#include <cstdint>

namespace elastic::run {

// Serves one worker store on all addresses until SIGTERM, SIGINT, SIGHUP or SIGQUIT comes; port 0 takes a
// free one. Tells the port on stderr. Returns the exit status: 0 when it was told to end, 1 where the port
// cannot be had.
int serve_store(std::uint16_t port);

}  // namespace elastic::run
