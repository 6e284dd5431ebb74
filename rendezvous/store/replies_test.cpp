#include "rendezvous/store/replies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rendezvous/store/test_requests.h"

namespace elastic::store {
namespace {

using namespace test;

// Replies that contain short, copied and shared texts, in turn.
struct Mixed {
  LooseBytesPtr loose = std::make_shared<LooseBytes>();
  std::vector<Value> values;
  std::string expected;
  Replies replies;

  Mixed() {
    for (int i = 0; i < 100; ++i) {
      for (const std::size_t size : {std::size_t{3}, std::size_t{2000}, std::size_t{20'000}}) {
        const std::string content(size, static_cast<char>('a' + i % 26));
        values.emplace_back().set(std::string(content), loose);
        expected += text(content);
      }
    }
    for (const Value& value : values) {
      replies.put(value);
      replies.cut_if_long(loose);
    }
  }
};

TEST_CASE("replies are taken in slices of any size, and are the same bytes") {
  for (const std::size_t most : {std::size_t{1000}, std::size_t{4096}, std::size_t{100'000}, std::size_t{1 << 30}}) {
    CAPTURE(most);
    Mixed mixed;
    CHECK(mixed.replies.size() == mixed.expected.size());
    CHECK(mixed.replies.whole() == mixed.expected);
    std::string taken;
    while (!mixed.replies.empty()) {
      const Replies::Slice slice = mixed.replies.take_bytes(most, mixed.loose);
      std::size_t size = 0;
      for (const std::string_view piece : slice.pieces) {
        taken += piece;
        size += piece.size();
      }
      CHECK(size <= most);
      REQUIRE(size > 0);
      if (taken.size() < 100'000) CHECK(mixed.replies.whole() == mixed.expected.substr(taken.size()));
    }
    CHECK(taken == mixed.expected);
  }
}

TEST_CASE("long values are no memory of a reply until the store has them no more") {
  Mixed mixed;
  const std::size_t copies = mixed.loose->count;
  CHECK(copies < 100 * (2000 + 1000));
  mixed.values.clear();
  CHECK(mixed.loose->count > copies + 100 * 20'000);
  CHECK(mixed.replies.loose_bytes() >= mixed.loose->count);
  CHECK(mixed.replies.whole() == mixed.expected);
  mixed.replies = Replies();
  CHECK(mixed.loose->count == 0);
}

}  // namespace
}  // namespace elastic::store
