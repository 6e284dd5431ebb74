#include "rendezvous/coordinator/loss_budget.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "rendezvous/coordinator/limits.h"
#include "src/base/limits.h"

namespace elastic::coordinator {
namespace {

constexpr std::int64_t kLongestMs = limits::kMaxTimeoutSeconds * 1000;

}  // namespace

LossRules with_default_bound(LossRules rules, int max_nodes) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (rules.per_job == 0) rules.per_job = static_cast<int>(std::min(std::int64_t{max_nodes} * 10, kMost));
  return rules;
}

LossBudget::LossBudget(LossRules rules) : rules_(rules) {
  rules_.per_node = std::min(rules_.per_node, limits::kMaxLossesPerNode);
  rules_.window_ms = std::clamp<std::int64_t>(rules_.window_ms, 0, kLongestMs);
  rules_.quarantine_ms = std::clamp<std::int64_t>(rules_.quarantine_ms, 0, kLongestMs);
}

void LossBudget::count_loss() {
  if (losses_ < std::numeric_limits<int>::max()) ++losses_;
}

std::optional<std::int64_t> LossBudget::charge(const std::string& node, std::int64_t now_ms) {
  if (rules_.per_node <= 0) return std::nullopt;
  if (!nodes_.contains(node)) make_room(now_ms);

  Node& entry = nodes_[node];
  if (is_of_no_account(entry, now_ms)) entry = {};
  std::erase_if(entry.lost_ms, [&](std::int64_t lost_ms) { return lost_ms + rules_.window_ms <= now_ms; });
  entry.lost_ms.push_back(now_ms);
  entry.last_ms = now_ms;
  if (entry.lost_ms.size() >= static_cast<std::size_t>(rules_.per_node)) {
    entry.lost_ms.clear();
    entry.quarantine_ms =
        entry.quarantine_ms == 0 ? rules_.quarantine_ms : std::min(entry.quarantine_ms * 2, kLongestMs);
    entry.until_ms = now_ms + entry.quarantine_ms;
  }
  return quarantined_until(node, now_ms);
}

std::optional<std::int64_t> LossBudget::quarantined_until(const std::string& node, std::int64_t now_ms) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.until_ms <= now_ms) return std::nullopt;
  return found->second.until_ms;
}

// The node's entry can be dropped: its last loss lies outside the window, and since its last quarantine as much time
// has passed as that took, so that the next one is as short as the first.
bool LossBudget::is_of_no_account(const Node& node, std::int64_t now_ms) const {
  return node.last_ms + rules_.window_ms <= now_ms && node.until_ms + node.quarantine_ms <= now_ms;
}

std::size_t LossBudget::quarantined(std::int64_t now_ms) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [&](const auto& entry) { return entry.second.until_ms > now_ms; }));
}

std::vector<LossBudget::Record> LossBudget::records(std::size_t most, std::int64_t now_ms) const {
  std::vector<Record> records;
  for (const auto& [name, node] : nodes_) {
    if (is_of_no_account(node, now_ms)) continue;
    const auto losses =
        std::ranges::count_if(node.lost_ms, [&](std::int64_t lost_ms) { return lost_ms + rules_.window_ms > now_ms; });
    records.push_back({name, static_cast<int>(losses), node.last_ms, node.quarantine_ms, node.until_ms});
  }
  std::ranges::sort(records, std::ranges::greater(),
                    [](const Record& record) { return std::tuple(record.until_ms, record.last_ms); });
  if (records.size() > most) records.resize(most);
  return records;
}

void LossBudget::restore(const Record& record, std::int64_t now_ms) {
  if (rules_.per_node <= 0) return;
  const std::int64_t last_ms = std::clamp(record.last_ms, now_ms - kLongestMs, now_ms);
  const std::int64_t quarantine_ms = std::clamp<std::int64_t>(record.quarantine_ms, 0, kLongestMs);
  Node node{.lost_ms = {},
            .quarantine_ms = quarantine_ms,
            .until_ms = std::clamp(record.until_ms, now_ms - kLongestMs, now_ms + quarantine_ms),
            .last_ms = last_ms};
  node.lost_ms.assign(static_cast<std::size_t>(std::clamp(record.losses, 0, rules_.per_node)), last_ms);
  if (!is_of_no_account(node, now_ms)) nodes_[record.node] = std::move(node);
}

void LossBudget::make_room(std::int64_t now_ms) {
  if (nodes_.size() < limits::kLossNodes) return;
  std::erase_if(nodes_, [&](const auto& entry) { return is_of_no_account(entry.second, now_ms); });
  if (nodes_.size() < limits::kLossNodes) return;
  // The entries that matter least are dropped: those that may come back the earliest, and among them those that were
  // lost the longest ago. An eighth of all is dropped at once, so that many new names do not cost a search each.
  using Entry = std::map<std::string, Node>::iterator;
  std::vector<Entry> entries;
  for (Entry entry = nodes_.begin(); entry != nodes_.end(); ++entry) entries.push_back(entry);
  const auto dropped = entries.begin() + static_cast<std::ptrdiff_t>(limits::kLossNodes / 8);
  std::ranges::nth_element(entries, dropped, {},
                           [](Entry entry) { return std::tuple(entry->second.until_ms, entry->second.last_ms); });
  for (auto entry = entries.begin(); entry != dropped; ++entry) nodes_.erase(*entry);
}

}  // namespace elastic::coordinator
