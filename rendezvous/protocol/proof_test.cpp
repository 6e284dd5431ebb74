#include "rendezvous/protocol/proof.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/text.h"

namespace elastic::protocol {
namespace {

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += format("{:02x}", byte);
  return text;
}
Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// Python gives the same: hashlib.blake2b(b"secret", key=b"elastic-run agent protocol", digest_size=32).
TEST_CASE("a key is a hash of the secret, whatever its length") {
  CHECK(hex(key_of("secret")) == "20cca3862bdd90eb3d26ec6a867c96897f1e0ae2c06ef46c97f548616781bbde");
  CHECK(hex(key_of("")) == "ff2b242ab295300e61b658598d1381d356bad3fbe95d820ab396a79634c9f843");
  CHECK(key_of(std::string(100'000, 's')) != key_of(std::string(100'001, 's')));
}

// hashlib.blake2b(b"secret", key=b"elastic-run status key", digest_size=32).hexdigest()
TEST_CASE("a status key is another hash of the secret, and none of no secret") {
  CHECK(status_key("secret") == "1810466b1421f44da4dabe8d865b29a364a7d55f13d6a524e1afc5c31633e428");
  CHECK(status_key("secret") != hex(key_of("secret")));
  CHECK(status_key("").empty());
}

// key = hashlib.blake2b(b"secret", key=b"elastic-run operator's order", digest_size=32).digest()
// hashlib.blake2b(b"4 c0de /drain?node=3", key=key, digest_size=32).hexdigest()
TEST_CASE("an order's proof is of its secret, its challenge and its target") {
  const std::string proof = order_proof("secret", "c0de", "/drain?node=3");
  CHECK(proof == "057a1abfc48564f7d323e790a372828be7a86396022163410dacdf6810a17ed8");
  CHECK(proves_order(proof, "secret", "c0de", "/drain?node=3"));
  CHECK(!proves_order(proof, "other", "c0de", "/drain?node=3"));
  CHECK(!proves_order(proof, "secret", "c0d", "e /drain?node=3"));
  CHECK(!proves_order(proof, "secret", "c0de", "/drain?node=4"));
  CHECK(!proves_order(proof.substr(1), "secret", "c0de", "/drain?node=3"));
  CHECK(!proves_order("", "secret", "c0de", "/drain?node=3"));
}

// hashlib.blake2b(b"agent\0onetwo", key=key_of("secret"), digest_size=32).
TEST_CASE("a proof is a keyed hash of the side's name and the parts") {
  const Key key = key_of("secret");
  const Bytes one = bytes_of("one"), two = bytes_of("two");
  CHECK(hex(prove(key, Side::kAgent, {one, two})) ==
        "5139d86fe2b2205fe73df43a02b3ae4158d9c7d347a8e931dc4170d40d687afa");
  CHECK(hex(prove(key, Side::kCoordinator, {one, two})) ==
        "3bfcc8d19bc0e456d4ef46c5dd02f5cb7dc285fac0466ea889fe15be5fe0c66b");
  CHECK(hex(prove(key, Side::kGuardian, {one, two})) ==
        "d794d14a5394b8ff12821611efa95e851ec858b4a8cb66ab9df8f726e3749a4c");
}

TEST_CASE("proofs are the same only where each byte is") {
  const Proof proof = prove(key_of("secret"), Side::kAgent, {});
  CHECK(same_proof(proof, proof));
  for (std::size_t i = 0; i < proof.size(); ++i) {
    Proof other = proof;
    other[i] ^= 0x40;
    CHECK_FALSE(same_proof(proof, other));
  }
}

}  // namespace
}  // namespace elastic::protocol
