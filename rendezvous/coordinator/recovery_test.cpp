#include "rendezvous/coordinator/recovery.h"

#include <doctest/doctest.h>

using namespace elastic;
using coordinator::Recovery;
using coordinator::Slots;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::AgentFacts;
using Activity = protocol::AgentFacts::Activity;
using Kind = Recovery::Decision::Kind;

namespace {

constexpr protocol::LeaseTimes kLease;
const std::int64_t kWaitedMs = kLease.over_ms();  // workers may run until then if the election is at 0 ms

// Round 7 of so many nodes, which an earlier coordinator formed. It is taken over at 0 ms. Agents have the numbers of
// their node ranks.
struct TakenOver {
  explicit TakenOver(int nodes) : count(nodes) { recovery.begin(facts(0), kLease, 0); }

  AgentFacts facts(int rank, Activity activity = Activity::kRunning) const {
    return {.incarnation = 5,
            .round = 7,
            .activity = activity,
            .place = {.node_rank = rank, .node_count = count},
            .membership = membership};
  }
  void back(int rank, Activity activity = Activity::kRunning) {
    Node node;
    node.agent = static_cast<protocol::AgentId>(rank);
    node.session = static_cast<protocol::NodeId>(rank);
    roster.add(std::move(node), MemberState::kMember);
    slots.push_back({static_cast<protocol::AgentId>(rank), rank});
    recovery.comes_back(activity);
  }
  void connect(int rank) {
    const auto id = static_cast<protocol::AgentId>(rank);
    roster.set_session(*roster.find(id), static_cast<protocol::NodeId>(rank));
  }
  void cut_off(int rank) { roster.set_session(*roster.find(static_cast<protocol::AgentId>(rank)), {}); }
  Recovery::Decision at(std::int64_t now_ms) {
    return recovery.decide({.slots = slots,
                            .roster = roster,
                            .job_ends = job_ends,
                            .out = out,
                            .caught_up_ms = caught_up_ms,
                            .now_ms = now_ms});
  }

  // The same for a coordinator that nodes have elected.
  Recovery::Decision elected_at(std::int64_t now_ms) {
    return recovery.decide({.slots = slots,
                            .roster = roster,
                            .counts_votes = true,
                            .out = out,
                            .caught_up_ms = caught_up_ms,
                            .now_ms = now_ms});
  }

  int count;
  std::uint64_t membership = 99;
  Recovery recovery;
  Slots slots;
  Roster roster;
  std::vector<int> out = {};
  bool job_ends = false;
  std::int64_t caught_up_ms = 0;
};

}  // namespace

TEST_CASE("a round whose nodes are all back and run goes on at once") {
  TakenOver job(2);
  CHECK(!job.recovery.grants_leases());
  job.back(0);
  CHECK(job.at(10).until_ms == kLease.all_back_ms());
  CHECK(!job.recovery.grants_leases());
  job.back(1);
  const auto decision = job.at(20);
  CHECK(decision.kind == Kind::kGoesOn);
  CHECK(decision.node_count == 2);
  CHECK(!job.recovery.has_begun());
  CHECK(job.recovery.grants_leases());
}

TEST_CASE("leases are granted once all nodes of the round are connected at the same time") {
  TakenOver job(3);
  job.back(0);
  job.back(1);
  job.cut_off(1);
  job.back(2);
  CHECK(job.at(20).kind == Kind::kWaits);
  CHECK(!job.recovery.grants_leases());
  job.connect(1);
  CHECK(job.at(30).kind == Kind::kGoesOn);
  CHECK(job.recovery.grants_leases());
}

TEST_CASE("nodes that only stop may have missed a later round: the coordinator waits for other reports") {
  TakenOver job(2);
  job.back(0, Activity::kStopping);
  job.back(1, Activity::kSucceeded);
  job.recovery.stop();
  const auto decision = job.at(10);
  CHECK(decision.kind == Kind::kWaits);
  CHECK(decision.until_ms == kLease.all_back_ms());
  const auto after = job.at(kLease.all_back_ms());
  CHECK(after.kind == Kind::kStops);
  CHECK(after.missed.empty());
}

TEST_CASE("nodes that are not back in time are missed, each charged once when it joins again") {
  TakenOver job(5);
  job.back(4);
  job.back(0);
  job.back(2);
  job.recovery.elected(kWaitedMs, 0);
  CHECK(job.elected_at(kWaitedMs - 1).kind == Kind::kWaits);
  const auto decision = job.elected_at(kWaitedMs);
  CHECK(decision.kind == Kind::kStops);
  CHECK(decision.missed == std::vector<int>{1, 3});
  CHECK(job.recovery.was_missed(job.facts(3)));
  CHECK(!job.recovery.was_missed(job.facts(3)));
  CHECK(!job.recovery.was_missed(job.facts(2)));
  AgentFacts other = job.facts(1);
  other.round = 6;
  CHECK(!job.recovery.was_missed(other));
  other = job.facts(1);
  other.incarnation = 6;
  CHECK(!job.recovery.was_missed(other));
  CHECK(job.recovery.was_missed(job.facts(1)));
}

