#include "health/tuning/paral_config.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::tuning;

namespace {

// As DLRover's ElasticDataLoader leaves it, whose own batch size is 32.
constexpr const char* kSaid = R"({"dataloader": {"batch_size": 32, "dataloader_name": "", "last_batch_size": 0,
  "num_workers": 0, "pin_memory": 1, "version": 2, "of_the_user": [1]},
  "optimizer": {"learning_rate": 0.01, "optimizer_name": "adam", "version": 1, "weight_decay": 0.5},
  "restart": false})";

// The text with some bytes and numbers replaced, left out or doubled, from `seed`.
std::string mutated(std::string text, std::uint64_t seed) {
  constexpr std::array kPieces = {"{",
                                  "}",
                                  "[",
                                  "]",
                                  "\"",
                                  ":",
                                  ",",
                                  "-1",
                                  "1e300",
                                  "NaN",
                                  "null",
                                  "1e999",
                                  "-0.",
                                  "\xff",
                                  "\\ud8",
                                  "4294967296",
                                  "1000000001",
                                  "1e-320",
                                  "9223372036854775807",
                                  "9223372036854775808",
                                  "-9223372036854775809"};
  const auto below = [&seed](std::size_t bound) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(seed >> 33) % bound;
  };
  for (std::size_t count = 1 + below(3); count > 0; --count) {
    const std::size_t at = below(text.size());
    const std::size_t digit = text.find_first_of("0123456789", at);
    const std::string piece = kPieces[below(kPieces.size())];
    switch (below(5)) {
      case 0: text.replace(at, 1, piece); break;
      case 1: text.erase(at, 1 + below(16)); break;
      case 2: text.insert(at, text.substr(below(text.size()), below(64))); break;
      case 3: text.resize(at + 1); break;
      default:
        if (digit != std::string::npos) {
          text.replace(digit, text.find_first_not_of("0123456789.", digit) - digit, piece);
        }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("the first file is DLRover's, with nothing said") {
  CHECK(first_config() == R"({
    "dataloader": {
        "batch_size": 0,
        "dataloader_name": "",
        "last_batch_size": 0,
        "num_workers": 0,
        "pin_memory": 0,
        "version": 0
    },
    "optimizer": {
        "learning_rate": 0.0,
        "optimizer_name": "",
        "version": 0,
        "weight_decay": 0.0
    },
    "restart": false
})");
  CHECK(read_config(first_config()) == ParalConfig{});
}

TEST_CASE("what loaders and scripts say is read") {
  CHECK(read_config(kSaid) ==
        ParalConfig{.version = 2, .batch = 32, .optimizer_version = 1, .learning_rate = 0.01, .weight_decay = 0.5});
  CHECK(read_config(R"({"dataloader": {"num_workers": 3}})")->workers == 3);
  // Only a loader with a name can say that it has no worker.
  CHECK(!read_config(R"({"dataloader": {"num_workers": 0}})")->workers);
  CHECK(read_config(R"({"dataloader": {"num_workers": 0, "dataloader_name": "train"}})")->workers == 0);
}

TEST_CASE("an order changes what it names, and leaves the rest") {
  const std::string text = with_order(
      kSaid,
      {.version = 3, .workers = 4, .batch = 64, .optimizer = Order::Optimizer{.version = 2, .learning_rate = 0.02}});
  const auto config = read_config(text);
  CHECK(
      config ==
      ParalConfig{
          .version = 3, .workers = 4, .batch = 64, .optimizer_version = 2, .learning_rate = 0.02, .weight_decay = 0.5});
  CHECK(text.find("\"last_batch_size\": 32") != std::string::npos);
  CHECK(text.find("\"of_the_user\"") != std::string::npos);
  CHECK(text.find("\"optimizer_name\": \"adam\"") != std::string::npos);
  CHECK(text.find("\"pin_memory\": 1") != std::string::npos);
}

TEST_CASE("a file that is cut off, no such file, or too large is none, and an order makes it anew") {
  const std::string deep = R"({"dataloader": {"x": )" + std::string(50, '[') + std::string(50, ']') + "}}";
  const std::string large = R"({"dataloader": {"name": ")" + std::string(kConfigBytes, 'x') + "\"}}";
  for (const std::string& text : {std::string(), std::string(R"({"dataloader": {"batch)"), std::string("[]"),
                                  std::string(R"({"dataloader": 3})"), deep, large}) {
    CHECK(!read_config(text));
    CHECK(read_config(with_order(text, {.version = 5, .workers = 2}))->workers == 2);
  }
}

TEST_CASE("what an order has written is read again, whatever was there before") {
  const Order order{.version = 7,
                    .workers = 3,
                    .batch = 64,
                    .optimizer = Order::Optimizer{.version = 5, .learning_rate = 0.25, .weight_decay = 0.125}};
  const auto check = [&](const std::string& text) {
    const auto config = read_config(text);
    CHECK((config || !config.error().reason.empty()));
    for (const auto& said : {config ? config->workers : std::nullopt, config ? config->batch : std::nullopt}) {
      CHECK((!said || (*said >= 0 && *said <= kMostSaid)));
    }
    CHECK((!config || (std::isfinite(config->learning_rate) && config->weight_decay >= 0)));
    CHECK(read_config(with_order(text, order)) == ParalConfig{.version = 7,
                                                              .workers = 3,
                                                              .batch = 64,
                                                              .optimizer_version = 5,
                                                              .learning_rate = 0.25,
                                                              .weight_decay = 0.125});
    return config.has_value();
  };
  int readable = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    readable += check(mutated(kSaid, seed)) ? 1 : 0;
  }
  CHECK(readable > 100);
  CHECK(readable < 1900);
  // So many members, or bytes, that there is no room for those of the order.
  std::string members = "\"0\": 0";
  for (std::size_t i = 1; i < kConfigMembers; ++i) members += format(", \"{}\": 0", i);
  CHECK(check(R"({"dataloader": {)" + members + "}}"));
  std::string numbers = "0";
  while (numbers.size() < kConfigBytes / 2) numbers += ",0";
  CHECK(check(R"({"dataloader": {"x": [)" + numbers + "]}}"));
}

TEST_CASE("a learning rate that is no number is not written") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto config = read_config(with_order(
      kSaid,
      {.version = 3, .optimizer = Order::Optimizer{.version = 2, .learning_rate = infinity, .weight_decay = 1}}));
  CHECK(config->learning_rate == 0.01);
  CHECK(config->weight_decay == 1);
}

TEST_CASE("numbers that make no sense count as not said") {
  const auto config = read_config(R"({"dataloader": {"batch_size": -1, "num_workers": 1e300, "version": "x"},
                                      "optimizer": {"learning_rate": -1, "weight_decay": [],
                                                    "version": 99999999999}})");
  CHECK(config == ParalConfig{});
  CHECK(read_config(R"({"dataloader": {"batch_size": 99999999999}, "optimizer": []})") == ParalConfig{});
}
