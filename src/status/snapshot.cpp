#include "src/status/snapshot.h"

namespace elastic::status {
namespace {

constexpr std::array<std::string_view, kHangStates> kHangStateNames = {"off",     "idle",      "starting",   "armed",
                                                                       "suspect", "confirmed", "collecting", "judged"};
constexpr std::array<std::string_view, kWarmths> kWarmthNames = {"off", "preparing", "ready", "cold"};

}  // namespace

std::string_view name_of(HangState state) { return kHangStateNames[static_cast<std::size_t>(state)]; }
std::string_view name_of(Warmth warmth) { return kWarmthNames[static_cast<std::size_t>(warmth)]; }

}  // namespace elastic::status
