// What PyTorch's flight recorder has dumped in a job of three gloo ranks: rank 1 sleeps, ranks 0 and 2 wait for it in
// their fourth collective of the default group. record_flight_recorder.py records it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "health/evidence/flight_recorder.h"
#include "health/evidence/pickle_tree.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::evidence;

namespace {

constexpr int kSleeper = 1;

std::string recorded(int rank, const std::string& ending) {
  const char* other = std::getenv("ELASTIC_RUN_FLIGHT_RECORDINGS");
  std::ifstream file(format("{}/rank-{}.{}", other != nullptr ? other : FLIGHT_RECORDINGS, rank, ending),
                     std::ios::binary);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

const FlightGroup& group_of(const FlightFacts& facts, const std::string& description) {
  const auto found = std::ranges::find(facts.groups, description, &FlightGroup::description);
  REQUIRE(found != facts.groups.end());
  return *found;
}

void check_facts(const FlightFacts& facts, int rank) {
  CHECK_FALSE(facts.is_cut);
  CHECK(facts.oldest_record == 0);
  CHECK(facts.entries_left_out == 0);
  const bool sleeps = rank == kSleeper;
  CHECK(facts.groups.size() == (sleeps ? 1 : 2));

  const FlightGroup& world = group_of(facts, "default_pg");
  CHECK(world.enqueued == (sleeps ? 3 : 4));
  CHECK(world.completed == 3);
  CHECK(world.started == 3);
  // One send or receive is counted, too, which the entries do not have.
  CHECK(world.counted_enqueued == (sleeps ? 3 : 5));
  CHECK(world.counted_completed == (sleeps ? 3 : 4));
  CHECK_FALSE(world.counted_started);
  REQUIRE(world.newest);
  CHECK(world.newest->backend == "gloo");
  CHECK(world.newest->name == "all_reduce");
  CHECK(world.newest->sequence == (sleeps ? 3 : 4));
  CHECK(world.newest->is_over == sleeps);
  CHECK(world.newest->state == FlightOperation::State::kScheduled);
  CHECK_FALSE(world.newest->is_p2p);
  CHECK(world.newest->sizes == (sleeps ? "4x2" : "2x2"));
  CHECK(world.newest->dtype == "Float");

  if (sleeps) return;
  const FlightGroup& pair = group_of(facts, "pair");
  CHECK(pair.enqueued == 1);
  CHECK(pair.completed == 1);
  CHECK(pair.newest->is_over);
}

}  // namespace

TEST_CASE("the dumps that PyTorch wrote, as files and as JSON, say who waits and who has not come") {
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const auto from_pickle = flight_facts_of_pickle(recorded(rank, "pickle"));
    REQUIRE(from_pickle);
    check_facts(*from_pickle, rank);
    const auto from_json = flight_facts_of_json(recorded(rank, "json"));
    REQUIRE(from_json);
    check_facts(*from_json, rank);
    CHECK(from_json->version == from_pickle->version);
    const auto digest = [](const FlightFacts& facts) { return group_of(facts, "default_pg").newest->input_digest; };
    CHECK(digest(*from_json) == digest(*from_pickle));
  }
}

TEST_CASE("a dump that PyTorch wrote is read wherever it is cut off, and never says more than the whole one") {
  const std::string bytes = recorded(0, "pickle");
  const auto whole = flight_facts_of_pickle(bytes);
  REQUIRE(whole);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const auto facts = flight_facts_of_pickle(bytes.substr(0, size));
    if (!facts) continue;
    CHECK(facts->is_cut);
    CHECK(facts->entries < whole->entries);
    for (const FlightGroup& group : facts->groups)
      CHECK(group.enqueued <= group_of(*whole, group.description).enqueued);
  }
}
