#include "health/gpu/judge_gpu.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "src/base/check.h"
#include "src/base/figures.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/report/xid.h"

namespace elastic::health {
namespace {

// nvmlClocksEventReason... The reason "power cap" (0x4) is not among them, since it is normal under load.
constexpr std::uint64_t kHwSlowdown = 0x08;
constexpr std::uint64_t kSwThermalSlowdown = 0x20;
constexpr std::uint64_t kHwThermalSlowdown = 0x40;
constexpr std::uint64_t kHwPowerBrakeSlowdown = 0x80;

// NVML_GPU_FABRIC_STATE_...; 0 means "not supported".
constexpr int kFabricNotStarted = 1;
constexpr int kFabricInProgress = 2;
constexpr int kFabricCompleted = 3;

constexpr std::size_t kMostXids = 16;

constexpr double limit(GpuRule rule) { return threshold(rule).limit; }

// --- Which GPU is which

// A device's address on the PCI bus, without the function.
struct PciPlace {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  auto operator<=>(const PciPlace&) const = default;
};

std::optional<unsigned> hex_number(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// Reads "0000:1b:00.0" (CUDA), "00000000:1B:00.0" (NVML) and "PCI:0000:1b:00" (kernel log).
std::optional<PciPlace> pci_place(std::string_view text) {
  constexpr std::string_view kPrefix = "PCI:";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  text = text.substr(0, text.find('.'));
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) return {};
  const auto domain = hex_number(parts[0]);
  const auto bus = hex_number(parts[1]);
  const auto device = hex_number(parts[2]);
  if (!domain || !bus || !device) return {};
  return PciPlace{*domain, *bus, *device};
}

// Whether the workers will use the GPU. Where it cannot be compared with theirs by any name, it is taken for one of
// them. A MIG instance has a UUID of its own, and the bus id of its GPU.
bool is_used(const GpuNeeds& needs, const std::string& uuid, const std::string& bus_id) {
  const auto place = pci_place(bus_id);
  bool can_be_compared = false;
  for (const GpuIdentity& used : needs.used) {
    const auto its_place = pci_place(used.bus_id);
    const bool both_have_uuids = !uuid.empty() && !used.uuid.empty();
    const bool both_have_places = place && its_place;
    if ((both_have_uuids && uuid == used.uuid) || (both_have_places && place == its_place)) return true;
    can_be_compared = can_be_compared || both_have_uuids || both_have_places;
  }
  return !can_be_compared;
}

bool has_identity(const GpuFacts& gpu) { return !gpu.uuid.empty() || !gpu.bus_id.empty(); }

bool is_same(const GpuFacts& one, const GpuFacts& other) {
  return one.uuid.empty() || other.uuid.empty() ? one.index == other.index : one.uuid == other.uuid;
}

std::string name_of(const GpuFacts& gpu) {
  return gpu.bus_id.empty() ? format("GPU {}", gpu.index) : format("GPU {} ({})", gpu.index, printable(gpu.bus_id));
}

std::string name_of(const std::vector<const GpuFacts*>& gpus) {
  if (gpus.size() == 1) return name_of(*gpus.front());
  std::vector<int> indices;
  for (const GpuFacts* gpu : gpus) indices.push_back(gpu->index);
  return "GPUs " + rank_ranges(indices);
}

// --- NVLinks

int links_up(const GpuFacts& gpu) {
  return static_cast<int>(std::ranges::count(gpu.nvlinks, std::optional(true), &Nvlink::up));
}

int links_known(const GpuFacts& gpu) {
  return static_cast<int>(std::ranges::count_if(gpu.nvlinks, [](const Nvlink& link) { return link.up.has_value(); }));
}

std::string text_of_links(const std::vector<const Nvlink*>& links) {
  std::vector<int> numbers;
  for (const Nvlink* link : links) numbers.push_back(link->link);
  return format("{} {}", plural("NVLink", numbers.size()), rank_ranges(numbers));
}

// --- Memory in use

std::string text_of_holder(const GpuHolder& holder) {
  std::vector<std::string> parts;
  if (holder.pid > 0) parts.push_back(format("pid {}", holder.pid));
  if (holder.bytes) parts.push_back(bytes_text(static_cast<double>(*holder.bytes)));
  const std::string name = holder.name.empty() ? "a process" : printable(holder.name);
  return parts.empty() ? name : format("{} ({})", name, join(parts, ", "));
}

std::string text_of_holders(std::vector<GpuHolder> holders) {
  if (holders.empty()) return "by processes that are not visible here";
  std::ranges::stable_sort(holders, std::greater{}, [](const GpuHolder& holder) { return holder.bytes.value_or(0); });
  std::vector<std::string> names;
  for (const GpuHolder& holder : holders) names.push_back(text_of_holder(holder));
  return "by " + some_of(names);
}

bool has_much_in_use(const GpuFacts& gpu) {
  if (gpu.mig == true || !gpu.memory_used_bytes || gpu.memory_bytes.value_or(0) == 0) return false;
  return 100 * static_cast<double>(*gpu.memory_used_bytes) / static_cast<double>(*gpu.memory_bytes) >=
         limit(GpuRule::kMemoryUsed);
}

// On Grace-Hopper and Grace-Blackwell, the operating system uses the GPU's memory as well: it has pages of its own
// there, and keeps those of processes that have ended.
bool is_the_systems_too(const GpuFacts& gpu) {
  return gpu.name.starts_with("NVIDIA GH") || gpu.name.starts_with("NVIDIA GB");
}

// --- The GPUs of a node

class GpuJudge {
 public:
  GpuJudge(const std::vector<GpuFacts>& before, const std::vector<GpuFacts>& after, const GpuNeeds& needs)
      : before_(before), after_(after), needs_(needs) {
    // A GPU that NVML cannot reach has neither UUID nor bus id. It is taken for one of the workers' GPUs only where one
    // of those is missing.
    const bool all_are_there = !needs.used.empty() && std::ranges::all_of(needs.used, [&](const GpuIdentity& used) {
      return std::ranges::any_of(after, [&](const GpuFacts& gpu) {
        return has_identity(gpu) && is_used({.used = {used}}, gpu.uuid, gpu.bus_id);
      });
    });
    for (const GpuFacts& gpu : after) {
      if (all_are_there && !has_identity(gpu)) continue;
      if (is_used(needs, gpu.uuid, gpu.bus_id)) used_.push_back(&gpu);
    }
  }

