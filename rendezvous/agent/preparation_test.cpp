#include "rendezvous/agent/preparation.h"

#include <doctest/doctest.h>

#include "src/base/patience.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

const StoreEndpoint kStore{"10.0.0.1", 4000};

PrepareRound round_of(int node_rank) {
  return {.round = 4, .restart_count = 1, .place = {.node_rank = node_rank, .node_count = 2}, .admits = "10.0.0.2"};
}

Effects begin(Preparation& preparation, int node_rank) {
  Effects out;
  preparation.begin(round_of(node_rank), out);
  return out;
}

}  // namespace

TEST_CASE("only the node of group rank 0 opens the round's store, for the nodes that it admits") {
  Preparation preparation(false);
  CHECK(begin(preparation, 1).empty());
  const Effects effects = begin(preparation, 0);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<OpenStore>(effects[0]).admits == "10.0.0.2");
}

TEST_CASE("workers can start when the order has come and the log files are open, whichever is later") {
  for (const bool logs_first : {true, false}) {
    Preparation preparation(true);
    const Effects effects = begin(preparation, 1);
    CHECK(std::get<OpenLogs>(effects.at(0)).round == 4);
    CHECK(std::get<OpenLogs>(effects.at(0)).restart_count == 1);
    CHECK(std::get<StartTimer>(effects.at(1)).delay_ms == 2000);
    if (logs_first) preparation.logs_are_open();
    if (!logs_first) preparation.run_with(kStore);
    CHECK(preparation.ready() == nullptr);
    if (!logs_first) preparation.logs_are_open();
    if (logs_first) preparation.run_with(kStore);
    REQUIRE(preparation.ready() != nullptr);
    CHECK(*preparation.ready() == kStore);
  }
}

TEST_CASE("log files are awaited longer where others are given more time before they count as hung") {
  set_patience(3);
  Preparation preparation(true);
  const Effects effects = begin(preparation, 1);
  set_patience(1);
  CHECK(std::get<StartTimer>(effects.at(1)).delay_ms == 6000);
}

TEST_CASE("log files that are given up are awaited no more, and not ordered for a later round") {
  Preparation preparation(true);
  begin(preparation, 1);
  preparation.run_with(kStore);
  preparation.give_up_logs();
  CHECK(preparation.ready() != nullptr);
  CHECK(!preparation.has_logs());
  CHECK(begin(preparation, 1).empty());
  CHECK(preparation.ready() == nullptr);  // the order to run was for the round before
}

TEST_CASE("an answer about the store of an earlier round is none about this one's, however late it comes") {
  Preparation preparation(false);
  CHECK(!preparation.is_answered_about_this_store());  // nothing was ordered
  begin(preparation, 0);
  begin(preparation, 0);
  CHECK(!preparation.is_answered_about_this_store());
  CHECK(preparation.is_answered_about_this_store());
  CHECK(!preparation.is_answered_about_this_store());
}

TEST_CASE("a preparation says what it waits for: first the log files, then the phase of the check") {
  Preparation preparation(true);
  begin(preparation, 1);
  preparation.check(0);
  CHECK(preparation.waiting()->what == "waiting for the log directory");
  CHECK(preparation.waiting()->at_end == "going on without logs");
  preparation.logs_are_open();
  CHECK(preparation.waiting()->what == "check before training: nodes test themselves");
  preparation.check_is_answered();
  CHECK(preparation.waiting()->what ==
        "check before training: nodes test themselves; this node is done, others are still testing");
  preparation.check(2);
  CHECK(preparation.waiting()->what == "check before training: nodes test their links, phase 2");
  begin(preparation, 1);
  preparation.logs_are_open();
  CHECK(!preparation.checks());
  CHECK(!preparation.waiting());
}
