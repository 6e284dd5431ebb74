#pragma once

#include <string>

#include "cli/host_view.h"
#include "cli/parse.h"
#include "cli/rdzv_conf.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

struct JobSecret {
  std::string text;    // empty: the job has none
  std::string origin;  // "file /run/token", for --dry-run
};

// The job's secret, from token_file of --rdzv-conf, else from ELASTIC_RUN_TOKEN. Fails, with the input, the reason and
// the remedy, where the file cannot be read or is empty.
Result<JobSecret> find_job_secret(const RdzvConf& conf, const ParsedFlags& flags, const Environment& environment,
                                  const HostView& host);

}  // namespace elastic::cli
