#include "rendezvous/coordinator/hang_charges.h"

#include <doctest/doctest.h>

#include "rendezvous/coordinator/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {
namespace {

using hang::Fault;
using Strings = std::vector<std::string>;

struct Job {
  explicit Job(int limit = 3, int of_nodes = 4, int at_least = 1) : nodes(of_nodes), least(at_least) {
    charges.allow(limit);
  }
  HangCharges::Decision charge(Fault fault, const Strings& names, const std::string& place = {}) {
    HangCharges::Hang hang{.fault = fault, .nodes = nodes, .standbys = standbys, .least = least};
    for (const std::string& name : names) hang.charged.push_back({name, "node " + name, place});
    return charges.charge(hang);
  }
  HangCharges charges;
  int nodes;
  int standbys = 0;
  int least;
};

TEST_CASE("a node is evicted for a hard fault at once, and for a soft one the second time") {
  Job job;
  CHECK(job.charge(Fault::kHard, {"a"}).out == Strings{"a"});
  const auto first = job.charge(Fault::kSoft, {"b"});
  CHECK(first.out.empty());
  CHECK(first.fatal.empty());
  CHECK(first.action == "restart (hang 2 of 3)");
  const auto second = job.charge(Fault::kSoft, {"b"});
  CHECK(second.out == Strings{"b"});
  CHECK(second.action == "restart, without node b (hang 3 of 3)");
}

TEST_CASE("a node with a soft fault is replaced at once where another is on standby") {
  Job job;
  job.standbys = 1;
  // One standby is there for the two nodes.
  CHECK(job.charge(Fault::kSoft, {"a", "b"}).out == Strings{"a"});
}

TEST_CASE("a fault that is no node's evicts nobody") {
  Job job;
  for (const Fault fault : {Fault::kNone, Fault::kScript}) {
    const auto decision = job.charge(fault, {"a"});
    CHECK(decision.out.empty());
    CHECK(decision.fatal.empty());
  }
  CHECK(job.charge(Fault::kSoft, {"a"}).out.empty());
}

TEST_CASE("a hang more than the budget has ends the job") {
  Job job(1);
  CHECK(job.charge(Fault::kNone, {}).fatal.empty());
  CHECK(job.charge(Fault::kNone, {}).fatal == "the job has hung 2 times, and hang_restarts=1 allows 1");
  Job none(0);
  CHECK(none.charge(Fault::kHard, {"a"}).fatal == "the job has hung 1 time, and hang_restarts=0 allows 0");
}

TEST_CASE("the same line on another node is the script's fault, but not on the same node, and not in the same hang") {
  Job job;
  CHECK(job.charge(Fault::kSoft, {"a", "b"}, "load_batch data.py:88").fatal.empty());
  CHECK(job.charge(Fault::kSoft, {"a"}, "load_batch data.py:90").fatal.empty());
  const auto script = job.charge(Fault::kSoft, {"c"}, "load_batch data.py:88");
  CHECK(script.out.empty());
  CHECK(script.fatal ==
        "the script is at fault, and no node: ranks on b and on c have hung at the same line, "
        "load_batch data.py:88");
  Job same;
  same.charge(Fault::kSoft, {"a"}, "load_batch data.py:88");
  CHECK(same.charge(Fault::kSoft, {"a"}, "load_batch data.py:88").out == Strings{"a"});
  Job unknown;
  unknown.charge(Fault::kSoft, {"a"});
  CHECK(unknown.charge(Fault::kSoft, {"b"}).fatal.empty());
}

TEST_CASE("for a suspicion no job gets fewer nodes than it needs, for a fault of hardware it does") {
  Job job(5, 4, 4);
  job.charge(Fault::kSoft, {"a"});
  const auto kept = job.charge(Fault::kSoft, {"a"});
  CHECK(kept.out.empty());
  CHECK(kept.action == "restart (hang 2 of 5); node a stays, since without it the job had fewer nodes than it needs");
  CHECK(job.charge(Fault::kHard, {"a"}).out == Strings{"a"});
}

TEST_CASE("where no node is left the job ends") {
  Job job(3, 1);
  CHECK(job.charge(Fault::kHard, {"a"}).fatal == "no node is left: node a is at fault for a hang");
}

TEST_CASE("the next coordinator knows what was charged, whatever it is sent") {
  Job first;
  first.charge(Fault::kSoft, {"a"}, "load_batch data.py:88");
  HangCharges next;
  next.allow(3);
  next.restore(first.charges.record());
  CHECK(next.record() == first.charges.record());
  CHECK(next.charge({.fault = Fault::kSoft, .charged = {{"a", "node a"}}, .nodes = 4, .least = 1}).out == Strings{"a"});
  // An older record takes no charge away.
  next.restore(first.charges.record());
  CHECK(next.used() == 2);
  HangCharges hostile;
  hostile.allow(3);
  hostile.restore({-5, {{"a", -1}, {"", 2}, {"b", 1'000'000'000}}});
  CHECK(hostile.used() == 0);
  CHECK(hostile.record().charges == std::vector<HangCharges::Charge>{{"b", 2}});
}

TEST_CASE("so many nodes are remembered that their record can be transferred, those that were charged last") {
  Job job(1'000'000, 1000);
  for (std::size_t i = 0; i < 2 * limits::kHangCharges; ++i) job.charge(Fault::kSoft, {format("node{:03}", i)});
  const auto record = job.charges.record();
  CHECK(record.charges.size() == limits::kHangCharges);
  CHECK(record.charges.back().node == "node127");
  job.charge(Fault::kSoft, {std::string(limits::kHangChargesBytes, 'x')});
  CHECK(job.charges.record().charges.size() == 1);
}

}  // namespace
}  // namespace elastic::coordinator
