#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/run/wrap.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// Reads the value of --wrap, one rule per line: RANKS:COMMAND. RANKS is "all", or ranks and ranges with commas between
// ("0,8-15"). `input` names the flag in errors. Fails on any other text, and on a command that is not there or cannot
// be executed.
Result<std::vector<run::WrapRule>> read_wrap_rules(std::string_view text, const std::string& input,
                                                   const Environment& environment, const HostView& host);

// Reads --wrap and writes it into the plan.
Status plan_wrap(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan);

}  // namespace elastic::cli
