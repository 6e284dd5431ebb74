#pragma once

#include <string>

#include "cli/host_view.h"
#include "cli/parse.h"
#include "cli/run/commands.h"
#include "src/base/environment.h"
#include "src/base/result.h"

// The plans of commands that ask something of a job that runs, and end with the answer.
namespace elastic::cli {

// Plans --status: which endpoint to ask, and how to show the answer.
Result<run::StatusRequest> plan_status(const ParsedFlags& flags, const Environment& environment, const HostView& host);

// Plans --stacks: what to look at, and where to ask for it.
Result<run::StacksRequest> plan_stacks(const ParsedFlags& flags, const Environment& environment, const HostView& host);

// Plans --drain and --stop: what to order, and where.
Result<run::OrderRequest> plan_order(const ParsedFlags& flags, const Environment& environment, const HostView& host);

// The key that --status-key prints. Fails where there is no secret.
Result<std::string> plan_status_key(const ParsedFlags& flags, const Environment& environment, const HostView& host);

}  // namespace elastic::cli
