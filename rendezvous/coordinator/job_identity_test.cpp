#include "rendezvous/coordinator/job_identity.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "rendezvous/protocol/fence.h"
#include "rendezvous/protocol/term.h"

using namespace elastic;
using coordinator::Introduced;
using coordinator::JobIdentity;
using protocol::term_after;
using Met = JobIdentity::Met;

namespace {

constexpr std::uint32_t kRandom = 0x1234;

constexpr std::int64_t kBirthMs = 1000;

JobIdentity fresh() { return JobIdentity({1, 77, kRandom, kBirthMs}); }

protocol::AgentFacts born(protocol::Incarnation incarnation, std::int64_t birth_ms) {
  return {.incarnation = incarnation, .birth_ms = birth_ms};
}

}  // namespace

TEST_CASE("a coordinator without a round takes over the agent's job, with a higher term") {
  JobIdentity identity = fresh();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, false, false) == Met::kJob);
  CHECK(identity.incarnation() == 5);
  CHECK(identity.term() == term_after(3, kRandom));
  CHECK(identity.met_others());
}

TEST_CASE("a start of the job of which no node has reported a round is not gone on with") {
  JobIdentity identity = fresh();
  CHECK(!identity.begins_anew());
  CHECK(identity.incarnation() == 77);
  identity.meet({.incarnation = 5, .term = 3}, false, false);
  CHECK(identity.begins_anew());
  CHECK(identity.incarnation() == 77);
  CHECK(identity.term() == term_after(3, kRandom));
  CHECK(identity.fence().birth_ms == kBirthMs);
}

TEST_CASE("a coordinator keeps its term where that is higher already") {
  JobIdentity identity({term_after(term_after(3, 1), 1), 77, kRandom, kBirthMs});
  const protocol::Term before = identity.term();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, false, false) == Met::kJob);
  CHECK(identity.term() == before);
}

TEST_CASE("an agent that was in no round, but with another coordinator, raises the term and is remembered") {
  JobIdentity identity = fresh();
  CHECK(identity.meet({.incarnation = 0, .term = 3}, false, false) == Met::kNothingNew);
  CHECK(identity.met_others());
  CHECK(identity.incarnation() == 77);
  CHECK(identity.term() == term_after(3, kRandom));
  JobIdentity running = fresh();
  CHECK(running.meet({.incarnation = 0, .term = 0}, true, false) == Met::kNothingNew);
  CHECK(!running.met_others());
  CHECK(running.term() == 1);
}

TEST_CASE("a coordinator with a round keeps its job, and raises its term above that of an agent of another") {
  JobIdentity identity = fresh();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, true, false) == Met::kNothingNew);
  CHECK(identity.incarnation() == 77);
  CHECK(identity.term() == term_after(3, kRandom));
}

TEST_CASE("an agent of the same job that has met a later coordinator ends this one") {
  JobIdentity identity = fresh();
  CHECK(identity.meet({.incarnation = 77, .term = 1}, true, false) == Met::kNothingNew);
  CHECK(identity.meet({.incarnation = 77, .term = 3}, true, false) == Met::kLaterCoordinator);
  CHECK(identity.term() == 1);
}

TEST_CASE("while it has decided nothing, a coordinator goes before the later one, which may have died") {
  JobIdentity identity = fresh();
  CHECK(identity.meet({.incarnation = 77, .term = 3}, true, true) == Met::kNothingNew);
  CHECK(identity.term() == term_after(3, kRandom));
}

TEST_CASE("a coordinator begins its incarnation at its own birth, whatever nodes without a job report") {
  JobIdentity identity = fresh();
  CHECK(identity.fence() == protocol::Fence{kBirthMs, 1});
  identity.hear_of_birth(born(0, 5000), false);
  CHECK(identity.fence().birth_ms == kBirthMs);
}

TEST_CASE("the birth of a job that is taken over is the one that its nodes report, also if it is later than ours") {
  for (const std::int64_t reported_ms : {kBirthMs - 900, kBirthMs + 900}) {
    JobIdentity identity = fresh();
    identity.meet({.incarnation = 5, .term = 3}, false, false);
    identity.hear_of_birth(born(5, reported_ms), false);
    CHECK(identity.fence().birth_ms == reported_ms);
    CHECK(identity.fence().term == identity.term());
  }
}

TEST_CASE("a start of the job that is taken up after another one has ended here is born after that") {
  for (const std::int64_t least_ms : {kBirthMs - 950, kBirthMs - 850}) {
    JobIdentity identity({.incarnation = 77, .birth_ms = kBirthMs, .least_birth_ms = least_ms});
    identity.meet({.incarnation = 5, .term = 3}, false, false);
    identity.hear_of_birth(born(5, kBirthMs - 900), false);
    CHECK(identity.fence().birth_ms == std::max(least_ms, kBirthMs - 900));
  }
}

TEST_CASE("the birth of a job whose round is known never falls") {
  JobIdentity identity = fresh();
  identity.hear_of_birth(born(77, kBirthMs - 1), true);
  CHECK(identity.fence().birth_ms == kBirthMs);
  identity.hear_of_birth(born(77, kBirthMs + 1), true);
  CHECK(identity.fence().birth_ms == kBirthMs + 1);
}

TEST_CASE("an incarnation is later than every other one that nodes report, however wrong our clock is") {
  JobIdentity identity = fresh();
  identity.hear_of_birth(born(5, kBirthMs - 10), true);
  CHECK(identity.fence().birth_ms == kBirthMs);
  identity.hear_of_birth(born(5, kBirthMs + 10), true);
  CHECK(identity.fence().birth_ms == kBirthMs + 11);
}

TEST_CASE("a birth that makes no sense does no harm") {
  JobIdentity identity = fresh();
  identity.hear_of_birth(born(77, -1), false);
  identity.hear_of_birth(born(5, std::numeric_limits<std::int64_t>::min()), false);
  CHECK(identity.fence().birth_ms == kBirthMs);
  identity.hear_of_birth(born(5, std::numeric_limits<std::int64_t>::max()), false);
  identity.hear_of_birth(born(77, std::numeric_limits<std::int64_t>::max()), true);
  CHECK(identity.fence().birth_ms == protocol::kLatestBirthMs);
}
