#include "rendezvous/protocol/munge_messages.h"

#include <doctest/doctest.h>

#include "rendezvous/protocol/limits.h"

namespace elastic::protocol::munge {
namespace {

constexpr std::uint32_t kUs = 1000;

Bytes as_bytes(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

Nonce nonce_of(std::uint8_t byte) {
  Nonce nonce{};
  nonce.fill(byte);
  return nonce;
}

}  // namespace

TEST_CASE("munge: a request and each answer come back as they were, byte by byte") {
  const std::string bytes = bytes_of(Request{"slurm-7.0", "MUNGE:abc:"});
  CHECK(bytes == std::string("\x8Emunge\x00\x01\x00\x00\x00\x14slurm-7.0\nMUNGE:abc:", 32));
  Reader reader;
  for (const char& byte : bytes) {
    CHECK_FALSE(reader.complete());
    REQUIRE(reader.add({reinterpret_cast<const std::uint8_t*>(&byte), 1}));
  }
  CHECK(reader.request() == Request{"slurm-7.0", "MUNGE:abc:"});
  for (const auto kind :
       {Answer::Kind::kCredential, Answer::Kind::kNone, Answer::Kind::kNeeded, Answer::Kind::kRefused}) {
    Reader answers;
    REQUIRE(answers.add(as_bytes(bytes_of(Answer{kind, "a text"}))));
    CHECK(answers.answer() == Answer{kind, "a text"});
  }
}

TEST_CASE("munge: what is none of it, too long or more than was said is not taken, and means nothing") {
  CHECK_FALSE(Reader().add(as_bytes("GET / HTTP/1.1")));
  CHECK_FALSE(
      Reader().add(as_bytes("\x8E"
                            "elastic")));
  std::string bytes = bytes_of(Request{"slurm-7.0", ""});
  CHECK_FALSE(Reader().add(as_bytes(bytes + "x")));
  CHECK_FALSE(Reader().add(as_bytes(bytes_of(Request{"s", std::string(limits::kMungeWordBytes, 'x')}))));
  Reader reader;
  REQUIRE(reader.add(as_bytes(bytes)));
  CHECK(reader.complete());
  CHECK_FALSE(reader.answer());
}

TEST_CASE("munge: a node is believed that runs as the same user in the same step, and no other") {
  const Nonce nonce = nonce_of(0xa5);
  const std::string payload = agent_payload("slurm-7.0", nonce);
  CHECK(judge_agent({payload, kUs}, "slurm-7.0", kUs) == hex(nonce));
  CHECK(judge_agent({payload, 1001}, "slurm-7.0", kUs).error() == "it runs as uid 1001, and this node as uid 1000");
  CHECK(judge_agent({payload, kUs}, "slurm-8.0", kUs).error() ==
        "its credential is of slurm-7.0, and this node is of slurm-8.0");
  for (const std::string& other :
       {std::string(), std::string("hello"), coordinator_payload("slurm-7.0", hex(nonce), "s")}) {
    CHECK(judge_agent({other, kUs}, "slurm-7.0", kUs).error() == "its credential was made for something else");
  }
}

TEST_CASE("munge: a coordinator is believed that runs as the same user in the same step and answers this question") {
  const Nonce nonce = nonce_of(1);
  const std::string payload = coordinator_payload("slurm-7.0", hex(nonce), "secret");
  CHECK(judge_coordinator({payload, kUs}, "slurm-7.0", nonce, kUs) == "secret");
  CHECK_FALSE(judge_coordinator({payload, 0}, "slurm-7.0", nonce, kUs));
  CHECK_FALSE(judge_coordinator({payload, kUs}, "slurm-7.1", nonce, kUs));
  CHECK(judge_coordinator({payload, kUs}, "slurm-7.0", nonce_of(2), kUs).error() ==
        "its credential answers another request");
  // The node gets its own payload back.
  CHECK_FALSE(judge_coordinator({agent_payload("slurm-7.0", nonce), kUs}, "slurm-7.0", nonce, kUs));
  CHECK_FALSE(judge_coordinator({coordinator_payload("slurm-7.0", hex(nonce), ""), kUs}, "slurm-7.0", nonce, kUs));
}

}  // namespace elastic::protocol::munge
