#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace elastic::tuning {

// | DLRover's file of parameters, with `--auto-tunning` | {kConfigBytes}, {kConfigLevels} levels, {kConfigMembers}
// members of an object; its numbers {kMostSaid} | a larger file counts as none, a larger number as not said |
inline constexpr std::size_t kConfigBytes = 64 * 1024;
inline constexpr std::size_t kConfigLevels = 8;
inline constexpr std::size_t kConfigMembers = 256;
inline constexpr std::int64_t kMostSaid = 1'000'000'000;

// What DLRover's file of parameters says (its ParallelConfig): docs/auto-tunning.md has every member.
struct ParalConfig {
  std::int64_t version = 0;                  // of the loader's part
  std::optional<std::int64_t> workers = {};  // that load data, for each rank; nothing: no loader has said it
  std::optional<std::int64_t> batch = {};    // samples of a batch, of each rank; the same
  std::int64_t optimizer_version = 0;
  double learning_rate = 0;  // 0: no script has said it
  double weight_decay = 0;
  bool operator==(const ParalConfig&) const = default;
};

// What the file is to say; what is missing stays as it is.
struct Order {
  std::int64_t version = 0;
  std::optional<std::int64_t> workers = {};
  std::optional<std::int64_t> batch = {};
  struct Optimizer {
    std::int64_t version = 0;
    double learning_rate = 0;
    double weight_decay = 0;
    bool operator==(const Optimizer&) const = default;
  };
  std::optional<Optimizer> optimizer = {};
  bool operator==(const Order&) const = default;
};

// The file as DLRover's agent makes it, before any loader has said something.
std::string first_config();
// Fails on a text that is no such file, as that of a loader that is just writing it.
Result<ParalConfig> read_config(std::string_view text);
// The same file with what the order says: members that it does not name, and such that DLRover does not know, stay. A
// text that cannot be read counts as first_config().
std::string with_order(std::string_view text, const Order& order);

// The learning rate and the weight decay that go with a batch size, by DLRover's rule: those that the script has
// written to the file, times the square root of the new batch size by the old one.
class LearningRate {
 public:
  // What we have not written ourselves is a script's, for the batch size with which it stands in the file.
  void adopt_file(const ParalConfig& file);
  // What the file is to say with this batch size; nothing: what it says already, or no script has said any.
  std::optional<Order::Optimizer> order(std::int64_t batch);

 private:
  struct Said {
    double learning_rate = 0;
    double weight_decay = 0;
    std::int64_t batch = 0;
  };
  std::optional<Said> said_;
  std::optional<Order::Optimizer> written_;
  std::int64_t version_ = 0;
};

}  // namespace elastic::tuning
