#include "rendezvous/membership/round_forming.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::membership {
namespace {

using Kind = FormingDecision::Kind;

std::string seconds_text(std::int64_t duration_ms) { return format("{} s", static_cast<double>(duration_ms) / 1000); }

FormingDecision form(int size, std::string reason) {
  return {.kind = Kind::kForm, .size = size, .look_again_ms = {}, .reason = std::move(reason)};
}

FormingDecision wait_until(std::int64_t time_ms, std::string reason) {
  return {.kind = Kind::kWait, .size = 0, .look_again_ms = time_ms, .reason = std::move(reason)};
}

// The decision while fewer nodes than the minimum are ready.
FormingDecision too_few(const FormingView& view, const FormingRules& rules, std::int64_t now_ms) {
  const bool for_replacements = view.again && rules.replacement_wait_ms;
  const std::int64_t patience_ms = for_replacements ? *rules.replacement_wait_ms : rules.join_timeout_ms;
  const std::int64_t end_ms = view.since_ms + patience_ms;
  const std::int64_t deadline_ms = for_replacements ? std::max(end_ms, view.back_by_ms) : end_ms;
  const std::string count = format("{}, {} required", counted(view.ready, "node"), least_size(rules));
  if (now_ms < deadline_ms) return wait_until(deadline_ms, count);
  const bool waits_for_none = for_replacements && patience_ms == 0;
  return {.kind = Kind::kGiveUp,
          .size = 0,
          .look_again_ms = {},
          .reason = waits_for_none ? format("{}; not waiting for a replacement", count)
                                   : format("{} after {}: {}", kGaveUp, seconds_text(patience_ms), count)};
}

// The decision on a first round with at least the minimum and less than the maximum of nodes.
FormingDecision last_call(const FormingView& view, const FormingRules& rules, int size, std::int64_t now_ms) {
  const std::int64_t deadline_ms = *view.enough_since_ms + rules.last_call_ms;
  if (now_ms < deadline_ms)
    return wait_until(deadline_ms, format("last call: {} are there", counted(view.ready, "node")));
  return form(size, format("the last call of {} is over", seconds_text(rules.last_call_ms)));
}

// The decision on a later round with at least the minimum and less than the maximum of nodes.
FormingDecision form_again(const FormingView& view, const FormingRules& rules, int size, std::int64_t now_ms) {
  const bool smaller = size < round_size(view.previous_size, rules);
  std::int64_t deadline_ms = now_ms;
  if (view.was_below_min) deadline_ms = view.last_join_ms + rules.settle_ms;
  if (smaller) deadline_ms = std::max(deadline_ms, view.since_ms + rules.grace_ms);
  if (now_ms < deadline_ms) {
    return wait_until(deadline_ms, smaller ? format("{} are there, the last round had {}", counted(view.ready, "node"),
                                                    view.previous_size)
                                           : "other newcomers may follow");
  }
  return form(size, view.was_below_min ? "replacements have come" : "all survivors have stopped");
}

}  // namespace

int least_size(const FormingRules& rules) {
  const std::int64_t unit = std::max(rules.node_unit, 1);
  return static_cast<int>((std::max(rules.min_nodes, 1) + unit - 1) / unit * unit);
}

int round_size(int ready, const FormingRules& rules) {
  const int unit = std::max(rules.node_unit, 1);
  const int size = std::min(ready, rules.max_nodes) / unit * unit;
  return size < least_size(rules) ? 0 : size;
}

FormingDecision decide_forming(const FormingView& view, const FormingRules& rules, std::int64_t now_ms) {
  if (view.awaited > 0) {
    return {.kind = Kind::kWait,
            .size = 0,
            .look_again_ms = {},
            .reason = format("{} of the last round may still run", counted(view.awaited, "node"))};
  }
  const int size = round_size(view.ready, rules);
  if (size == 0) return too_few(view, rules, now_ms);
  if (size == round_size(rules.max_nodes, rules)) return form(size, format("all {} are there", counted(size, "node")));
  if (view.again) return form_again(view, rules, size, now_ms);
  ELASTIC_CHECK(view.enough_since_ms.has_value());
  return last_call(view, rules, size, now_ms);
}

}  // namespace elastic::membership