  std::vector<Finding> judge() {
    judge_vanished();
    for (const GpuFacts* gpu : used_) {
      if (gpu->lost == true) {
        tell(GpuRule::kLost, "its driver cannot reach it any more", *gpu);
        continue;
      }
      judge_state(*gpu);
      judge_memory(*gpu);
      judge_pcie(*gpu);
      judge_nvlinks(*gpu);
      judge_clocks(*gpu);
      judge_modes(*gpu);
      judge_fabric(*gpu);
    }
    judge_count();
    judge_alike(GpuRule::kModels, "are of different models", &GpuFacts::name);
    judge_alike(GpuRule::kDrivers, "have different drivers", &GpuFacts::driver_version);
    std::vector<Finding> findings;
    for (auto& [rule, what, gpus, where] : told_) {
      findings.push_back(finding_of(threshold(rule), std::move(what), gpus.empty() ? where : name_of(gpus)));
    }
    return findings;
  }

 private:
  struct Told {
    GpuRule rule;
    std::string what;
    std::vector<const GpuFacts*> gpus;
    std::string where;  // used where the finding is not about particular GPUs
  };

  // The same finding about several GPUs becomes one.
  void tell(GpuRule rule, const std::string& what, const GpuFacts& gpu) {
    const auto same = std::ranges::find_if(
        told_, [&](const Told& told) { return told.rule == rule && told.what == what && !told.gpus.empty(); });
    if (same == told_.end()) {
      told_.push_back({rule, what, {&gpu}, {}});
    } else {
      same->gpus.push_back(&gpu);
    }
  }

