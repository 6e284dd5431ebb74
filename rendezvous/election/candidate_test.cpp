#include "rendezvous/election/candidate.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::election;
using protocol::AgentId;

namespace {

constexpr protocol::LeaseTimes kTimes;
constexpr std::int64_t kHeld = 3'960;

// A round that the coordinator of term 1 formed, on the node of rank 0.
Round round_of(protocol::RoundNumber number, int node_count) {
  return {.term = 1, .number = number, .membership = number + 100U, .node_count = node_count, .tie_breaker = 0};
}

// A voter that has run this round with this rank.
VoterState ran(const Round& round, int rank) { return {.rounds = {{.round = round, .rank = rank, .has_run = true}}}; }

// The same voter after it has witnessed the death of the coordinator of term 1, on the node of rank 0.
VoterState certified(const Round& round, int rank) {
  VoterState voter_state = ran(round, rank);
  voter_state.witnessed_death = WitnessedDeath{.round = round, .term = 1, .rank = 0};
  return voter_state;
}

// A voter that has run the first round, and heard of the second.
VoterState heard(const Round& first, int rank, const Round& second, std::optional<int> second_rank) {
  VoterState voter_state = ran(first, rank);
  voter_state.rounds.push_back({.round = second, .rank = second_rank});
  return voter_state;
}

// A candidate in the process of agent 11. Agents vote for it at 0 ms, and acknowledge its lease grant at once. An
// agent's number is its node rank plus ten.
struct Election {
  Candidate candidate{kTimes, 11};

  Election& votes(int rank, const VoterState& voter_state) {
    const auto agent = static_cast<AgentId>(10 + rank);
    candidate.votes(agent, voter_state, 0, 0);
    candidate.acknowledges(agent, 0);
    return *this;
  }
  bool is_won() const { return candidate.elected(0).has_value(); }
};

}  // namespace

TEST_CASE("more than half of the last round elects a coordinator, and half of it with the old one's node") {
  const Round four = round_of(3, 4);
  CHECK_FALSE(Election().votes(1, ran(four, 1)).votes(2, ran(four, 2)).is_won());
  CHECK(Election().votes(1, ran(four, 1)).votes(2, ran(four, 2)).votes(3, ran(four, 3)).is_won());
  CHECK(Election().votes(1, ran(four, 1)).votes(0, ran(four, 0)).is_won());
  const Round two = round_of(3, 2);
  CHECK_FALSE(Election().votes(1, ran(two, 1)).is_won());
  // A node that knows of no round elects nobody.
  CHECK_FALSE(Election().votes(1, {}).votes(2, {}).is_won());
}

TEST_CASE("with a witnessed death the dead coordinator's node is not counted") {
  const Round two = round_of(3, 2);
  CHECK(Election().votes(1, certified(two, 1)).is_won());
  const Round three = round_of(3, 3);
  CHECK(Election().votes(1, certified(three, 1)).is_won());
  CHECK_FALSE(Election().votes(2, certified(three, 2)).is_won());
  const Round five = round_of(3, 5);
  CHECK_FALSE(Election().votes(2, certified(five, 2)).votes(3, ran(five, 3)).is_won());
  CHECK(Election().votes(1, certified(five, 1)).votes(3, ran(five, 3)).is_won());
  CHECK_FALSE(Election().votes(1, ran(five, 1)).votes(3, ran(five, 3)).is_won());
  // A death that was witnessed in another round says nothing of this one.
  VoterState other = ran(five, 1);
  other.witnessed_death = WitnessedDeath{.round = round_of(2, 5), .term = 1, .rank = 0};
  CHECK_FALSE(Election().votes(1, other).votes(3, ran(five, 3)).is_won());
}

TEST_CASE("of two witnessed deaths of one round that of the later coordinator holds") {
  const Round four = round_of(3, 4);
  VoterState later = certified(four, 2);
  later.witnessed_death->term = 8;
  later.witnessed_death->rank = 1;
  // Without node 1 the voters are 0, 2 and 3; without node 0 they would be 1, 2 and 3.
  CHECK(Election().votes(0, ran(four, 0)).votes(2, later).is_won());
  CHECK_FALSE(Election().votes(1, certified(four, 1)).votes(2, later).is_won());
}

