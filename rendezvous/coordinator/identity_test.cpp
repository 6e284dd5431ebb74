#include "rendezvous/coordinator/identity.h"

#include <doctest/doctest.h>

#include "rendezvous/protocol/term.h"

using namespace elastic;
using coordinator::Identity;
using coordinator::Introduced;
using protocol::term_after;
using Met = Identity::Met;

namespace {

constexpr std::uint32_t kRandom = 0x1234;

Identity fresh() { return {1, 77, kRandom}; }

}  // namespace

TEST_CASE("a coordinator without a round takes over the agent's job, with a higher term") {
  Identity identity = fresh();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, false, false) == Met::kJob);
  CHECK(identity.incarnation() == 5);
  CHECK(identity.term() == term_after(3, kRandom));
  CHECK(identity.met_others());
}

TEST_CASE("a coordinator keeps its term where that is higher already") {
  Identity identity(term_after(term_after(3, 1), 1), 77, kRandom);
  const protocol::Term before = identity.term();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, false, false) == Met::kJob);
  CHECK(identity.term() == before);
}

TEST_CASE("an agent that was in no round, but with another coordinator, raises the term and is remembered") {
  Identity identity = fresh();
  CHECK(identity.meet({.incarnation = 0, .term = 3}, false, false) == Met::kNothingNew);
  CHECK(identity.met_others());
  CHECK(identity.incarnation() == 77);
  CHECK(identity.term() == term_after(3, kRandom));
  Identity running = fresh();
  CHECK(running.meet({.incarnation = 0, .term = 0}, true, false) == Met::kNothingNew);
  CHECK(!running.met_others());
  CHECK(running.term() == 1);
}

TEST_CASE("a coordinator with a round keeps its job, and raises its term above that of an agent of another") {
  Identity identity = fresh();
  CHECK(identity.meet({.incarnation = 5, .term = 3}, true, false) == Met::kNothingNew);
  CHECK(identity.incarnation() == 77);
  CHECK(identity.term() == term_after(3, kRandom));
}

TEST_CASE("an agent of the same job that has met a later coordinator ends this one") {
  Identity identity = fresh();
  CHECK(identity.meet({.incarnation = 77, .term = 1}, true, false) == Met::kNothingNew);
  CHECK(identity.meet({.incarnation = 77, .term = 3}, true, false) == Met::kSuccessor);
  CHECK(identity.term() == 1);
}

TEST_CASE("while it has decided nothing, a coordinator goes before the later one, which may have died") {
  Identity identity = fresh();
  CHECK(identity.meet({.incarnation = 77, .term = 3}, true, true) == Met::kNothingNew);
  CHECK(identity.term() == term_after(3, kRandom));
}
