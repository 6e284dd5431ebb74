#include "health/probe/ring.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;

namespace {

constexpr std::int64_t kLong = 60000;
constexpr RingSettings kSmall = {.bytes = 1 << 15, .repetitions = 3, .enough_ms = kLong};

std::pair<UniqueFd, UniqueFd> stream() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

enum class Fate { kPass, kStall, kCut };

// A relay from one member to the next, which sees each byte and may change it, stop, or cut the connection.
class Way {
 public:
  using Rule = std::function<Fate(std::size_t offset, char& byte)>;

  explicit Way(Rule rule) : rule_(std::move(rule)) {
    std::tie(from, in_) = stream();
    std::tie(out_, to) = stream();
    thread_ = std::thread([this] {
      if (carry() == Fate::kStall) return;
      in_ = UniqueFd();
      out_ = UniqueFd();
    });
  }
  ~Way() {
    from = UniqueFd();
    to = UniqueFd();
    thread_.join();
  }
  std::size_t bytes() const { return bytes_; }

  UniqueFd from, to;  // the ends of the two members

 private:
  Fate carry() {
    std::array<char, 16384> chunk;
    for (;;) {
      const ssize_t got = recv(in_.get(), chunk.data(), chunk.size(), 0);
      if (got <= 0) return Fate::kCut;
      for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
        if (const Fate fate = rule_(bytes_++, chunk[i]); fate != Fate::kPass) return fate;
      }
      if (send(out_.get(), chunk.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) return Fate::kCut;
    }
  }

  Rule rule_;
  UniqueFd in_, out_;
  std::atomic<std::size_t> bytes_ = 0;
  std::thread thread_;
};

int rank_of(int place) { return 10 + 2 * place; }

RingOrder order_of(int place, int members) {
  return {.rank = rank_of(place),
          .place = place,
          .members = members,
          .previous = {.with = rank_of((place + members - 1) % members)},
          .next = {.with = rank_of((place + 1) % members)}};
}

// A ring of members, each in a thread of its own. One of them may be missing.
class Members {
 public:
  // `rule` gets the place of the sending member.
  using Rule = std::function<Fate(int from, std::size_t offset, char& byte)>;

  explicit Members(int count, Rule rule = {}, int gone = -1) : gone_(gone) {
    for (int place = 0; place < count; ++place) {
      ways_.push_back(std::make_unique<Way>(
          [rule, place](std::size_t offset, char& byte) { return rule ? rule(place, offset, byte) : Fate::kPass; }));
    }
  }
  std::vector<RingResult> run(const RingSettings& settings, std::int64_t patience_ms = kLong) {
    const int count = static_cast<int>(ways_.size());
    std::vector<std::future<RingResult>> running;
    for (int place = 0; place < count; ++place) {
      const RingOrder order = order_of(place, count);
      running.push_back(std::async(std::launch::async, [this, order, settings, patience_ms] {
        const auto own = static_cast<std::size_t>(order.place);
        const UniqueFd next = std::move(ways_[own]->from);
        const UniqueFd previous = std::move(ways_[(own + ways_.size() - 1) % ways_.size()]->to);
        if (order.place == gone_) return RingResult{.why_not = "gone"};
        return all_gather(previous.get(), next.get(), order, settings, Deadline(patience_ms));
      }));
    }
    std::vector<RingResult> results;
    for (auto& one : running) results.push_back(one.get());
    return results;
  }
  std::size_t bytes(int from) const { return ways_[static_cast<std::size_t>(from)]->bytes(); }

 private:
  int gone_;
  std::vector<std::unique_ptr<Way>> ways_;
};

// The position of a byte of a block among all bytes that a member sends: the words come before it.
std::size_t offset_of(int from, int members, int repetition, int step, std::size_t byte) {
  const std::size_t words = from + 1 == members ? 1 : 2;
  const std::size_t before = static_cast<std::size_t>(members - 1) * kSmall.bytes + words;
  return static_cast<std::size_t>(repetition) * before + words + static_cast<std::size_t>(step - 1) * kSmall.bytes +
         byte;
}

}  // namespace

TEST_CASE("in rings of 2, 3 and 5 nodes blocks larger than what a way holds go around, and all have a time") {
  for (const int count : {2, 3, 5}) {
    Members members(count);
    for (const RingResult& result : members.run({.bytes = std::size_t{2} << 20, .repetitions = 2})) {
      CHECK_MESSAGE(result.ms.value_or(0) > 0, result.why_not);
      CHECK(result.why_not == "");
    }
  }
}

TEST_CASE("two nodes make a ring over one connection") {
  auto [one, other] = stream();
  auto first = std::async(std::launch::async,
                          [&] { return all_gather(one.get(), one.get(), order_of(0, 2), kSmall, Deadline(kLong)); });
  const RingResult second = all_gather(other.get(), other.get(), order_of(1, 2), kSmall, Deadline(kLong));
  CHECK(first.get().ms.value_or(0) > 0);
  CHECK(second.ms.value_or(0) > 0);
}

