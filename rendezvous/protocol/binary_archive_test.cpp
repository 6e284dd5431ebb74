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

// What a later version adds to a message is one line of its list, here `colour` of a part, and `why` of the message.
struct Part {
  std::uint16_t port = 0;
  Colour colour = Colour::kRed;
  bool operator==(const Part&) const = default;
  static void fields(auto& io, auto& v) {
    io("port", v.port);
    io.late("colour", v.colour);
  }
};
struct Message {
  RoundNumber round = 0;
  std::optional<Part> part = {};
  std::vector<Part> parts = {};
  std::string why = {};
  bool operator==(const Message&) const = default;
  static void fields(auto& io, auto& v) {
    io.leads("why");
    io.stamped("round", v.round);
    io("part", v.part);
    io("parts", v.parts, at_most(2));
    io.if_set("why", v.why, at_most(4));
  }
};

ByteString bytes_of(const Message& message) {
  ByteString bytes;
  BinaryWriter(bytes).message(message);
  return bytes;
}

Message read_back(const ByteString& bytes, std::size_t size, const char* error = "") {
  Message message;
  BinaryReader reader(Bytes(bytes).first(size), BinaryReader::Ending::kMayBeEarly);
  reader.message(message);
  CHECK(reader.error() == error);
  return message;
}

const Message kMessage = {.round = 7, .part = Part{258, Colour::kGreen}, .parts = {{3}}, .why = "no"};

TEST_CASE("one list of fields makes a message's bytes and its JSON, and reads both") {
  const ByteString bytes = bytes_of(kMessage);
  CHECK(bytes == ByteString{1, 1, 2, 0, 0, 0, 1, 0, 3, 0, 0, 0, 2, 'n', 'o', 1});
  Message expected = kMessage;
  expected.round = 0;  // the stamp has it
  CHECK(read_back(bytes, bytes.size()) == expected);

  const Json json = write_json(kMessage, JsonForm::kExact);
  CHECK(json.dump() ==
        R"({"why":"no","round":7,"part":{"port":258,"colour":"green"},"parts":[{"port":3,"colour":null}]})");
  Message read;
  CHECK(read_json(json, read, JsonForm::kExact).empty());
  CHECK(read == kMessage);
}

TEST_CASE("late fields stand behind the whole message, and an older sender's message ends before them") {
  const ByteString bytes = bytes_of(kMessage);
  CHECK(read_back(bytes, bytes.size() - 1).part == Part{258, Colour::kRed});
  CHECK(read_back(bytes, 9).why.empty());
  read_back(bytes, 8, "it ends in the middle of a field");
  read_back(bytes, bytes.size() - 2, "it ends in the middle of a field");
  ByteString wrong = bytes;
  wrong.back() = 2;
  read_back(wrong, wrong.size(), "an enumeration has the value 2");
}

}  // namespace
}  // namespace elastic::protocol
