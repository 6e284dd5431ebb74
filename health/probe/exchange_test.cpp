#include "health/probe/exchange.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;

namespace {

constexpr std::int64_t kLong = 60000;
constexpr ExchangeSettings kSmall = {.bytes = 1 << 16, .repetitions = 3};
// How many bytes each end sends before its first block: for the clocks, and one word.
constexpr std::size_t kBeforeBlocks = 20 + 20 * 8 + 1;

std::pair<UniqueFd, UniqueFd> stream() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

enum class Fate { kPass, kStall, kCut };

// A relay between the two ends, which sees each byte and may change it, stop, or cut the connection.
class Network {
 public:
  using Rule = std::function<Fate(bool from_leader, std::size_t offset, char& byte)>;

  explicit Network(Rule rule) : rule_(std::move(rule)) {
    auto leader = stream();
    auto follower = stream();
    leader_ = std::move(leader.first);
    follower_ = std::move(follower.first);
    inner_ = {std::move(leader.second), std::move(follower.second)};
    thread_ = std::thread([this] {
      if (carry() == Fate::kCut) inner_ = {};
    });
  }
  ~Network() {
    leader_ = UniqueFd();
    follower_ = UniqueFd();
    thread_.join();
  }

  // Runs both ends of one test.
  std::array<Attempt<ExchangeFigures>, 2> run(const ExchangeSettings& settings, std::int64_t patience_ms = kLong) {
    auto follower = std::async(std::launch::async, [&] {
      auto result = exchange(follower_.get(), 4, 1, settings, Deadline(patience_ms));
      shutdown(follower_.get(), SHUT_RDWR);
      return result;
    });
    auto leader = exchange(leader_.get(), 1, 4, settings, Deadline(patience_ms));
    shutdown(leader_.get(), SHUT_RDWR);
    return {std::move(leader), follower.get()};
  }
  std::size_t bytes(bool from_leader) const { return bytes_[from_leader ? 0 : 1]; }

 private:
  Fate carry() {
    std::array<char, 16384> chunk;
    for (;;) {
      pollfd polled[] = {{inner_[0].get(), POLLIN, 0}, {inner_[1].get(), POLLIN, 0}};
      poll(polled, 2, -1);
      for (const std::size_t from : {0U, 1U}) {
        if (polled[from].revents == 0) continue;
        const ssize_t got = recv(inner_[from].get(), chunk.data(), chunk.size(), 0);
        if (got <= 0) return Fate::kCut;
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
          if (const Fate fate = rule_(from == 0, bytes_[from]++, chunk[i]); fate != Fate::kPass) return fate;
        }
        const ssize_t sent = send(inner_[1 - from].get(), chunk.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
        if (sent != got) return Fate::kCut;
      }
    }
  }

  Rule rule_;
  UniqueFd leader_, follower_;
  std::array<UniqueFd, 2> inner_;
  std::array<std::atomic<std::size_t>, 2> bytes_ = {};
  std::thread thread_;
};

Fate pass(bool, std::size_t, char&) { return Fate::kPass; }

}  // namespace

TEST_CASE("two nodes exchange blocks larger than what the way between them holds, and both have figures") {
  Network network(pass);
  for (const auto& end : network.run({.bytes = std::size_t{8} << 20, .repetitions = 2})) {
    REQUIRE(end);
    CHECK(end->ms > 0);
    CHECK(end->latency_us > 0);
    CHECK(end->latency_us < 1e7);
  }
}

TEST_CASE("the clocks of two ends on one host agree, and one that is ahead is seen from either side") {
  Network same(pass);
  for (const auto& end : same.run(kSmall)) {
    REQUIRE(end);
    CHECK(std::abs(end->clock_ms) < 1000);
  }
  // This is the highest byte of one of the follower's clock values.
  Network ahead([](bool from_leader, std::size_t offset, char& byte) {
    if (!from_leader && offset < 160 && offset % 8 == 7) byte = static_cast<char>(byte | 0x20);
    return Fate::kPass;
  });
  const auto ends = ahead.run(kSmall);
  REQUIRE(ends[0]);
  CHECK(ends[0]->clock_ms == doctest::Approx(0x1p61 / 1e6).epsilon(1e-6));
  Network behind([](bool from_leader, std::size_t offset, char& byte) {
    if (from_leader && offset >= 20 && offset < 180 && (offset - 20) % 8 == 7) byte = 0;
    return Fate::kPass;
  });
  const auto others = behind.run(kSmall);
  REQUIRE(others[1]);
  CHECK(others[1]->clock_ms < -1e9);
}