TEST_CASE("in each all-gather every node passes on all blocks but one; there are as many as asked for and one before") {
  for (const auto& [enough_ms, times] : {std::pair<std::int64_t, std::size_t>{kLong, 4}, {0, 2}}) {
    Members members(4);
    for (const RingResult& result : members.run({.bytes = kSmall.bytes, .repetitions = 3, .enough_ms = enough_ms})) {
      CHECK(result.ms.has_value());
    }
    for (int from = 0; from < 4; ++from) {
      const std::size_t words = from == 3 ? 1 : 2;
      CHECK(members.bytes(from) == times * (words + 3 * kSmall.bytes) + words);
    }
  }
}

TEST_CASE(
    "one byte that is changed on any way is found: at first by who receives it, later by the last that it comes to") {
  constexpr int kMembers = 4;
  for (int from = 0; from < kMembers; ++from) {
    for (const int repetition : {0, 1, 3}) {
      for (int step = 1; step < kMembers; ++step) {
        CAPTURE(from);
        CAPTURE(repetition);
        CAPTURE(step);
        Members members(kMembers, [=](int sender, std::size_t offset, char& byte) {
          if (sender == from && offset == offset_of(from, kMembers, repetition, step, 777))
            byte = static_cast<char>(byte ^ 4);
          return Fate::kPass;
        });
        const int finder = repetition == 0 ? (from + 1) % kMembers : (from - step + kMembers) % kMembers;
        const std::vector<RingResult> results = members.run(kSmall);
        for (int place = 0; place < kMembers; ++place) {
          const RingResult& result = results[static_cast<std::size_t>(place)];
          CHECK(!result.ms);
          CHECK(result.for_others == (place != finder));
          if (place != finder) continue;
          CHECK(result.why_not ==
                format("1 byte from node {} arrived wrong", rank_of((finder + kMembers - 1) % kMembers)));
        }
      }
    }
  }
}

TEST_CASE("a block that comes again in the next all-gather is found") {
  std::string first;
  const std::size_t begin = offset_of(1, 3, 0, 1, 0), again = offset_of(1, 3, 1, 1, 0);
  Members members(3, [&](int from, std::size_t offset, char& byte) {
    if (from != 1) return Fate::kPass;
    if (offset >= begin && offset < begin + kSmall.bytes) first += byte;
    if (offset >= again && offset < again + kSmall.bytes) byte = first[offset - again];
    return Fate::kPass;
  });
  const std::vector<RingResult> results = members.run(kSmall);
  CHECK(results[0].why_not.ends_with(" bytes from node 14 arrived wrong"));
  for (const RingResult& result : results) CHECK(!result.ms);
}

TEST_CASE("where a member is gone, before or in a block, all fail at once, and none takes that for its own") {
  const auto check = [](const RingResult& result) {
    CHECK(!result.ms);
    CHECK(result.for_others);
    const bool is_named = result.why_not.ends_with(": it closed the connection during the test") ||
                          result.why_not.ends_with(": the connection was reset");
    CHECK_MESSAGE(is_named, result.why_not);
  };
  for (const int count : {2, 3, 5}) {
    Members members(count, {}, 1);
    std::vector<RingResult> results = members.run(kSmall);
    results.erase(results.begin() + 1);
    for (const RingResult& result : results) check(result);
    Members cut(count, [=](int from, std::size_t offset, char&) {
      return from == 1 && offset == offset_of(1, count, 1, 1, 1000) ? Fate::kCut : Fate::kPass;
    });
    for (const RingResult& result : cut.run(kSmall)) check(result);
  }
}

TEST_CASE("where a member stalls, the ring fails at its deadline, by the fault of others") {
  Members members(
      3, [](int from, std::size_t offset, char&) { return from == 2 && offset == 1000 ? Fate::kStall : Fate::kPass; });
  bool is_late = false;
  for (const RingResult& result : members.run(kSmall, 150)) {
    CHECK(!result.ms);
    CHECK(result.for_others);
    is_late = is_late || result.why_not.ends_with(": it did not do its part within 0.15 s");
  }
  CHECK(is_late);
}

TEST_CASE("a word that is none, or an end before anything is measured, fails the ring") {
  const std::size_t later = offset_of(0, 3, 2, 1, 0) - 1;
  for (const auto& [at, word] : {std::pair<std::size_t, char>{0, 'x'}, {1, 'x'}, {1, 'e'}, {later, 'x'}}) {
    CAPTURE(at);
    CAPTURE(word);
    Members members(3, [place = at, said = word](int from, std::size_t offset, char& byte) {
      if (from == 0 && offset == place) byte = said;
      return Fate::kPass;
    });
    const std::vector<RingResult> results = members.run(kSmall);
    CHECK(results[1].why_not == "node 10 violates the protocol of the test");
    for (const RingResult& result : results) CHECK(!result.ms);
  }
}