TEST_CASE("nodes that are out of the job are waited for as long as their workers may run, and are not missed") {
  TakenOver job(4);
  job.out = {1};
  job.back(0);
  job.back(2);
  job.recovery.elected(kWaitedMs, 0);
  CHECK(job.elected_at(kWaitedMs - 1).kind == Kind::kWaits);
  const auto decision = job.elected_at(kWaitedMs);
  CHECK(decision.kind == Kind::kStops);
  CHECK(decision.missed == std::vector<int>{3});
  CHECK(!job.recovery.was_missed(job.facts(1)));
}

TEST_CASE("what arrived while this process did not run is read before nodes are missed") {
  TakenOver job(3);
  job.back(0);
  job.back(1);
  job.recovery.elected(kWaitedMs, 0);
  job.caught_up_ms = 9000;
  CHECK(job.elected_at(8999).until_ms == 9000);
  CHECK(job.elected_at(9000).kind == Kind::kStops);
}

TEST_CASE("where nobody votes the job fails if not all nodes were here at once while their leases lasted") {
  TakenOver job(4);
  std::string why;
  SUBCASE("some never came") {
    job.back(1);
    job.back(3);
    job.cut_off(3);  // its lease is over
    why = "only 2 came back to it (node ranks 1, 3)";
  }
  SUBCASE("one had gone again before the last came") {
    for (int rank = 0; rank < 4; ++rank) {
      job.back(rank, rank == 3 ? Activity::kStopping : Activity::kSucceeded);
      if (rank == 0) job.cut_off(0);
    }
    why = "some had gone again when the last came back to it";
  }
  CHECK(job.at(kLease.all_back_ms() - 1).kind == Kind::kWaits);
  const auto decision = job.at(kLease.all_back_ms());
  CHECK(decision.kind == Kind::kFails);
  CHECK(decision.why == "the coordinator was lost, and of the 4 nodes of round 7 " + why +
                            ": where no other node can lead the job all are needed at once, within their leases");
}

TEST_CASE("a candidate that lacks votes waits: it gives no job result, but resigns when its time is up") {
  TakenOver job(3);
  job.back(1);
  const std::int64_t now_ms = 10 * kLease.all_back_ms();
  const auto decision = job.recovery.decide(
      {.slots = job.slots, .roster = job.roster, .counts_votes = true, .needs_election = true, .now_ms = now_ms});
  CHECK(decision.kind == Kind::kWaits);
  CHECK(decision.until_ms == now_ms + kLease.renewal_ms());
  CHECK(!job.recovery.grants_leases());
}

TEST_CASE("a job that ends anyway needs nobody") {
  TakenOver job(3);
  job.back(1);
  job.job_ends = true;
  CHECK(job.at(kLease.all_back_ms()).kind == Kind::kStops);
}

TEST_CASE("a report is of the round that is taken over if number, incarnation and members are the same") {
  TakenOver job(2);
  CHECK(job.recovery.is_of_round(job.facts(1)));
  AgentFacts facts = job.facts(1);
  facts.membership = 98;
  CHECK(!job.recovery.is_of_round(facts));
  facts = job.facts(1);
  facts.round = 8;
  CHECK(!job.recovery.is_of_round(facts));
  facts = job.facts(1);
  facts.incarnation = 6;
  CHECK(!job.recovery.is_of_round(facts));
  CHECK(!Recovery().is_of_round(job.facts(1)));
}

TEST_CASE(
    "an elected coordinator waits for a node that campaigns without enough votes, as long as workers may run there") {
  const protocol::LeaseTimes lease{2'000};
  constexpr std::int64_t kFindMs = protocol::LeaseTimes::kFindMs;
  constexpr std::int64_t kKillMs = protocol::LeaseTimes::kKillMs;  // what the voters say after a silence
  for (const auto& [others_may_run_until_ms, until_ms] : {std::pair<std::int64_t, std::int64_t>{0, kFindMs},
                                                          {kKillMs, kFindMs},
                                                          {kKillMs + 1, lease.next_vote_ms() + kFindMs},
                                                          {1'300, lease.next_vote_ms() + kFindMs}}) {
    CAPTURE(others_may_run_until_ms);
    TakenOver round(3);
    round.recovery.begin(round.facts(0), lease, 0);
    round.back(0);
    round.back(1);
    round.recovery.elected(others_may_run_until_ms, 0);
    CHECK(round.elected_at(until_ms - 1).kind == Kind::kWaits);
    CHECK(round.elected_at(until_ms).kind == Kind::kStops);
  }
}

TEST_CASE("a round is not waited for whose other nodes are known to be empty") {
  TakenOver round(3);
  round.membership = coordinator::membership_digest(5, 7, {10, 1, 12});
  round.recovery.begin(round.facts(1), kLease, 0);
  round.back(1);
  round.recovery.elected(3'000, 0);
  CHECK(round.elected_at(1).kind == Kind::kWaits);
  round.recovery.is_empty(12);
  CHECK(round.elected_at(1).kind == Kind::kWaits);
  SUBCASE("who was in no such round does not count") {
    round.recovery.is_empty(11);
    CHECK(round.elected_at(1).kind == Kind::kWaits);
  }
  SUBCASE("all are known") {
    round.recovery.is_empty(10);
    const Recovery::Decision decision = round.elected_at(1);
    CHECK(decision.kind == Kind::kStops);
    CHECK(decision.missed == std::vector<int>{0, 2});
  }
}
