#include "rendezvous/coordinator/admission.h"

#include "rendezvous/coordinator/coordinator_refusals.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using Why = Rejected::Why;

namespace {

std::string describe(const JobTerms& terms) {
  return format("{} --node_unit={} --max-restarts={}", terms.nnodes_text(), terms.node_unit, terms.max_restarts);
}

std::string why_evicted(Eviction eviction) {
  return format("{}: this host is let in no more while the job lasts; start the node on another host",
                eviction == Eviction::kUnhealthy ? "the check before training has found its host unfit"
                                                 : "the job hung, and a node of its host is out for that");
}

}  // namespace

Rejected terms_differ(const JobTerms& its, const JobTerms& ours) {
  return {Why::kTermsDiffer,
          format("it was started with {}, but the job runs with {}; start all nodes with the same options",
                 describe(its), describe(ours)),
          {}};
}

std::string nonsense(const NodeJoins& message) {
  const JobTerms& terms = message.terms;
  if (message.local_world_size < 1 || message.local_world_size > limits::kMaxWorkersPerNode) {
    return format("it reports {} workers", message.local_world_size);
  }
  if (terms.min_nodes < 1 || terms.max_nodes < terms.min_nodes || terms.node_unit < 1 || terms.max_restarts < 0 ||
      terms.max_nodes / terms.node_unit * terms.node_unit < terms.min_nodes) {
    return format("it reports that it was started with {}", describe(terms));
  }
  const NodePlace& place = message.facts.place;
  const bool is_place = place.node_rank >= 0 && place.node_count >= 0 && place.node_rank <= place.node_count &&
                        place.node_count <= static_cast<int>(limits::kNodesPerJob);
  if (!is_place) return format("it reports that it was node {} of {}", place.node_rank, place.node_count);
  if (message.facts.restart_count < 0 || message.facts.losses < 0) {
    return format("it reports {} restarts and {} losses", message.facts.restart_count, message.facts.losses);
  }
  if (message.node_rank && *message.node_rank < 0) return format("it claims rank {}", *message.node_rank);
  return {};
}

membership::Node newcomer(const NodeJoins& message) {
  membership::Node node;
  node.agent = message.agent;
  node.address = message.address;
  return node;
}

std::optional<Rejected> refusal(const HostRecord& host) {
  if (host.eviction) return is_evicted(why_evicted(*host.eviction));
  if (host.quarantined_ms) return is_quarantined(*host.quarantined_ms);
  return {};
}

std::optional<Rejected> refusal(const NodeJoins& message, const Applicant& applicant, const JobSettings& settings,
                                std::size_t nodes, bool is_ending) {
  const AgentFacts& facts = message.facts;
  if (is_ending) {
    if (applicant.was_in_job) return {};
    return job_is_ending();
  }
  if (facts.incarnation != 0 && facts.job_result) {
    return Rejected{Why::kRoundWentOn, "it reports that the job has ended, but the job goes on", 0};
  }
  if (message.terms != settings.terms) return terms_differ(message.terms, settings.terms);
  // A node with --check-only would end a job that trains, or one without it would end without having trained.
  if (message.check.only != settings.check.only) {
    return Rejected{
        Why::kTermsDiffer,
        format("this node was started {} --check-only, and the other nodes {} it; give it to all nodes or to none",
               message.check.only ? "with" : "without", message.check.only ? "without" : "with"),
        {}};
  }
  if (nodes >= limits::kNodesPerJob) {
    return Rejected{
        Why::kTooMany, format("the job has {} nodes already, the most that a coordinator serves", nodes), {}};
  }
  // A node that is out stays in the present round until its workers have ended.
  HostRecord host = applicant.host;
  if (applicant.comes_back) host.eviction.reset();
  if (auto rejected = refusal(host)) return rejected;
  // Workers of an older round have to end before their node may be in another round.
  const bool has_processes = facts.incarnation != 0 && facts.activity != AgentFacts::Activity::kIdle;
  if (has_processes && !applicant.comes_back) {
    return Rejected{Why::kRoundWentOn, format("its workers belong to round {}, which is over", facts.round), 0};
  }
  return {};
}

}  // namespace elastic::coordinator
