#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The states of a job and its nodes, as they are decided, and as status and metrics name them. docs/observing.md
// describes each.
namespace elastic {

// What a job does at a time.
enum class JobPhase : std::uint8_t { kWaiting, kRecovery, kChecking, kPreparing, kRunning, kStopping };
constexpr auto names_of(JobPhase) {
  return std::to_array<std::string_view>({"waiting", "rebuilding", "checking", "preparing", "running", "stopping"});
}
inline constexpr std::size_t kJobPhases = names_of(JobPhase{}).size();

// Why a round began, or ended.
enum class RoundCause : std::uint8_t {
  kFirst,
  kWorkerFailure,
  kNodeLost,
  kMembershipChange,
  kCheck,
  kCoordinatorLost,
  kFalseAlarm,
  kHang
};
constexpr auto names_of(RoundCause) {
  return std::to_array<std::string_view>({"first", "worker_failure", "node_lost", "membership_change", "check",
                                          "coordinator_lost", "false_alarm", "hang"});
}
inline constexpr std::size_t kRoundCauses = names_of(RoundCause{}).size();

// Where a node stands in its job.
enum class MemberPlace : std::uint8_t {
  kWaiting,
  kChecking,
  kInRound,
  kStopping,
  kStandby,
  kLost,
  kQuarantined,
  kUnhealthy
};
constexpr auto names_of(MemberPlace) {
  return std::to_array<std::string_view>(
      {"waiting", "checking", "in_round", "stopping", "standby", "lost", "kept_out", "unfit"});
}
inline constexpr std::size_t kMemberPlaces = names_of(MemberPlace{}).size();

// What a node does.
enum class NodeActivity : std::uint8_t {
  kWaiting,
  kStandby,
  kPreparing,
  kChecking,
  kRunning,
  kSucceeded,
  kStopping,
  kEnded
};
constexpr auto names_of(NodeActivity) {
  return std::to_array<std::string_view>(
      {"waiting", "standby", "preparing", "checking", "running", "succeeded", "stopping", "ended"});
}
inline constexpr std::size_t kNodeActivities = names_of(NodeActivity{}).size();

constexpr std::string_view name_of(JobPhase phase) { return names_of(phase)[static_cast<std::size_t>(phase)]; }
constexpr std::string_view name_of(RoundCause cause) { return names_of(cause)[static_cast<std::size_t>(cause)]; }
constexpr std::string_view name_of(MemberPlace place) { return names_of(place)[static_cast<std::size_t>(place)]; }
constexpr std::string_view name_of(NodeActivity does) { return names_of(does)[static_cast<std::size_t>(does)]; }

}  // namespace elastic
