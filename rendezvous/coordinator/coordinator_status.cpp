// The job's status, for /status and /metrics.
#include <algorithm>
#include <functional>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "src/base/address.h"

namespace elastic::coordinator {

using membership::MemberState;
using membership::Node;

namespace {

// A peer may send any number.
constexpr std::int64_t kMostAgeMs = 1LL << 53;

status::Progress progress_of(const protocol::ProgressOfRank& said, std::int64_t since_ms) {
  return {.rank = said.rank,
          .step = said.step,
          .millisteps_per_second = said.millisteps_per_second,
          .age_ms = std::clamp<std::int64_t>(said.age_ms, 0, kMostAgeMs) + since_ms,
          .source = progress::name_of(said.source),
          .phase = progress::name_of(said.phase)};
}

// Keeps the better of two, according to `is_better`, which gets their ages.
template <class IsBetter>
void keep(std::optional<status::Progress>& kept, const status::Progress& other, const IsBetter& is_better) {
  if (!kept || is_better(other.age_ms, kept->age_ms)) kept = other;
}

MemberPlace place_of(const Node& node, bool is_round_on, bool is_checking) {
  switch (node.member_state()) {
    case MemberState::kReady: return is_round_on ? MemberPlace::kStandby : MemberPlace::kWaiting;
    case MemberState::kMember:
    case MemberState::kDone: return is_checking ? MemberPlace::kChecking : MemberPlace::kInRound;
    case MemberState::kStopping:
    case MemberState::kLeaving: return MemberPlace::kStopping;
    case MemberState::kLost: return MemberPlace::kLost;
  }
  return MemberPlace::kWaiting;
}

// The watch for hangs has the same states in the same order, after kOff.
static_assert(static_cast<std::size_t>(hang::HangState::kJudged) + 1 ==
              static_cast<std::size_t>(status::HangState::kJudged));

status::Hang told_of(const HangDesk::Told& told, std::int64_t now_ms) {
  status::Hang out{.round = std::int64_t{told.round},
                   .rule = told.verdict.rule,
                   .verdict = std::string(told.verdict.name),
                   .fault = hang::names_of(told.verdict.fault)[static_cast<std::size_t>(told.verdict.fault)],
                   .cause = told.verdict.cause,
                   .silent_ms = told.silent_ms,
                   .age_ms = std::max<std::int64_t>(now_ms - told.at_ms, 0),
                   .is_over = told.is_over};
  for (const hang::HangCulprit& culprit : told.verdict.culprits) {
    if (culprit.rank >= 0) out.ranks.push_back(culprit.rank);
    if (!culprit.node.empty() && (out.nodes.empty() || out.nodes.back() != culprit.node)) {
      out.nodes.push_back(culprit.node);
    }
  }
  return out;
}

status::HangLine line_of(const HangDesk::Hang& is, std::int64_t now_ms) {
  status::HangLine line{.silent_ms = is.silent_ms,
                        .phase = hang::names_of(is.phase)[static_cast<std::size_t>(is.phase)],
                        .told = is.told,
                        .recovered = is.recovered,
                        .withdrawn = is.withdrawn};
  if (is.is_watched) line.state = static_cast<status::HangState>(static_cast<std::size_t>(is.state) + 1);
  if (is.limit) {
    line.limit_ms = is.limit->limit_ms;
    line.limit_from = hang::names_of(is.limit->from)[static_cast<std::size_t>(is.limit->from)];
  }
  if (is.last != nullptr) line.last = told_of(*is.last, now_ms);
  return line;
}

}  // namespace

status::Job Coordinator::status(std::int64_t now_ms, std::size_t most_members,
                                const std::function<std::string(protocol::NodeId session)>& address_of) const {
  now_ms = std::max(now_ms, clock_.now_ms());
  status::Job job{.min_nodes = settings_.terms.min_nodes,
                  .max_nodes = settings_.terms.max_nodes,
                  .restarts_charged = settings_.budgets.restarts.used(),
                  .max_restarts = settings_.budgets.restarts.limit(),
                  .node_losses = settings_.budgets.losses.losses(),
                  .again_because = round_.again().because};
  if (round_.has_formed()) job.round = *round_.number();
  statistics_.fill_status(job, now_ms);
  for (const auto& [agent, node] : roster_.nodes()) {
    const MemberPlace place = place_of(node, is_in_round() && !is_recovering(), is_checking());
    ++job.nodes[static_cast<std::size_t>(place)];
    const bool is_in_round = place != MemberPlace::kWaiting && place != MemberPlace::kStandby;
    if (is_in_round) job.world_size = std::max<std::int64_t>(job.world_size, node.place.world_size);
    std::optional<status::Progress> newest;
    if (runs_workers() && is_in_round && node.progress && node.progress->round == round_.number()) {
      const std::int64_t since_ms = std::max<std::int64_t>(now_ms - node.progress_ms, 0);
      newest = progress_of(node.progress->newest, since_ms);
      keep(job.newest, *newest, std::less());
      keep(job.oldest, progress_of(node.progress->oldest, since_ms), std::greater());
      job.speakers += node.progress->speakers;
    }
    if (job.members.size() >= most_members) {
      ++job.members_left_out;
      continue;
    }
    job.members.push_back({.name = node.address,
                           .place = place,
                           .workers = node.shape.local_world_size,
                           .hosts_coordinator = node.hosts_coordinator,
                           .silent_ms = std::max<std::int64_t>(now_ms - node.last_heard_ms, 0)});
    job.members.back().progress = newest;
    if (node.peer_port != 0 && node.session && address_of) {
      job.members.back().peer_address = with_port(address_of(*node.session), node.peer_port);
    }
    if (is_in_round) job.members.back().node_rank = node.place.node_rank;
  }
  job.hang = line_of(hang_->status(now_ms), now_ms);
  job.nodes[static_cast<std::size_t>(MemberPlace::kQuarantined)] =
      static_cast<std::int64_t>(settings_.budgets.losses.quarantined(now_ms));
  job.nodes[static_cast<std::size_t>(MemberPlace::kUnhealthy)] = static_cast<std::int64_t>(check_.evicted().size());
  std::ranges::stable_sort(job.members, [](const status::Member& left, const status::Member& right) {
    return left.node_rank.value_or(INT32_MAX) < right.node_rank.value_or(INT32_MAX);
  });
  return job;
}

}  // namespace elastic::coordinator
