#include "rendezvous/protocol/hang_parts.h"

#include <doctest/doctest.h>

#include "health/hang/hang_test_support.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/test_messages.h"

namespace elastic::protocol {
namespace {

using hang::Source;

hang::NodeFacts some_facts() {
  hang::HungJob job(1, 4);
  hang::NodeFacts& facts = job.facts.nodes[0];
  facts.xid = 79;
  facts.groups.push_back({"tp_0", hang::RankRuns::of({0, 1}), 17, 2});
  facts.group_facts.push_back({0, hang::RankRuns::of({0}), 7, 6, "all_reduce", 99, 1});
  facts.ranks[1].recorder = {Source::kHad};
  facts.ranks[2].gpu_watts = 118.5;
  facts.ranks[2].gpu_model = 17;
  facts.store.emplace().absent = hang::RankRuns::of({3});
  facts.ras.emplace().missing = hang::RankRuns::of({2});
  return facts;
}

TEST_CASE("the facts of a node about a hang survive their bytes") {
  const hang::NodeFacts facts = some_facts();
  CHECK(decode_facts(encode_facts(facts)) == facts);
}

TEST_CASE("facts that one message cannot hold are sent without what is longest, and say so") {
  hang::NodeFacts facts = some_facts();
  for (int i = 0; i < 20'000; ++i) facts.group_facts.push_back(facts.group_facts.front());
  auto sent = decode_facts(encode_facts(facts));
  REQUIRE(sent);
  CHECK(sent->group_facts.empty());
  CHECK(sent->groups.empty());
  CHECK(sent->ranks[1].recorder.state == Source::kLost);
  CHECK(sent->ranks[0].recorder.state == Source::kNotAsked);
  CHECK(sent->different_stacks == facts.different_stacks);

  hang::HungJob many(1, 4096);
  const std::string bytes = encode_facts(many.facts.nodes[0]);
  CHECK(bytes.size() <= limits::kHangEvidenceBytes);
  sent = decode_facts(bytes);
  REQUIRE(sent);
  CHECK(sent->own_ranks == many.facts.nodes[0].own_ranks);
  CHECK(sent->stacks.state == Source::kLost);
  CHECK(sent->ranks.size() == 256);
}

TEST_CASE("bytes that are no facts of a node are none, whatever they are") {
  CHECK_FALSE(decode_facts(""));
  const std::string whole = encode_facts(some_facts());
  test::Dice dice(26);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole.substr(0, dice.number() % (whole.size() + 1));
    for (std::uint64_t changes = dice.number() % 4; changes > 0 && !bytes.empty(); --changes) {
      bytes[dice.number() % bytes.size()] = static_cast<char>(dice.number());
    }
    if (const auto read = decode_facts(bytes)) {
      hang::within_bounds(*read, 4);
    }
  }
}

}  // namespace
}  // namespace elastic::protocol
