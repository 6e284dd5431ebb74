#include "health/hang_evidence/link_facts.h"

#include <algorithm>
#include <optional>

#include "health/hang/bounds.h"
#include "src/base/text.h"

namespace elastic::hang {
namespace {

constexpr std::string_view kActive = "ACTIVE";
constexpr std::uint64_t kBytesOfAUnit = 4;

std::string name_of(const LinkSample& port) { return format("port {} of {}", port.port, printable(port.device)); }

std::string state_text(const LinkSample& port) {
  if (port.state.empty()) return "state unknown";
  return printable(port.state) + (port.phys_state.empty() ? "" : format(" ({})", printable(port.phys_state)));
}

std::string within(std::int64_t ms) { return format("within {:.0f} s", static_cast<double>(ms) / 1000); }

const LinkSample* then_of(std::span<const LinkSample> first, const LinkSample& port) {
  const auto found = std::ranges::find_if(
      first, [&](const LinkSample& then) { return then.device == port.device && then.port == port.port; });
  return found == first.end() ? nullptr : &*found;
}

// By how much a counter rose; nothing where that is not known, as after a reset.
std::optional<std::uint64_t> rise_of(const LinkSample* then, const LinkSample& now, const char* counter) {
  if (then == nullptr) return {};
  const auto before = then->counters.find(counter);
  const auto after = now.counters.find(counter);
  if (before == then->counters.end() || after == now.counters.end() || after->second < before->second) return {};
  return after->second - before->second;
}

bool has_active(std::span<const LinkSample> ports, const auto& is_of_kind) {
  return std::ranges::any_of(ports, [&](const LinkSample& port) { return port.state == kActive && is_of_kind(port); });
}

bool is_inactive(std::span<const LinkSample> first, std::span<const LinkSample> second, const LinkSample& port) {
  if (port.state.empty() || port.state == kActive) return false;
  const LinkSample* then = then_of(first, port);
  if (then != nullptr && then->state == kActive) return true;
  if (port.phys_state == "Disabled") return false;
  const auto is_like = [&](const LinkSample& other) { return other.link_layer == port.link_layer; };
  return has_active(second, is_like) || !has_active(second, [&](const LinkSample& other) { return !is_like(other); });
}

}  // namespace

std::vector<LinkFault> link_faults_of(std::span<const LinkSample> first, std::span<const LinkSample> second,
                                      std::int64_t ms_between) {
  std::vector<LinkFault> faults;
  for (const LinkSample& port : second) {
    if (is_inactive(first, second, port)) faults.push_back({name_of(port), "is " + state_text(port)});
  }
  for (const LinkSample& port : second) {
    std::vector<std::string> risen;
    for (const char* counter : kErrorCounters) {
      const auto rise = rise_of(then_of(first, port), port, counter);
      if (rise.value_or(0) > 0) risen.push_back(format("{} {} more", counter, *rise));
    }
    if (risen.empty()) continue;
    faults.push_back({name_of(port), format("has counted {} {}", join(risen, ", "), within(ms_between))});
  }
  if (faults.size() > bounds::kLinkFaults) faults.resize(bounds::kLinkFaults);
  return faults;
}

std::vector<std::string> link_lines(std::span<const LinkSample> first, std::span<const LinkSample> second,
                                    std::int64_t ms_between) {
  std::vector<std::string> lines;
  for (const LinkSample& port : second) {
    std::string line = format("{}: {}", name_of(port), state_text(port));
    if (!port.link_layer.empty()) line += ", " + printable(port.link_layer);
    const LinkSample* then = then_of(first, port);
    const auto sent = rise_of(then, port, kSentCounter);
    const auto received = rise_of(then, port, kReceivedCounter);
    if (sent && received) {
      line += format("; {} bytes sent and {} received {}", *sent * kBytesOfAUnit, *received * kBytesOfAUnit,
                     within(ms_between));
    }
    for (const char* counter : kErrorCounters) {
      const auto count = port.counters.find(counter);
      if (count != port.counters.end() && count->second > 0) line += format("; {} {}", counter, count->second);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace elastic::hang
