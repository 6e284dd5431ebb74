// What the coordinator sends for users and workers only: the details of the first failure, what nodes wait for, and
// HCCL's ports.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

// A job of two nodes that has failed: a worker of the first node failed, and no restart was left.
Job failed() {
  Job job(job_terms(2, 2, 0));
  job.run({1, 2});
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  REQUIRE(job.stop(2).all<EndJob>().size() == 2);
  return job;
}

JobRules waits(std::int64_t last_call_ms, std::int64_t join_timeout_ms) {
  return {.last_call_ms = last_call_ms, .join_timeout_ms = join_timeout_ms};
}

}  // namespace

TEST_CASE("what one node knows of the first failure is told to all when they are dismissed") {
  Job job = failed();
  CHECK(job.say(2, JobResultHeard{}).silent());
  const Answer end = job.say(1, JobResultHeard{"Traceback"});
  CHECK(end.to<Dismiss>(1).details == "Traceback");
  CHECK(end.to<Dismiss>(2).details == "Traceback");
  CHECK(job.coordinator.ending().details() == "Traceback");
}

TEST_CASE("the first details hold, and a node may bring them after it has heard the job result") {
  Job job = failed();
  job.say(1, JobResultHeard{});
  job.say(1, JobResultHeard{"first"});
  const Answer end = job.say(2, JobResultHeard{"second"});
  CHECK(end.to<Dismiss>(1).details == "first");
  CHECK(end.to<Dismiss>(2).details == "first");
}

TEST_CASE("a node that loses its connection before it has told may come back for 2 s, and brings the details") {
  Job job = failed();
  job.say(2, JobResultHeard{});
  job.pass_with({1, 2}, 500);
  CHECK(job.on(SessionEnded{1, "reset"}).silent());
  CHECK(job.pass_with({2}, 1400).silent());
  CHECK(job.pass_with({2}, 100).to<Dismiss>(2).details.empty());

  Job another = failed();  // the worker of node 1 has not failed first here
  another.say(1, JobResultHeard{});
  CHECK(another.on(SessionEnded{2, "reset"}).to<Dismiss>(1).details.empty());

  Job other = failed();
  other.say(2, JobResultHeard{});
  other.on(SessionEnded{1, "reset"});
  NodeJoins back = other.joiner(1);
  back.facts = {.incarnation = other.coordinator.incarnation(),
                .term = 1,
                .round = 0,
                .job_result = other.coordinator.ending().job_result()};
  other.say(11, back).only<EndJob>();
  const Answer end = other.say(11, JobResultHeard{"Traceback"});
  CHECK(end.to<Dismiss>(2).details == "Traceback");
  CHECK(end.to<Dismiss>(11).details == "Traceback");
}

// --- What nodes wait for. --------------------------------------------------------------------------------

