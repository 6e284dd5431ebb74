#include "health/tuning/paral_config.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::tuning;

namespace {

// As DLRover's ElasticDataLoader leaves it, whose own batch size is 32.
constexpr const char* kSaid = R"({"dataloader": {"batch_size": 32, "dataloader_name": "", "last_batch_size": 0,
  "num_workers": 0, "pin_memory": 1, "version": 2, "of_the_user": [1]},
  "optimizer": {"learning_rate": 0.01, "optimizer_name": "adam", "version": 1, "weight_decay": 0.5},
  "restart": false})";

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

TEST_CASE("numbers that make no sense count as not said") {
  const auto config = read_config(R"({"dataloader": {"batch_size": -1, "num_workers": 1e300, "version": "x"},
                                      "optimizer": {"learning_rate": -1, "weight_decay": [],
                                                    "version": 99999999999}})");
  CHECK(config == ParalConfig{});
  CHECK(read_config(R"({"dataloader": {"batch_size": 99999999999}, "optimizer": []})") == ParalConfig{});
}
