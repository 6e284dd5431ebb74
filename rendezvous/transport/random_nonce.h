#pragma once

#include "rendezvous/protocol/codec.h"
#include "src/process/random.h"

namespace elastic::transport {

// A nonce for one session, from the kernel's random numbers.
inline protocol::Nonce random_nonce() {
  protocol::Nonce nonce{};
  process::fill_randomly(nonce);
  return nonce;
}

}  // namespace elastic::transport