TEST_CASE("as many blocks go each way as were asked for and one before, or one that counts if that takes too long") {
  for (const auto& [enough_ms, blocks] : {std::pair<std::int64_t, std::size_t>{kLong, 4}, {0, 2}}) {
    Network network(pass);
    const auto ends = network.run({.bytes = kSmall.bytes, .repetitions = 3, .enough_ms = enough_ms});
    CHECK(ends[0].has_value());
    CHECK(ends[1].has_value());
    CHECK(network.bytes(true) == kBeforeBlocks + blocks * (kSmall.bytes + 1));
    CHECK(network.bytes(false) == kBeforeBlocks + blocks * (kSmall.bytes + 1));
  }
}

TEST_CASE("one byte that arrives changed is found by who receives it, and neither end passes") {
  for (const bool changed : {true, false}) {
    for (const std::size_t at : {kBeforeBlocks, kBeforeBlocks + 4 * (kSmall.bytes + 1) - 2}) {
      CAPTURE(changed);
      CAPTURE(at);
      Network network([=](bool from_leader, std::size_t offset, char& byte) {
        if (from_leader == changed && offset == at) byte = static_cast<char>(byte ^ 0x10);
        return Fate::kPass;
      });
      const auto ends = network.run(kSmall);
      REQUIRE(!ends[0]);
      REQUIRE(!ends[1]);
      CHECK(ends[changed ? 1 : 0].error() == "1 byte of the exchange arrived wrong");
    }
  }
}

TEST_CASE("a block that comes twice instead of the next is found") {
  std::string first;
  std::size_t wrong = 0;
  Network network([&](bool from_leader, std::size_t offset, char& byte) {
    if (!from_leader || offset < kBeforeBlocks) return Fate::kPass;
    const std::size_t place = (offset - kBeforeBlocks) % (kSmall.bytes + 1);
    if (place == kSmall.bytes) return Fate::kPass;
    if (offset < kBeforeBlocks + kSmall.bytes) {
      first += byte;
    } else if (std::exchange(byte, first[place]) != first[place]) {
      ++wrong;
    }
    return Fate::kPass;
  });
  const auto ends = network.run(kSmall);
  REQUIRE(!ends[1]);
  CHECK(wrong > kSmall.bytes / 2);
  CHECK(ends[1].error().ends_with(" bytes of the exchange arrived wrong"));
}

TEST_CASE("where the other end is gone, before or in a block, the test fails at once") {
  const std::size_t places[] = {0, 30, kBeforeBlocks + 1000, kBeforeBlocks + kSmall.bytes + 1};
  for (const std::size_t at : places) {
    CAPTURE(at);
    Network network([=](bool, std::size_t offset, char&) { return offset == at ? Fate::kCut : Fate::kPass; });
    for (const auto& end : network.run(kSmall)) {
      REQUIRE(!end);
      const bool is_named =
          end.error() == "it closed the connection during the test" || end.error() == "the connection was reset";
      CHECK_MESSAGE(is_named, end.error());
    }
  }
}

TEST_CASE("where the other end stalls, the test fails at its deadline") {
  for (const std::size_t at : {std::size_t{30}, kBeforeBlocks + 1000}) {
    Network network([=](bool, std::size_t offset, char&) { return offset == at ? Fate::kStall : Fate::kPass; });
    auto ends = network.run({.bytes = std::size_t{4} << 20}, 150);
    // One end gives up first, and the other may then see a closed connection.
    CHECK((ends[0].error() == "the exchange did not end within 0.15 s" ||
           ends[1].error() == "the exchange did not end within 0.15 s"));
    CHECK(!ends[0]);
    CHECK(!ends[1]);
  }
}

TEST_CASE("a leader that says an unknown word, or ends before anything is measured, fails the test") {
  for (const auto& [word, error] : {std::pair('x', "it violates the protocol of the test"),
                                    std::pair('e', "it ended the exchange before anything was measured")}) {
    Network network([said = word](bool from_leader, std::size_t offset, char& byte) {
      if (from_leader && offset == kBeforeBlocks - 1) byte = said;
      return Fate::kPass;
    });
    const auto ends = network.run(kSmall);
    REQUIRE(!ends[1]);
    CHECK(ends[1].error() == error);
    CHECK(!ends[0]);
  }
}
