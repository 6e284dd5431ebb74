#include "health/tuning/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace elastic::tuning {

void LearningRate::adopt_file(const ParalConfig& file) {
  if (file.learning_rate <= 0 || !file.batch) return;
  version_ = std::max(version_, file.optimizer_version);
  const auto is = [](double left, double right) { return std::abs(left - right) <= 1e-9 * right; };
  const bool is_ours =
      written_ && is(file.learning_rate, written_->learning_rate) && is(file.weight_decay, written_->weight_decay);
  if (is_ours) return;
  written_.reset();
  said_ = {.learning_rate = file.learning_rate, .weight_decay = file.weight_decay, .batch = *file.batch};
}

std::optional<Order::Optimizer> LearningRate::order(std::int64_t batch) {
  if (!said_) return {};
  const double factor = std::sqrt(static_cast<double>(batch) / static_cast<double>(said_->batch));
  Order::Optimizer out{.version = version_,
                       .learning_rate = said_->learning_rate * factor,
                       .weight_decay = said_->weight_decay * factor};
  if (out.learning_rate == (written_ ? written_->learning_rate : said_->learning_rate)) return {};
  out.version = ++version_;
  written_ = out;
  return out;
}

}  // namespace elastic::tuning
