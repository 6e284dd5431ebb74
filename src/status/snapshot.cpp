#include "src/status/snapshot.h"

namespace elastic::status {
namespace {

constexpr std::array<std::string_view, kPhases> kPhaseNames = {"waiting",   "rebuilding", "checking",
                                                               "preparing", "running",    "stopping"};
constexpr std::array<std::string_view, kCauses> kCauseNames = {
    "first", "worker_failure", "node_lost", "membership_change", "check", "coordinator_lost", "false_alarm", "hang"};
constexpr std::array<std::string_view, kPlaces> kPlaceNames = {"waiting", "checking", "in_round", "stopping",
                                                               "standby", "lost",     "kept_out", "unfit"};
constexpr std::array<std::string_view, kActivities> kActivityNames = {"waiting", "standby",   "preparing", "checking",
                                                                      "running", "succeeded", "stopping",  "ended"};
constexpr std::array<std::string_view, kHangStates> kHangStateNames = {"off",     "idle",      "starting",   "armed",
                                                                       "suspect", "confirmed", "collecting", "judged"};
constexpr std::array<std::string_view, kWarmths> kWarmthNames = {"off", "preparing", "ready", "cold"};

}  // namespace

std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }
std::string_view name_of(Cause cause) { return kCauseNames[static_cast<std::size_t>(cause)]; }
std::string_view name_of(Place place) { return kPlaceNames[static_cast<std::size_t>(place)]; }
std::string_view name_of(Activity activity) { return kActivityNames[static_cast<std::size_t>(activity)]; }
std::string_view name_of(HangState state) { return kHangStateNames[static_cast<std::size_t>(state)]; }
std::string_view name_of(Warmth warmth) { return kWarmthNames[static_cast<std::size_t>(warmth)]; }

}  // namespace elastic::status
