#include "rendezvous/protocol/binary_archive.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/json_archive.h"

namespace elastic::protocol {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };
constexpr auto names_of(Colour) { return std::array{"red", "green"}; }

// What a later version adds is one line of a list, here `colour` of a part, and `why` of the message.
struct Part {
  std::uint16_t port = 0;
  Colour colour = Colour::kRed;
  bool operator==(const Part&) const = default;
  static void fields(auto& io, auto& v) {
    io("port", v.port);
    io.if_set("colour", v.colour);
  }
};
// The same as an earlier version has it.
struct OldPart {
  std::uint16_t port = 0;
  bool operator==(const OldPart&) const = default;
  static void fields(auto& io, auto& v) { io("port", v.port); }
};
template <class PartOfVersion>
struct MessageOf {
  RoundNumber round = 0;
  std::optional<PartOfVersion> part = {};
  std::vector<PartOfVersion> parts = {};
  std::string why = {};
  bool operator==(const MessageOf&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("part", v.part);
    io("parts", v.parts, at_most(2));
    io.if_set("why", v.why, at_most(4));
  }
};
using Message = MessageOf<Part>;
using OldMessage = MessageOf<OldPart>;

template <class T>
ByteString bytes_of(const T& message) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  T::fields(writer, message);
  return bytes;
}

template <class T = Message>
T read_back(const ByteString& bytes, std::size_t size, const char* error = "") {
  T message;
  BinaryReader reader(Bytes(bytes).first(size), BinaryReader::Ending::kMayBeEarly);
  T::fields(reader, message);
  CHECK(reader.error() == error);
  return message;
}

const Message kMessage = {.round = 7, .part = Part{258, Colour::kGreen}, .parts = {{3}}, .why = "no"};

TEST_CASE("one list of fields makes a message's bytes and its JSON, and reads both") {
  const ByteString bytes = bytes_of(kMessage);
  CHECK(bytes == ByteString{1, 0, 0, 0, 3, 1, 2, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 3, 0, 0, 0, 0, 2, 'n', 'o'});
  Message expected = kMessage;
  expected.round = 0;  // the stamp has it
  CHECK(read_back(bytes, bytes.size()) == expected);

  const Json json = write_json(kMessage, JsonForm::kExact);
  CHECK(json.dump() ==
        R"({"round":7,"part":{"port":258,"colour":"green"},"parts":[{"port":3,"colour":null}],"why":"no"})");
  Message read;
  CHECK(read_json(json, read, JsonForm::kExact).empty());
  CHECK(read == kMessage);
}

TEST_CASE("what a later version adds to a part is passed over by an earlier one, and what that lacks keeps its value") {
  const OldMessage old = {.part = OldPart{258}, .parts = {{3}, {4}}, .why = "no"};
  const Message now = {
      .part = Part{258, Colour::kGreen}, .parts = {{3, Colour::kGreen}, {4, Colour::kGreen}}, .why = "no"};
  const ByteString sent_now = bytes_of(now), sent_then = bytes_of(old);
  CHECK(read_back<OldMessage>(sent_now, sent_now.size()) == old);
  CHECK(read_back(sent_then, sent_then.size()) == Message{.part = Part{258}, .parts = {{3}, {4}}, .why = "no"});
}

// What a message ends with that most senders do not use.
struct Asked {
  std::uint8_t number = 0;
  std::optional<Part> part = {};
  bool operator==(const Asked&) const = default;
  static void fields(auto& io, auto& v) {
    io("number", v.number);
    io.at_end("part", v.part);
  }
};

TEST_CASE("a message ends before a last member that is not set, and JSON has it only where it is") {
  const Asked without{.number = 5}, with{.number = 5, .part = Part{258}};
  CHECK(bytes_of(without) == ByteString{5});
  CHECK(bytes_of(with) == ByteString{5, 1, 0, 0, 0, 3, 1, 2, 0});
  for (const Asked& asked : {without, with}) {
    const ByteString bytes = bytes_of(asked);
    CHECK(read_back<Asked>(bytes, bytes.size()) == asked);
    Asked read;
    CHECK(read_json(write_json(asked, JsonForm::kExact), read, JsonForm::kExact).empty());
    CHECK(read == asked);
  }
  CHECK(write_json(without, JsonForm::kForgiving).dump() == R"({"number":5})");
}

TEST_CASE("a part whose size does not hold is named") {
  const ByteString bytes = bytes_of(kMessage);
  CHECK(read_back(bytes, 8).why.empty());  // the message ends behind its first part
  for (const std::size_t size : {2U, 4U, 7U, 11U}) read_back(bytes, size, "it ends in the middle of a field");
  ByteString wrong = bytes;
  wrong[4] = 1;  // the part ends in the middle of its port
  read_back(wrong, wrong.size(), "it ends in the middle of a field");
  wrong[4] = 200;
  read_back(wrong, wrong.size(), "it ends in the middle of a field");
  wrong = bytes;
  wrong[7] = 2;
  read_back(wrong, wrong.size(), "an enumeration has the value 2");
}

}  // namespace
}  // namespace elastic::protocol
