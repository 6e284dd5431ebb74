#pragma once

#include <string>

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/parse.h"
#include "cli/rdzv_conf.h"
#include "cli/run/launch_settings.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// Plans how this node meets the others of a job of several nodes: fills in the rendezvous, the store, and what the
// agent tells its coordinator (terms, rules, rank, address). The job's id and the restarts must be there already.
// Fails, with the input, the reason and the remedy, where nodes could not meet like that.
Status plan_many_nodes(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                       const HostView& host, const detect::Detected& detected, LaunchPlan& plan);

// Copies into the rendezvous' settings what they need to know of the job and of this node to decide where the
// coordinator is. Both must be planned already.
void tell_rendezvous_of_node(run::LaunchSettings& settings);

// Plans --coordinator-only: where to listen, with which secret, and when a node counts as lost.
Result<transport::RendezvousSettings> plan_coordinator_only(const ParsedFlags& flags, const Environment& environment,
                                                            const HostView& host);

// The secret of a job of one node, which guards its status: from token_file or the variable; empty where it has none.
Result<std::string> plan_secret_alone(const ParsedFlags& flags, const CheckedFlags& checked,
                                      const Environment& environment, const HostView& host);

struct JobSecret {
  std::string text;    // empty: the job has none
  std::string origin;  // "file /run/token", for --dry-run
};

// The job's secret, from token_file of --rdzv-conf, else from ELASTIC_RUN_TOKEN. Fails, with the input, the reason and
// the remedy, where the file cannot be read or is empty.
Result<JobSecret> find_job_secret(const RdzvConf& conf, const ParsedFlags& flags, const Environment& environment,
                                  const HostView& host);

}  // namespace elastic::cli
