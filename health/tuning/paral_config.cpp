#include "health/tuning/paral_config.h"

#include <algorithm>
#include <cmath>

#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::tuning {
namespace {

constexpr const char* kWhat = "the parameters of the loader";
constexpr int kIndent = 4;  // as DLRover's loader writes it

Json first_json() {
  Json loader = Json::object();
  loader.set("batch_size", 0)
      .set("dataloader_name", "")
      .set("last_batch_size", 0)
      .set("num_workers", 0)
      .set("pin_memory", 0)
      .set("version", 0);
  Json optimizer = Json::object();
  optimizer.set("learning_rate", 0.0).set("optimizer_name", "").set("version", 0).set("weight_decay", 0.0);
  return Json::object().set("dataloader", loader).set("optimizer", optimizer).set("restart", false);
}

Result<Json> parse(std::string_view text) {
  if (text.size() > kConfigBytes) return fail(format("cannot read {}", kWhat), "it is too long");
  const std::string over = json_over_bounds(text, kConfigLevels, kConfigMembers);
  if (!over.empty()) return fail(format("cannot read {}", kWhat), over);
  auto json = Json::parse(text, kWhat);
  if (!json) return json;
  const Json* loader = json->find("dataloader");
  if (loader == nullptr || loader->as_object() == nullptr) {
    return fail(format("cannot read {}", kWhat), "there is no object \"dataloader\" in it");
  }
  return json;
}

// A whole number from 0 on.
std::optional<std::int64_t> count_in(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const auto number = member == nullptr ? std::nullopt : member->as_integer();
  if (!number || *number < 0 || *number > kMostSaid) return {};
  return number;
}

bool is_said(double number) { return std::isfinite(number) && number > 0; }

double positive_in(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const double number = member == nullptr ? 0 : member->as_number().value_or(0);
  return is_said(number) ? number : 0;
}

}  // namespace

std::string first_config() { return first_json().dump(kIndent); }

Result<ParalConfig> read_config(std::string_view text) {
  const auto json = parse(text);
  if (!json) return std::unexpected(json.error());
  const Json& loader = *json->find("dataloader");
  ParalConfig config{.version = count_in(loader, "version").value_or(0)};
  config.batch = count_in(loader, "batch_size");
  if (config.batch == 0) config.batch.reset();
  config.workers = count_in(loader, "num_workers");
  // The file says 0 before anybody has said anything; a loader with a name says what it has.
  if (config.workers == 0 && loader.text_or_empty("dataloader_name").empty()) config.workers.reset();
  const Json* optimizer = json->find("optimizer");
  if (optimizer == nullptr) return config;
  config.optimizer_version = count_in(*optimizer, "version").value_or(0);
  config.learning_rate = positive_in(*optimizer, "learning_rate");
  config.weight_decay = positive_in(*optimizer, "weight_decay");
  return config;
}

std::string with_order(std::string_view text, const Order& order) {
  Json json = parse(text).value_or(first_json());
  Json loader = *json.find("dataloader");
  loader.set("version", order.version);
  if (order.workers) loader.set("num_workers", *order.workers);
  if (order.batch) {
    const std::int64_t last = count_in(loader, "batch_size").value_or(0);
    if (last != *order.batch) loader.set("last_batch_size", last);
    loader.set("batch_size", *order.batch);
  }
  json.set("dataloader", loader);
  if (order.optimizer) {
    const Json* there = json.find("optimizer");
    Json optimizer = there != nullptr && there->as_object() != nullptr ? *there : Json::object();
    optimizer.set("version", order.optimizer->version);
    if (is_said(order.optimizer->learning_rate)) optimizer.set("learning_rate", order.optimizer->learning_rate);
    if (is_said(order.optimizer->weight_decay)) optimizer.set("weight_decay", order.optimizer->weight_decay);
    json.set("optimizer", optimizer);
  }
  std::string out = json.dump(kIndent);
  // With what is added here a file may be larger than we read it.
  return parse(out) ? out : with_order({}, order);
}

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
