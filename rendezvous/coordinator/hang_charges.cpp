#include "rendezvous/coordinator/hang_charges.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rendezvous/coordinator/limits.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using hang::Fault;

namespace {

// A soft fault is a suspicion: the second one counts.
constexpr int kSoftCharges = 2;

std::string without(const std::vector<std::string>& names) {
  return names.empty() ? "" : format(", without {}", some_of(names));
}

}  // namespace

HangCharges::Decision HangCharges::charge(const Hang& hang) {
  Decision decision;
  const bool is_node = hang.fault == Fault::kSoft || hang.fault == Fault::kHard;
  // Compared with charges of earlier hangs only: that ranks of one hang stand at the same place proves nothing.
  const std::vector<Charge> before = charges_;
  ++used_;
  if (is_node) {
    for (const Charged& charged : hang.charged) {
      Charge& charge = charge_of(charged.node);
      charge.times = std::min(charge.times + 1, kSoftCharges);
      if (!charged.place.empty()) charge.place = charged.place;
    }
  }
  for (const Charged& charged : hang.charged) {
    if (hang.fault != Fault::kSoft || charged.place.empty()) continue;
    const auto other = std::ranges::find_if(
        before, [&](const Charge& known) { return known.place == charged.place && known.node != charged.node; });
    if (other == before.end()) continue;
    decision.fatal = format("the script is at fault, and no node: ranks on {} and on {} have hung at the same line, {}",
                            printable(other->node), printable(charged.node), printable(charged.place));
    decision.action = "the job ends: " + decision.fatal;
    return decision;
  }
  if (used_ > limit_) {
    decision.fatal =
        format("the job has hung {}, and hang_restarts={} allows {}", counted(used_, "time"), limit_, limit_);
    decision.action = "the job ends: " + decision.fatal;
    return decision;
  }
  std::vector<std::string> names, kept;
  int standbys = hang.standbys;
  int left = hang.nodes + hang.standbys;
  for (const Charged& charged : hang.charged) {
    if (!is_node) break;
    const bool is_hard = hang.fault == Fault::kHard;
    const bool is_replaced = standbys > 0;
    if (!is_hard && !is_replaced && charge_of(charged.node).times < kSoftCharges) continue;
    if (!is_hard && left - 1 < hang.least) {
      kept.push_back(charged.name);
      continue;
    }
    --left;
    standbys -= is_replaced ? 1 : 0;
    decision.out.push_back(charged.node);
    names.push_back(charged.name);
  }
  if (left <= 0) {
    decision.fatal = format("no node is left: {} is at fault for a hang", some_of(names));
    decision.action = "the job ends: " + decision.fatal;
    return decision;
  }
  decision.action = format("restart{} (hang {} of {})", without(names), used_, limit_);
  if (!kept.empty())
    decision.action += format("; {} stays, since without it the job had fewer nodes than it needs", some_of(kept));
  return decision;
}

HangCharges::Record HangCharges::record() const {
  Record record{used_, {}};
  std::size_t bytes = 0;
  for (auto each = charges_.rbegin(); each != charges_.rend(); ++each) {
    bytes += each->node.size() + each->place.size();
    if (bytes > limits::kHangChargesBytes) break;
    record.charges.insert(record.charges.begin(), *each);
  }
  return record;
}

HangCharges::Charge& HangCharges::charge_of(const std::string& node) {
  const auto known = std::ranges::find(charges_, node, &Charge::node);
  Charge charge = known == charges_.end() ? Charge{.node = node} : std::move(*known);
  if (known != charges_.end()) charges_.erase(known);
  if (charges_.size() >= limits::kHangCharges) charges_.erase(charges_.begin());
  charges_.push_back(std::move(charge));
  return charges_.back();
}

void HangCharges::restore(const Record& record) {
  used_ = std::clamp<int>(record.used, used_, limits::kMaxRestarts);
  for (const Charge& known : record.charges) {
    if (known.times <= 0 || known.node.empty()) continue;
    Charge& charge = charge_of(known.node);
    charge.times = std::clamp(known.times, charge.times, kSoftCharges);
    if (!known.place.empty()) charge.place = known.place;
  }
}

}  // namespace elastic::coordinator
