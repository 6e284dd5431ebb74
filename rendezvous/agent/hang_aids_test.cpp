#include "rendezvous/agent/hang_aids.h"

#include <doctest/doctest.h>

#include "health/hang/hang_test_support.h"
#include "src/base/overloaded.h"

namespace elastic::agent {
namespace {
using namespace protocol;

template <class Message>
const Message* sent(const Effects& effects) {
  if (effects.size() != 1) return nullptr;
  const auto* to = std::get_if<ToCoordinator>(&effects.front());
  return to == nullptr ? nullptr : std::get_if<Message>(&to->message);
}

struct Round {
  Round() { aids.round_began(4); }
  Effects on(const auto& event) {
    Effects out;
    Overloaded{[&](const CollectEvidence& e) { aids.collect(e, out); },
               [&](const EvidenceRead& e) { aids.send_evidence(e, out); },
               [&](const HangTold& e) { aids.tell_hang(e, out); }, [&](const HangOver& e) { aids.tell_over(e, out); },
               [&](const StopWorkers& e) { aids.note_stop(e, out); }}(event);
    return out;
  }
  Effects sees(const HangFacts& facts, bool disks_move = false, RoundNumber round = 4) {
    Effects out;
    aids.see_signs(SignsSeen{round, facts, disks_move}, now_ms, out);
    return out;
  }
  HangAids aids;
  std::int64_t now_ms = 1'000;
};

TEST_CASE("evidence that the coordinator asks for is read, and sent with the number of the collection") {
  Round node;
  const Effects asked = node.on(CollectEvidence{.round = 4, .collection = 2, .within_ms = 9'000});
  REQUIRE(asked.size() == 1);
  CHECK(std::get<ReadEvidence>(asked[0]).order.within_ms == 9'000);
  hang::HungJob job(1, 2);
  CHECK(node.on(EvidenceRead{4, 1, job.facts.nodes[0]}).empty());  // of an older collection
  const Effects read = node.on(EvidenceRead{4, 2, job.facts.nodes[0]});
  const auto* message = sent<NodeEvidence>(read);
  REQUIRE(message != nullptr);
  CHECK(message->collection == 2);
  CHECK(decode_facts(message->facts) == job.facts.nodes[0]);
  CHECK(node.on(EvidenceRead{4, 2, job.facts.nodes[0]}).empty());  // it is sent once
  CHECK(node.on(CollectEvidence{.round = 3, .collection = 1}).empty());
}

TEST_CASE("evidence is read no more when the alarm is withdrawn, and when the round ends") {
  Round node;
  node.on(CollectEvidence{.round = 4, .collection = 1});
  const Effects over = node.on(HangOver{.round = 4, .why = HangOver::Why::kWithdrawn});
  REQUIRE(over.size() == 2);
  CHECK(std::holds_alternative<StopEvidence>(over[0]));
  CHECK(std::holds_alternative<TellHangOver>(over[1]));
  CHECK(node.on(EvidenceRead{4, 1, {}}).empty());

  node.on(CollectEvidence{.round = 4, .collection = 2});
  CHECK(node.aids.round_ends());
  CHECK_FALSE(node.aids.round_ends());
  CHECK(node.on(EvidenceRead{4, 2, {}}).empty());
  CHECK(node.on(CollectEvidence{.round = 4, .collection = 3}).empty());
}

TEST_CASE("what the coordinator has found of a round is told, also where its workers have ended before that came") {
  for (const bool ends_first : {false, true}) {
    CAPTURE(ends_first);
    Round node;
    if (ends_first) node.aids.round_ends();
    CHECK(node.on(HangTold{.round = 3}).empty());
    const Effects told = node.on(HangTold{.round = 4, .text = "no progress for 12 s"});
    REQUIRE(told.size() == 1);
    CHECK(std::get<TellHang>(told[0]).told.text == "no progress for 12 s");
    CHECK(node.on(HangOver{.round = 3}).empty());
    CHECK(std::holds_alternative<TellHangOver>(node.on(HangOver{.round = 4}).at(0)));
    node.aids.round_began(5);
    CHECK(node.on(HangTold{.round = 4}).empty());
  }
}

TEST_CASE("a node that is to stop for a hang of which it has heard no verdict says that") {
  const StopWorkers order{.round = 4, .hangs = true};
  Round node;
  CHECK(node.on(StopWorkers{.round = 3, .hangs = true}).empty());
  CHECK(node.on(StopWorkers{.round = 4}).empty());
  node.on(HangTold{.round = 4, .what = HangTold::What::kNotArmed});
  const Effects untold = node.on(order);
  REQUIRE(untold.size() == 1);
  CHECK(std::get<Warn>(untold[0]).event == "hang_verdict_missing");
  node.on(HangTold{.round = 4});
  CHECK(node.on(order).empty());
  node.on(HangOver{.round = 4});
  CHECK(node.on(order).size() == 1);  // the node has heard no verdict of this one
}

TEST_CASE("the coordinator is told of signs when they change, and of disks and signs that hold now and then") {
  Round node;
  CHECK(node.sees({}).empty());
  const Effects first = node.sees({.is_stopped = true});
  REQUIRE(sent<HangSigns>(first) != nullptr);
  CHECK(*sent<HangSigns>(first) == HangSigns{4, {.is_stopped = true}, false});
  node.now_ms += 4'999;
  CHECK(node.sees({.is_stopped = true}).empty());
  node.now_ms += 1;
  CHECK(sent<HangSigns>(node.sees({.is_stopped = true})) != nullptr);  // another coordinator may have taken over
  CHECK(sent<HangSigns>(node.sees({})) != nullptr);
  CHECK(sent<HangSigns>(node.sees({}, true))->disks_move);
  node.now_ms += 4'999;
  CHECK(node.sees({}, true).empty());
  node.now_ms += 1;
  CHECK(sent<HangSigns>(node.sees({}, true))->disks_move);
  CHECK(node.sees({.is_stopped = true}, false, 3).empty());
}

}  // namespace
}  // namespace elastic::agent