  const GpuFacts* earlier(const GpuFacts& gpu) const {
    const auto found = std::ranges::find_if(before_, [&](const GpuFacts& then) { return is_same(then, gpu); });
    return found == before_.end() ? nullptr : &*found;
  }

  void judge_vanished() {
    if (after_.empty()) return;  // NVML could not be asked
    for (const GpuFacts& then : before_) {
      if (!is_used(needs_, then.uuid, then.bus_id)) continue;
      if (std::ranges::none_of(after_, [&](const GpuFacts& gpu) { return is_same(then, gpu); })) {
        tell(GpuRule::kLost, "it was there before the check and has disappeared", then);
      }
    }
  }

  void judge_state(const GpuFacts& gpu) {
    if (gpu.needs_reset == true) tell(GpuRule::kNeedsReset, "it needs a reset", gpu);
    if (gpu.ecc_uncorrectable && static_cast<double>(*gpu.ecc_uncorrectable) >= limit(GpuRule::kEcc)) {
      tell(GpuRule::kEcc,
           format("{} since the last reset, wanted 0", counted(*gpu.ecc_uncorrectable, "uncorrectable ECC error")),
           gpu);
    }
    if (gpu.remap_failed == true) tell(GpuRule::kRemapFailed, "a row of its memory could not be remapped", gpu);
    if (gpu.remap_pending == true) {
      tell(GpuRule::kRemapPending, "a row of its memory waits for the next reset to be remapped", gpu);
    }
  }

  // A GPU with MIG is not judged: NVML counts the memory of all its instances, also of those that others use.
  void judge_memory(const GpuFacts& gpu) {
    const GpuFacts* then = earlier(gpu);
    const GpuFacts& first = then == nullptr ? gpu : *then;
    if (!has_much_in_use(first) || (is_the_systems_too(first) && first.holders.empty())) return;
    const auto used = static_cast<double>(*first.memory_used_bytes);
    const auto all = static_cast<double>(*first.memory_bytes);
    const double wanted = limit(GpuRule::kMemoryUsed);
    tell(GpuRule::kMemoryUsed,
         format("{} of its {} of memory are in use ({} %), {}; wanted less than {:.0f} %", bytes_text(used),
                bytes_text(all), short_number(100 * used / all), text_of_holders(first.holders), wanted),
         gpu);
  }

  // An idle GPU lowers the generation of its link to save power, but never the width. So the former is judged after
  // load only.
  void judge_pcie(const GpuFacts& gpu) {
    if (gpu.pcie_width && gpu.pcie_max_width && *gpu.pcie_width > 0 && *gpu.pcie_width < *gpu.pcie_max_width) {
      tell(GpuRule::kPcieWidth,
           format("its PCIe link has {}, wanted {}", counted(*gpu.pcie_width, "lane"), *gpu.pcie_max_width), gpu);
    }
    if (!needs_.after_work || !gpu.pcie_gen || !gpu.pcie_max_gen) return;
    if (*gpu.pcie_gen > 0 && *gpu.pcie_gen < *gpu.pcie_max_gen) {
      tell(GpuRule::kPcieGeneration,
           format("right after load its PCIe link was at generation {}, wanted {}", *gpu.pcie_gen, *gpu.pcie_max_gen),
           gpu);
    }
  }

  void judge_nvlinks(const GpuFacts& gpu) {
    const int up = links_up(gpu);
    const int known = links_known(gpu);
    const GpuFacts* best = &gpu;
    for (const GpuFacts& other : after_) {
      if (other.name == gpu.name && links_up(other) > links_up(*best)) best = &other;
    }
    if (known > 0 && up < links_up(*best)) {
      tell(GpuRule::kNvlinkDown,
           format("{} of its {} NVLinks are up, while GPU {}, of the same model, has {}", up, known, best->index,
                  links_up(*best)),
           gpu);
    } else if (up > 0 && up < known) {
      tell(GpuRule::kNvlinkSomeDown, format("{} of its {} NVLinks are up", up, known), gpu);
    }
    judge_link_errors(gpu);
  }

