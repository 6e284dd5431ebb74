#pragma once

#include "rendezvous/protocol/codec.h"
#include "src/process/random.h"

namespace elastic::transport {

// For one session; nobody can guess it.
inline protocol::Nonce random_nonce() {
  protocol::Nonce nonce{};
  process::fill_randomly(nonce);
  return nonce;
}

}  // namespace elastic::transport