TEST_CASE("nobody is elected before the voters have acknowledged a lease grant, nor on votes that are over") {
  const Round three = round_of(3, 3);
  Candidate candidate(kTimes, 11);
  candidate.votes(11, ran(three, 1), 0, 0);
  CHECK_FALSE(candidate.has_quorum(0));
  candidate.votes(12, ran(three, 2), 100, 110);
  CHECK(candidate.has_quorum(110));
  CHECK_FALSE(candidate.elected(110));
  CHECK_FALSE(candidate.has_quorum(100 + kHeld));
  candidate.acknowledges(99, 120);
  CHECK_FALSE(candidate.elected(120));
  candidate.acknowledges(12, 120);
  CHECK_FALSE(candidate.elected(120 + kHeld));
  const auto elected = candidate.elected(130);
  REQUIRE(elected);
  CHECK(elected->lease.authority().ends_ms() == 120 + kHeld);
  CHECK(elected->lease.before() == std::vector<Round>{three});
}

TEST_CASE("the latest round of which a voter knows that it ran is the one that counts") {
  const Round old = round_of(3, 5);
  const Round now = round_of(4, 3);
  Election election;
  election.votes(2, ran(old, 2)).votes(3, ran(old, 3)).votes(4, ran(old, 4)).votes(1, ran(now, 1));
  CHECK_FALSE(election.is_won());
  CHECK(election.votes(0, ran(now, 0)).is_won());
  const auto elected = election.candidate.elected(0);
  CHECK(elected->lease.before() == std::vector<Round>{now});
}

TEST_CASE("if no voter knows whether the latest round ran, a quorum of the one before is needed, too") {
  const Round old = round_of(3, 4);
  const Round now = round_of(4, 3);
  Election election;
  election.votes(1, heard(old, 1, now, 1)).votes(2, heard(old, 2, now, 2));
  CHECK_FALSE(election.is_won());  // two of three, but only two of four
  CHECK(election.votes(0, ran(old, 0)).is_won());
  const auto elected = election.candidate.elected(0);
  CHECK(elected->lease.before() == std::vector<Round>{old, now});
  // One voter knows that the second round ran.
  VoterState knows = heard(old, 1, now, 1);
  knows.rounds = {knows.rounds.back()};
  knows.rounds.back().has_run = true;
  CHECK(Election().votes(1, knows).votes(2, heard(old, 2, now, 2)).is_won());
}

TEST_CASE("a round that a quorum of the one before has not heard of never ran, and is not needed") {
  const Round old = round_of(3, 5);
  const Round now = round_of(4, 5);
  Election election;
  election.votes(1, heard(old, 1, now, 1)).votes(2, ran(old, 2)).votes(3, ran(old, 3));
  CHECK_FALSE(election.is_won());
  CHECK(election.votes(4, ran(old, 4)).is_won());
  CHECK(election.candidate.elected(0)->lease.before() == std::vector<Round>{old});
}

TEST_CASE("nobody is elected on a first round that never ran: its coordinator needs no one, and may run another") {
  const Round first = round_of(0, 3);
  const VoterState prepared{.rounds = {{.round = first, .rank = 1}}};
  VoterState other = prepared;
  other.rounds.front().rank = 2;
  Election election;
  election.votes(1, prepared).votes(2, other);
  CHECK_FALSE(election.is_won());
  other.rounds.front().has_run = true;
  CHECK(election.votes(2, other).is_won());
}

TEST_CASE("after eight rounds that may be the last one nobody is elected") {
  for (const std::size_t count : {kMostLastRounds - 1, kMostLastRounds}) {
    VoterState voter_state = ran(round_of(0, 1), 0);
    voter_state.rounds.front().has_run = false;
    while (voter_state.rounds.size() < count) {
      const auto number = static_cast<protocol::RoundNumber>(voter_state.rounds.size());
      voter_state.rounds.push_back({.round = round_of(number, 1), .rank = 0});
    }
    CHECK(Election().votes(0, voter_state).is_won() == (count < kMostLastRounds));
  }
}

TEST_CASE("whose workers may still run is what the voters know of their last coordinator") {
  const Round three = round_of(3, 3);
  VoterState late = ran(three, 2);
  late.others_may_run_for_ms = 3'130;
  Candidate candidate(kTimes, 11);
  candidate.votes(11, ran(three, 1), 0, 0);
  candidate.votes(12, late, 50, 60);
  candidate.acknowledges(12, 70);
  CHECK(candidate.elected(80)->others_may_run_until_ms == 60 + 3'130);
}