  void judge_link_errors(const GpuFacts& gpu) {
    const GpuFacts* then = earlier(gpu);
    std::vector<const Nvlink*> risen;
    std::vector<const Nvlink*> old;
    for (const Nvlink& link : gpu.nvlinks) {
      const std::uint64_t all = link.errors.value_or(0);
      const std::uint64_t rise = all - std::min(all, errors_before(then, link));
      if (static_cast<double>(rise) >= limit(GpuRule::kNvlinkErrors)) {
        risen.push_back(&link);
      } else if (static_cast<double>(all) >= limit(GpuRule::kNvlinkOldErrors)) {
        old.push_back(&link);
      }
    }
    if (!risen.empty()) {
      tell(GpuRule::kNvlinkErrors, text_of_links(risen) + " counted errors during the check", gpu);
    }
    if (!old.empty()) {
      tell(GpuRule::kNvlinkOldErrors, text_of_links(old) + " counted errors since the driver was loaded", gpu);
    }
  }

  // The link's counter before the check; the largest number where it is not known, so that no rise is seen.
  static std::uint64_t errors_before(const GpuFacts* then, const Nvlink& link) {
    constexpr std::uint64_t kAll = UINT64_MAX;
    if (then == nullptr) return kAll;
    const auto found = std::ranges::find(then->nvlinks, link.link, &Nvlink::link);
    return found == then->nvlinks.end() ? kAll : found->errors.value_or(kAll);
  }

  void judge_clocks(const GpuFacts& gpu) {
    const std::uint64_t reasons = gpu.throttle_reasons.value_or(0);
    const bool is_hot = (reasons & (kSwThermalSlowdown | kHwThermalSlowdown)) != 0;
    const bool is_braked = (reasons & kHwPowerBrakeSlowdown) != 0;
    if (is_hot) {
      tell(GpuRule::kHot,
           "its clocks are throttled by heat" +
               (gpu.temperature_c ? format(", at {} °C", *gpu.temperature_c) : std::string()),
           gpu);
    }
    if (is_braked) tell(GpuRule::kPowerBrake, "its clocks are throttled by the host's power brake", gpu);
    if (!is_hot && !is_braked && (reasons & kHwSlowdown) != 0) {
      tell(GpuRule::kSlowdown, "its clocks are throttled by the hardware, which gives no reason", gpu);
    }
  }

  void judge_modes(const GpuFacts& gpu) {
    if (gpu.persistence == false) tell(GpuRule::kPersistence, "persistence mode is off", gpu);
    if (gpu.mig == true) tell(GpuRule::kMig, "MIG is on", gpu);
  }

  void judge_fabric(const GpuFacts& gpu) {
    const int state = gpu.fabric_state.value_or(0);
    if (state == kFabricNotStarted || state == kFabricInProgress) {
      tell(GpuRule::kFabricWaiting,
           format("its registration with the NVLink fabric {}",
                  state == kFabricNotStarted ? "has not begun" : "is still going on"),
           gpu);
    }
    if (state == kFabricCompleted && gpu.fabric_status.value_or(0) != 0) {
      tell(GpuRule::kFabricFailed,
           format("its registration with the NVLink fabric failed with NVML's error {}", *gpu.fabric_status), gpu);
    }
  }

  void judge_count() {
    const int visible = needs_.visible.value_or(static_cast<int>(needs_.used.size()));
    if (visible == 0 || visible >= limit(GpuRule::kFewGpus) * needs_.nproc) return;
    told_.push_back({GpuRule::kFewGpus,
                     format("workers see {}, wanted {} for {} workers", counted(visible, "GPU"),
                            short_number(limit(GpuRule::kFewGpus) * needs_.nproc), needs_.nproc),
                     {},
                     "CUDA_VISIBLE_DEVICES"});
  }

