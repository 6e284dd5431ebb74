#pragma once

#include <cstdint>
#include <optional>

#include "health/tuning/paral_config.h"

namespace elastic::tuning {

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
