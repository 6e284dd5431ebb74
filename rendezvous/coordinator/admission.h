#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/coordinator/job_settings.h"
#include "rendezvous/coordinator/round_check.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"

// Whether a node is let into the job when it joins.
namespace elastic::coordinator {

// What is wrong with the message, as a clause, if no elastic-run would send it; empty if nothing is.
std::string nonsense(const protocol::NodeJoins& message);

// The newcomer as far as it is known before it is let in: its host, to which losses are charged.
membership::Node newcomer(const protocol::NodeJoins& message);

// What the coordinator knows of a host.
struct HostRecord {
  std::optional<Exclusion> exclusion = {};          // it is excluded from the job
  std::optional<std::int64_t> quarantined_ms = {};  // it is kept out for so many milliseconds more
};

// Why no node of the host is let in now; nothing if nodes are.
std::optional<protocol::Rejected> refusal(const HostRecord& host);

// What the coordinator knows of the node that joins.
struct Applicant {
  bool was_in_job = false;  // it has been in a round of this incarnation of the job
  bool comes_back = false;  // its workers belong to the present round, to which it may return
  HostRecord host = {};
};

// Why the node cannot be let in now; nothing if it can. The job has `nodes` nodes; `is_ending`: it has its verdict.
std::optional<protocol::Rejected> refusal(const protocol::NodeJoins& message, const Applicant& applicant,
                                          const JobSettings& settings, std::size_t nodes, bool is_ending);

// The node was started with other terms than the job's.
protocol::Rejected terms_differ(const protocol::JobTerms& its, const protocol::JobTerms& ours);

}  // namespace elastic::coordinator
