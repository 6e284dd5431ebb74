#include "rendezvous/protocol/proof.h"

#include <sodium/crypto_generichash.h>
#include <sodium/utils.h>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

// Each use of the secret has a purpose of its own, so that the derived keys differ.
constexpr std::string_view kPurpose = "elastic-run agent protocol";
constexpr std::string_view kStatusPurpose = "elastic-run status key";
constexpr std::string_view kOrderPurpose = "elastic-run operator's order";

std::string_view label_of(Side side) {
  switch (side) {
    case Side::kAgent: return "agent";
    case Side::kCoordinator: return "coordinator";
    case Side::kGuardian: return "guardian";
  }
  return {};
}

// BLAKE2b needs no sodium_init(): that only chooses faster code and opens the source of random numbers.
class Hash {
 public:
  explicit Hash(Bytes key) { ELASTIC_CHECK(crypto_generichash_init(&state_, key.data(), key.size(), kSize) == 0); }
  void add(Bytes bytes) { ELASTIC_CHECK(crypto_generichash_update(&state_, bytes.data(), bytes.size()) == 0); }
  void add(std::string_view text) { add(Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())); }
  std::array<std::uint8_t, 32> value() {
    std::array<std::uint8_t, kSize> hash{};
    ELASTIC_CHECK(crypto_generichash_final(&state_, hash.data(), hash.size()) == 0);
    return hash;
  }

 private:
  static constexpr std::size_t kSize = 32;
  crypto_generichash_state state_;
};

std::string hex(const std::array<std::uint8_t, 32>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += format("{:02x}", byte);
  return text;
}

Key key_for(std::string_view purpose, std::string_view secret) {
  Hash hash(Bytes(reinterpret_cast<const std::uint8_t*>(purpose.data()), purpose.size()));
  hash.add(secret);
  return hash.value();
}

}  // namespace

Key key_of(std::string_view secret) { return key_for(kPurpose, secret); }

std::string status_key(std::string_view secret) {
  if (secret.empty()) return {};
  return hex(key_for(kStatusPurpose, secret));
}

std::string order_proof(std::string_view secret, std::string_view challenge, std::string_view target) {
  Hash hash(key_for(kOrderPurpose, secret));
  // The length keeps the two apart.
  hash.add(format("{} {} {}", challenge.size(), challenge, target));
  return hex(hash.value());
}

bool proves_order(std::string_view sent, std::string_view secret, std::string_view challenge, std::string_view target) {
  const std::string proof = order_proof(secret, challenge, target);
  return sent.size() == proof.size() && sodium_memcmp(sent.data(), proof.data(), proof.size()) == 0;
}

Proof prove(const Key& key, Side side, std::initializer_list<Bytes> parts) {
  Hash hash(key);
  hash.add(label_of(side));
  hash.add(std::string_view("\0", 1));
  for (const Bytes part : parts) hash.add(part);
  return hash.value();
}

bool same_proof(const Proof& left, const Proof& right) {
  return sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace elastic::protocol
