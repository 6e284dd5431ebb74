#include "rendezvous/coordinator/admission.h"

#include <doctest/doctest.h>

#include "src/base/limits.h"

using namespace elastic;
using coordinator::Applicant;
using coordinator::Eviction;
using coordinator::JobSettings;
using protocol::AgentFacts;
using protocol::NodeJoins;
using Why = protocol::Rejected::Why;
using Activity = protocol::AgentFacts::Activity;

namespace {

const protocol::JobTerms kTerms = {.min_nodes = 1, .max_nodes = 4, .node_unit = 1, .max_restarts = 2};

NodeJoins fresh() { return {.local_world_size = 8, .agent = 7, .address = "host7", .terms = kTerms}; }

// A node of round 3 of the incarnation 5.
NodeJoins with_workers(Activity activity) {
  NodeJoins message = fresh();
  message.facts = {.incarnation = 5, .round = 3, .activity = activity};
  return message;
}

std::optional<Why> why_not(const NodeJoins& message, const Applicant& applicant = {}, std::size_t nodes = 1,
                           bool is_ending = false) {
  const auto found = coordinator::refusal(message, applicant, coordinator::settings_of(fresh()), nodes, is_ending);
  if (!found) return {};
  return found->why;
}

}  // namespace

TEST_CASE("a node without workers is let in, and one with workers only if they are of the present round") {
  CHECK(!why_not(fresh()));
  CHECK(!why_not(with_workers(Activity::kIdle)));
  for (const Activity activity :
       {Activity::kPreparing, Activity::kRunning, Activity::kSucceeded, Activity::kStopping}) {
    CHECK(why_not(with_workers(activity)) == Why::kRoundWentOn);
    CHECK(!why_not(with_workers(activity), {.comes_back = true}));
  }
}

TEST_CASE("all nodes have the same terms, and the same --check-only") {
  NodeJoins other = fresh();
  other.terms.max_restarts = 9;
  CHECK(why_not(other) == Why::kTermsDiffer);
  const auto found = coordinator::refusal(other, {}, coordinator::settings_of(fresh()), 1, false);
  CHECK(found->reason ==
        "it was started with --nnodes=1:4 --node_unit=1 --max-restarts=9, but the job runs with --nnodes=1:4 "
        "--node_unit=1 --max-restarts=2; start all nodes with the same options");
  other = fresh();
  other.check.only = true;
  CHECK(why_not(other) == Why::kTermsDiffer);
}

TEST_CASE("hosts that the check has evicted, or that are quarantined, are not let in, and neither are too many nodes") {
  CHECK(why_not(fresh(), {.host = {.eviction = Eviction::kUnhealthy}}) == Why::kEvicted);
  CHECK(why_not(fresh(), {.host = {.quarantined_ms = 9000}}) == Why::kQuarantined);
  const auto found =
      coordinator::refusal(fresh(), {.host = {.quarantined_ms = 9000}}, coordinator::settings_of(fresh()), 1, false);
  CHECK(found->retry_ms == 9000);
  CHECK(!why_not(fresh(), {}, limits::kNodesPerJob - 1));
  CHECK(why_not(fresh(), {}, limits::kNodesPerJob) == Why::kTooMany);
}

TEST_CASE("a node of an evicted host that is in the present round may end that") {
  const Applicant comes_back{.comes_back = true, .host = {.eviction = Eviction::kHung}};
  CHECK(!why_not(with_workers(Activity::kRunning), comes_back));
  CHECK(why_not(with_workers(Activity::kIdle), {.host = comes_back.host}) == Why::kEvicted);
}

TEST_CASE("a node of an evicted host is told why that is evicted, and what to do") {
  using coordinator::HostRecord;
  const std::string remedy = ": this host is let in no more while the job lasts; start the node on another host";
  CHECK(coordinator::refusal(HostRecord{.eviction = Eviction::kUnhealthy})->reason ==
        "the check before training has found its host unfit" + remedy);
  CHECK(coordinator::refusal(HostRecord{.eviction = Eviction::kHung})->reason ==
        "the job hung, and a node of its host is out for that" + remedy);
}

TEST_CASE("a job that is ending lets its own nodes in, whatever they report, and no others") {
  NodeJoins other = with_workers(Activity::kRunning);
  other.terms.max_nodes = 9;
  CHECK(!why_not(other, {.was_in_job = true}, 1, true));
  CHECK(why_not(fresh(), {}, 1, true) == Why::kJobEnding);
}

TEST_CASE("a node that brings a job result which the job does not have is told that the job goes on") {
  NodeJoins message = with_workers(Activity::kIdle);
  message.facts.job_result = protocol::JobResult{};
  CHECK(why_not(message, {.was_in_job = true}) == Why::kRoundWentOn);
}

TEST_CASE("numbers that no elastic-run would send are nonsense") {
  CHECK(coordinator::nonsense(fresh()).empty());
  const auto with = [](auto change) {
    NodeJoins message = fresh();
    change(message);
    return coordinator::nonsense(message);
  };
  CHECK(with([](NodeJoins& m) { m.local_world_size = 0; }) == "it reports 0 workers");
  CHECK(!with([](NodeJoins& m) { m.local_world_size = limits::kMaxWorkersPerNode + 1; }).empty());
  CHECK(!with([](NodeJoins& m) { m.terms.min_nodes = 0; }).empty());
  CHECK(!with([](NodeJoins& m) { m.terms.min_nodes = 5; }).empty());
  CHECK(!with([](NodeJoins& m) { m.terms.node_unit = 0; }).empty());
  CHECK(!with([](NodeJoins& m) { m.terms = {.min_nodes = 4, .max_nodes = 5, .node_unit = 3}; }).empty());
  CHECK(!with([](NodeJoins& m) { m.terms.max_restarts = -1; }).empty());
  CHECK(with([](NodeJoins& m) { m.facts.place = {.node_rank = 3, .node_count = 2}; }) ==
        "it reports that it was node 3 of 2");
  CHECK(!with([](NodeJoins& m) { m.facts.place.node_count = static_cast<int>(limits::kNodesPerJob) + 1; }).empty());
  CHECK(with([](NodeJoins& m) { m.facts.losses = -1; }) == "it reports 0 restarts and -1 losses");
  CHECK(with([](NodeJoins& m) { m.node_rank = -2; }) == "it claims rank -2");
}

TEST_CASE("losses are charged to a newcomer's host by its name") {
  CHECK(coordinator::newcomer(fresh()).identity() == "host7");
  CHECK(coordinator::newcomer({.agent = 255}).identity() == "agent ff");
}
