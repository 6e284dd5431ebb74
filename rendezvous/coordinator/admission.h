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

// Why no elastic-run can have sent this message, as a clause; empty if one can.
std::string nonsense(const protocol::NodeJoins& message);

// The node that joins before it is let in: only its agent and the host, to which losses are charged, are set.
membership::Node newcomer(const protocol::NodeJoins& message);

// What the coordinator knows of a host.
struct HostRecord {
  std::optional<Eviction> eviction = {};            // why the host is evicted; empty: it is not
  std::optional<std::int64_t> quarantined_ms = {};  // for how much longer the host is quarantined; empty: it is not
};

// Why no node of the host is let in now; empty if nodes are.
std::optional<protocol::Rejected> refusal(const HostRecord& host);

// What the coordinator knows of the node that joins.
struct Applicant {
  bool was_in_job = false;  // it has been in a round of this incarnation of the job
  bool comes_back = false;  // its workers belong to the present round, to which it may return
  HostRecord host = {};
};

// Why the node cannot be let in now; empty if it can. `nodes` are in the job; `is_ending`: the job has its result.
std::optional<protocol::Rejected> refusal(const protocol::NodeJoins& message, const Applicant& applicant,
                                          const JobSettings& settings, std::size_t nodes, bool is_ending);

// The rejection of a node that was started with other terms than the job's.
protocol::Rejected terms_differ(const protocol::JobTerms& its, const protocol::JobTerms& ours);

}  // namespace elastic::coordinator