TEST_CASE("nodes that wait for others are told how many are here, a second after it has changed") {
  Job job(job_terms(2, 4), waits(30'000, 60'000));
  CHECK(job.join(1).effects.empty());
  CHECK(job.pass_with({1}, 900).effects.empty());
  CHECK(job.pass_with({1}, 100).only<Awaiting>() ==
        Awaiting{.here = 1, .least = 2, .most = 4, .for_ms = 1000, .left_ms = 59'000});
  CHECK(job.pass_with({1}, 10'000).effects.empty());
  job.join(2);
  job.pass_with({1, 2}, 500);
  job.join(3);
  CHECK(job.pass_with({1, 2, 3}, 400).effects.empty());
  const Answer told = job.pass_with({1, 2, 3}, 100);
  const Awaiting all{.here = 3, .least = 2, .most = 4, .for_ms = 12'000, .left_ms = 29'000};
  CHECK(told.all<Awaiting>().size() == 3);
  for (const NodeId session : {1U, 2U, 3U}) CHECK(told.to<Awaiting>(session) == all);
  CHECK(job.pass_with({1, 2, 3}, 28'900).effects.empty());
  const Answer formed = job.pass_with({1, 2, 3}, 100);
  CHECK(formed.all<PrepareRound>().size() == 3);
  CHECK(formed.all<Awaiting>().empty());
}

TEST_CASE("however often something changes, all are told once in a second") {
  Job job(job_terms(20, 20));
  std::vector<NodeId> here;
  std::size_t told = 0;
  for (NodeId node = 1; node <= 15; ++node) {
    job.join(node);
    here.push_back(node);
    const Answer news = job.pass_with(here, 200);
    if (!news.all<Awaiting>().empty()) {
      ++told;
      CHECK(news.all<Awaiting>().size() == here.size());
    }
  }
  CHECK(told <= 3);
  CHECK(told >= 2);
}

TEST_CASE("waits of less than a second are no news") {
  Job job(job_terms(2, 2, 1));
  job.join(1);
  CHECK(job.pass(999).effects.empty());
  CHECK(job.join(2).all<Awaiting>().empty());
  job.open_store();
  CHECK(job.pass_with({1, 2}, 5000).all<Awaiting>().empty());
}

TEST_CASE("survivors that wait for replacements are told so") {
  Job job(job_terms(2, 2, 1), waits(30'000, 60'000));
  job.run({1, 2});
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  const Answer waited = job.pass_with({1}, 10'000);
  REQUIRE(!waited.all<Awaiting>().empty());
  const Awaiting last = waited.all<Awaiting>().back().second;
  CHECK(last.here == 1);
  CHECK(last.least == 2);
  CHECK(last.left_ms > 40'000);
  CHECK(last.what.empty());
}

TEST_CASE("survivors that wait for replacements are told who went, how, and how long ago; who is back is not named") {
  Job job(job_terms(2, 2, 1), waits(30'000, 60'000));
  job.run({1, 2});
  job.on(SessionEnded{2, "its connection was reset"});
  job.stop(1);
  const Awaiting told = job.pass_with({1}, 10'000).all<Awaiting>().back().second;
  CHECK(told.because == "node 1 (node2) was lost: its connection was reset");
  const std::int64_t lost_at_ms = 0;
  CHECK(told.because_ms > lost_at_ms);
  CHECK(told.because_ms <= 10'000);

  Job back(job_terms(3, 3, 1), waits(30'000, 60'000));
  back.run({1, 2, 3});
  back.on(SessionEnded{2, "reset"});
  back.on(SessionEnded{3, "reset"});
  NodeJoins again = back.joiner(2);
  again.facts = {.incarnation = back.coordinator.incarnation(), .term = 1, .round = 0};
  back.say(12, again);
  back.stop(1);
  CHECK(back.pass_with({1, 12}, 10'000).all<Awaiting>().back().second.because == "node 2 (node3) was lost: reset");
}

TEST_CASE("who waits for the first round is told of no loss that was not") {
  Job job(job_terms(2, 2, 1), waits(30'000, 60'000));
  job.join(1);
  CHECK(job.pass_with({1}, 2000).only<Awaiting>().because.empty());
}

TEST_CASE(
    "a node that is on standby is told what for, again with each round, and others that come later are told alone") {
  Job job(job_terms(2, 2, 1));
  job.run({1, 2});
  job.join(3);
  const Awaiting on_standby{.what = "standing by: the job has its maximum of 2 nodes"};
  CHECK(job.pass_with({1, 2, 3}, 900).all<Awaiting>().empty());
  const Answer told = job.pass_with({1, 2, 3}, 100);
  CHECK(told.all<Awaiting>().size() == 1);
  CHECK(told.to<Awaiting>(3) == on_standby);
  CHECK(job.pass_with({1, 2, 3}, 5000).all<Awaiting>().empty());
  job.join(4);
  const Answer later = job.pass_with({1, 2, 3, 4}, 1500);
  CHECK(later.all<Awaiting>().size() == 1);
  CHECK(later.to<Awaiting>(4) == on_standby);
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  CHECK(job.stop(2).all<Awaiting>().empty());
  CHECK(job.pass_with({1, 2, 3, 4}, 1500).all<Awaiting>().size() == 2);
}

TEST_CASE("where a job may grow, and will not yet, a node on standby is told with how many it runs") {
  Job job(job_terms(1, 4, 1), {.last_call_ms = 0, .scale_up = JobRules::ScaleUp::kNever});
  job.run({1});
  job.join(2);
  CHECK(job.pass_with({1, 2}, 1000).to<Awaiting>(2).what == "standing by: the job runs with 1 node");
}

TEST_CASE("the node that serves the round's store hears the addresses of all its nodes, if all are known") {
  for (const bool all_known : {true, false}) {
    Job job(job_terms(2, 3));
    NodeJoins first = job.joiner(1);
    first.addresses = "10.0.0.1 fd77::1";
    NodeJoins second = job.joiner(2);
    second.addresses = all_known ? "10.0.0.2 10.0.0.1 192.168.0.7" : "";
    NodeJoins third = job.joiner(3);
    third.addresses = "10.0.0.3";
    job.say(1, first);
    job.say(2, second);
    const Answer prepared = job.say(3, third);
    const std::string known = "10.0.0.1 10.0.0.2 10.0.0.3 192.168.0.7 fd77::1";
    CHECK(prepared.to<PrepareRound>(1).admits == (all_known ? known : ""));
    CHECK(prepared.to<PrepareRound>(2).admits.empty());
    CHECK(prepared.to<PrepareRound>(3).admits.empty());
  }
}

TEST_CASE("of so many addresses that no message holds them none is told") {
  for (const int nodes : {30, 60}) {
    Job job(job_terms(nodes, nodes));
    Answer last;
    for (int node = 1; node <= nodes; ++node) {
      NodeJoins joins = job.joiner(static_cast<AgentId>(node));
      for (int number = 0; number < 300; ++number) joins.addresses += format("10.{}.0.{} ", node, number);
      joins.addresses.pop_back();
      last = job.say(static_cast<NodeId>(node), joins);
    }
    const std::size_t bytes = last.to<PrepareRound>(1).admits.size();
    CHECK((nodes == 30 ? bytes > 64 * 1024 : bytes == 0));
  }
}

TEST_CASE("the ports of HCCL that are free on all nodes of a round are told with it, for each round anew") {
  Job job(job_terms(2, 2, 3));
  const auto join = [&](NodeId session, std::vector<PortRange> in_use) {
    NodeJoins joins = job.joiner(session);
    joins.training_ports = TrainingPorts{60'000, std::move(in_use)};
    return job.say(session, std::move(joins));
  };
  join(1, {{60'000, 60'003}});
  const Answer first = join(2, {{60'010, 60'020}});
  CHECK(first.to<PrepareRound>(1).training_port == 60'021);
  CHECK(first.to<PrepareRound>(2).training_port == 60'021);
  job.open_store();

  job.fail(1, failure(0, 5));
  const RoundNumber round = *job.coordinator.round();
  job.say(1, NodeStopped{.round = round, .failures = {failure(0, 5)}, .training_ports = TrainingPorts{60'000, {}}});
  const Answer second = job.say(
      2, NodeStopped{.round = round, .failures = {}, .training_ports = TrainingPorts{60'000, {{60'021, 60'030}}}});
  CHECK(second.to<PrepareRound>(1).training_port == 60'000);
  CHECK(second.to<PrepareRound>(2).training_port == 60'000);
}

TEST_CASE("a node that comes back tells the ports of HCCL as they are then") {
  Job job(job_terms(1, 1, 3));
  NodeJoins joins = job.joiner(1);
  joins.training_ports = TrainingPorts{60'000, {}};
  const PrepareRound round = job.say(1, joins).to<PrepareRound>(1);
  job.open_store();
  job.on(SessionEnded{1, "reset"});
  joins.facts = facts_of(round, job.coordinator.incarnation(), Activity::kIdle);
  joins.training_ports = TrainingPorts{60'000, {{60'000, 60'000}}};
  joins.session = 1;
  CHECK(job.say(7, joins).to<PrepareRound>(7).training_port == 60'001);
}

TEST_CASE("where HCCL's ports are free nowhere one warning says so, and where no node has asked for any none is told") {
  const auto warnings = [](const Answer& answer) {
    return std::ranges::count_if(answer.effects, [](const Effect& effect) {
      const auto* note = std::get_if<Note>(&effect);
      return note != nullptr && note->event == kNoTrainingPort && is_warning(note->event) &&
             note->text.find("node 1 (node2) has no 16 TCP ports") != std::string::npos;
    });
  };
  for (const bool is_full : {false, true}) {
    Job job(job_terms(2, 2, 3));
    job.join(1);
    NodeJoins joins = job.joiner(2);
    if (is_full) joins.training_ports = TrainingPorts{60'000, {{60'000, 65'535}}};
    const Answer formed = job.say(2, joins);
    CHECK(formed.to<PrepareRound>(1).training_port == 0);
    CHECK(formed.to<PrepareRound>(2).training_port == 0);
    CHECK(warnings(formed) == (is_full ? 1 : 0));
  }
}
