#include "rendezvous/coordinator/doors.h"

#include <doctest/doctest.h>

#include "rendezvous/coordinator/limits.h"

namespace elastic::coordinator {
namespace {

TEST_CASE("a round waits until each door that was tried has answered, or a second is over") {
  Doors doors;
  CHECK_FALSE(doors.awaited_until_ms(0));
  CHECK(doors.is_to_try(1, 0));
  CHECK(doors.is_to_try(2, 300));
  CHECK_FALSE(doors.is_to_try(2, 400));  // it is being tried
  CHECK(doors.awaited_until_ms(400) == 1300);
  doors.is_open(2);
  CHECK(doors.awaited_until_ms(400) == 1000);
  CHECK(doors.may_be_open(1));
  CHECK_FALSE(doors.awaited_until_ms(1000));
  CHECK_FALSE(doors.may_be_open(1));
  CHECK(doors.may_be_open(2));
  CHECK(doors.may_be_open(3));  // nobody has tried it
  CHECK_FALSE(doors.is_known_open(3));
  CHECK(doors.is_known_open(2));
}

TEST_CASE("a door that answers late is open after all") {
  Doors doors;
  CHECK(doors.is_to_try(1, 0));
  CHECK_FALSE(doors.awaited_until_ms(1000));
  CHECK_FALSE(doors.may_be_open(1));
  doors.is_open(1);
  CHECK(doors.may_be_open(1));
  doors.is_shut(1);  // an answer that nobody awaits any more
  CHECK(doors.may_be_open(1));
}

TEST_CASE("no more doors are tried than are wanted, and others take the places of those that are shut") {
  Doors doors;
  protocol::AgentId agent = 0;
  while (doors.is_to_try(++agent, 0)) {
  }
  CHECK(agent == limits::kDoorsWanted + 1);
  doors.is_shut(1);
  CHECK(doors.is_to_try(agent, 0));
  CHECK_FALSE(doors.is_to_try(agent + 1, 0));
  doors.forget(2);
  CHECK(doors.is_to_try(agent + 1, 0));
}

TEST_CASE("where all doors are shut a coordinator gives up trying") {
  Doors doors;
  protocol::AgentId agent = 0;
  while (doors.is_to_try(++agent, 0)) doors.is_shut(agent);
  CHECK(agent == limits::kDoorsTried + 1);
}

}  // namespace
}  // namespace elastic::coordinator
