#include "rendezvous/protocol/frame_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/test_messages.h"

namespace elastic::protocol {
namespace {

using test::Dice;
using test::Maker;
using Step = FrameReader::Step;

constexpr Stamp kStamp = {0x1122334455667788, 0x99AABBCC, 0};

ByteString with_mark(const ByteString& frames) {
  ByteString bytes(kMark.size() + frames.size());
  std::ranges::copy(frames, std::ranges::copy(kMark, bytes.begin()).out);
  return bytes;
}
Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

TEST_CASE("frames come whole from any pieces") {
  std::vector<AgentMessage> messages;
  ByteString bytes;
  Dice dice(1);
  Maker maker(dice);
  for (std::size_t i = 0; i < 40; ++i) {
    messages.push_back(maker.message<AgentMessage>(i));
    append_frame(bytes, kStamp, messages.back());
  }
  bytes = with_mark(bytes);
  for (const std::size_t size : {1u, 2u, 3u, 7u, 21u, 1000u, 100'000u, 10'000'000u}) {
    CAPTURE(size);
    FrameReader reader;
    std::size_t read = 0;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      // The piece has memory of its own, so that sanitizers notice a read beyond it.
      const ByteString piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                             bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + size, bytes.size())));
      Bytes left(piece);
      while (reader.next(left, limits::kAgentFrameBytes) == Step::kFrame) {
        REQUIRE(read < messages.size());
        CHECK((read_frame<AgentMessage>(reader.frame()) == messages[read]));
        ++read;
      }
      CHECK(left.empty());
    }
    CHECK(read == messages.size());
    CHECK(reader.held_bytes() <= 1024);
  }
}

TEST_CASE("memory grows with what has come, not with what is announced") {
  FrameReader reader;
  const ByteString start = with_mark({0x00, 0x04, 0x00, 0x00});  // 256 KiB
  Bytes left(start);
  CHECK(reader.next(left, limits::kAgentFrameBytes) == Step::kNeedMore);
  CHECK(reader.held_bytes() <= 64);
  const ByteString more(5000);
  left = more;
  CHECK(reader.next(left, limits::kAgentFrameBytes) == Step::kNeedMore);
  CHECK(reader.held_bytes() <= 2 * 5004);
}

TEST_CASE("a length is judged as soon as it is there") {
  const auto step_of = [](const ByteString& frame, std::size_t& length) {
    FrameReader reader;
    const ByteString bytes = with_mark(frame);
    Bytes left(bytes);
    const Step step = reader.next(left, 1000);
    CHECK(reader.next(left, 1000) == step);  // the reader stays in this state
    length = reader.length();
    return step;
  };
  std::size_t length = 0;
  CHECK(step_of({0x00, 0x00, 0x03, 0xE8}, length) == Step::kNeedMore);
  CHECK(step_of({0x00, 0x00, 0x03, 0xE9}, length) == Step::kTooLong);
  CHECK(length == 1001);
  CHECK(step_of({0xFF, 0xFF, 0xFF, 0xFF}, length) == Step::kTooLong);
  CHECK(length == 0xFFFFFFFF);
  CHECK(step_of({0x00, 0x00, 0x00, 0x10}, length) == Step::kTooShort);
  CHECK(step_of({0x00, 0x00, 0x00, 0x11}, length) == Step::kNeedMore);
}

TEST_CASE("strangers are known by their first bytes, in one piece or byte by byte") {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> strangers[] = {
      {"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP, not"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "it speaks HTTP/2 (gRPC, etcd), not"},
      {"HTTP/1.1 400 Bad Request\r\n", "it speaks HTTP, not"},
      {"SSH-2.0-OpenSSH_9.2", "it speaks SSH, not"},
      {"\x16\x03\x01\x02\x00\x01"s, "it speaks TLS, not"},
      {"\x00\xCE\xF7\x85\x3C\x0D"s, "it speaks PyTorch's TCPStore protocol, not"},
      {"\x03\x05\x00\x00"s, "it does not speak elastic-run's agent protocol (first bytes 03 05 00 00)"},
      {"\x8E"
       "elastiC",
       "it does not speak elastic-run's agent protocol (first bytes 8e 65 6c 61 73 74 69 43)"},
  };
  for (const auto& [bytes, text] : strangers) {
    CAPTURE(text);
    FrameReader reader;
    Bytes left = bytes_of(bytes);
    CHECK(reader.next(left, 1000) == Step::kStranger);
    CHECK(reader.stranger().starts_with(text));
    CHECK(reader.next(left, 1000) == Step::kStranger);
    FrameReader slow;
    Step step = Step::kNeedMore;
    for (std::size_t i = 0; i < bytes.size() && step == Step::kNeedMore; ++i) {
      Bytes byte = bytes_of(bytes).subspan(i, 1);
      step = slow.next(byte, 1000);
    }
    CHECK(step == Step::kStranger);
  }
}

}  // namespace
}  // namespace elastic::protocol