  void judge_alike(GpuRule rule, const char* how, std::string GpuFacts::*member) {
    std::map<std::string, std::vector<const GpuFacts*>> by_value;
    for (const GpuFacts* gpu : used_) {
      if (!(gpu->*member).empty()) by_value[gpu->*member].push_back(gpu);
    }
    if (by_value.size() < 2) return;
    std::vector<std::string> groups;
    for (const auto& [value, gpus] : by_value) groups.push_back(format("{}: {}", name_of(gpus), printable(value)));
    told_.push_back({rule, format("the node's GPUs {}: {}", how, some_of(groups)), {}, "nvidia-smi"});
  }

  const std::vector<GpuFacts>& before_;
  const std::vector<GpuFacts>& after_;
  const GpuNeeds& needs_;
  std::vector<const GpuFacts*> used_;
  std::vector<Told> told_;
};

// --- Xids

struct XidOfGpu {
  report::Xid xid;
  XidAftermath aftermath;
  int times = 1;  // that it is in the log
};

// The Xids that say something about a GPU that the workers use, each of each GPU once, in the order of the log.
std::vector<XidOfGpu> xids_in(std::string_view log, const GpuNeeds& needs) {
  std::vector<XidOfGpu> found;
  for (const std::string_view line : lines_of(log)) {
    auto xid = report::xid_of(line);
    if (!xid || aftermath_of(xid->number) == XidAftermath::kNone || !is_used(needs, "", xid->device)) continue;
    const auto same = std::ranges::find_if(found, [&](const XidOfGpu& other) {
      return other.xid.number == xid->number && other.xid.device == xid->device;
    });
    if (same != found.end()) {
      ++same->times;
    } else if (found.size() < kMostXids) {
      const XidAftermath aftermath = aftermath_of(xid->number);
      found.push_back({std::move(*xid), aftermath});
    }
  }
  return found;
}

GpuRule rule_of(XidAftermath aftermath) {
  switch (aftermath) {
    case XidAftermath::kUnhealthy: return GpuRule::kXidUnhealthy;
    case XidAftermath::kSuspect: return GpuRule::kXidSuspect;
    case XidAftermath::kNone:
    case XidAftermath::kUnknown: break;
  }
  return GpuRule::kXidUnknown;
}

Finding finding_of(GpuRule rule, const XidOfGpu& found) {
  return finding_of(threshold(rule),
                    format("Xid {}: {}{}", found.xid.number, found.xid.meaning,
                           found.times == 1 ? "" : format("; {} times", found.times)),
                    printable(found.xid.device));
}

}  // namespace

bool has_memory_of_nobody(const std::vector<GpuFacts>& gpus) {
  return std::ranges::any_of(gpus, [](const GpuFacts& gpu) {
    return has_much_in_use(gpu) && gpu.holders.empty() && !is_the_systems_too(gpu);
  });
}

std::vector<Finding> judge_gpus(const std::vector<GpuFacts>& before, const std::vector<GpuFacts>& after,
                                const GpuNeeds& needs) {
  ELASTIC_CHECK(needs.nproc >= 1);
  return GpuJudge(before, after, needs).judge();
}

std::vector<Finding> xid_findings(std::string_view earlier, std::string_view recent, const GpuNeeds& needs) {
  std::vector<Finding> findings;
  std::set<std::pair<std::string, int>> told;
  for (const XidOfGpu& found : xids_in(recent, needs)) {
    findings.push_back(finding_of(rule_of(found.aftermath), found));
    told.emplace(found.xid.device, found.xid.number);
  }
  for (const XidOfGpu& found : xids_in(earlier, needs)) {
    if (found.aftermath == XidAftermath::kUnknown || told.contains({found.xid.device, found.xid.number})) continue;
    findings.push_back(finding_of(GpuRule::kXidOld, found));
  }
  return findings;
}

XidAftermath aftermath_of(int number) {
  switch (number) {
    case 13:
    case 31:
    case 43:
    case 45: return XidAftermath::kNone;
    case 63:
    case 92:
    case 94: return XidAftermath::kSuspect;
    case 48:
    case 62:
    case 64:
    case 74:
    case 79:
    case 95:
    case 119:
    case 120: return XidAftermath::kUnhealthy;
    default: return XidAftermath::kUnknown;
  }
}

}  // namespace elastic::health
