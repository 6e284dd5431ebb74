#include "cli/job_secret.h"

#include <utility>

#include "cli/flag_checks.h"
#include "cli/limits.h"
#include "cli/run/worker_environment.h"
#include "src/base/text.h"

namespace elastic::cli {

Result<JobSecret> find_job_secret(const RdzvConf& conf, const ParsedFlags& flags, const Environment& environment,
                                  const HostView& host) {
  const std::string* file = conf.find("token_file");
  if (file == nullptr) {
    return JobSecret{elastic::lookup(environment, run::kSecretVariable).value_or(""),
                     format("environment: {}", run::kSecretVariable)};
  }
  const auto text = host.read_file(*file, limits::kAgentSecretBytes);
  if (!text) {
    return fail(flags.input(FlagId::kRdzvConf), format("token_file={}: {}", printable(*file), text.error().reason),
                "name a file that holds the job's secret");
  }
  std::string secret(trim(*text));
  if (secret.empty()) {
    return fail(flags.input(FlagId::kRdzvConf), format("token_file={} is empty", printable(*file)),
                "write the job's secret into it");
  }
  return JobSecret{std::move(secret), format("file {}", printable(*file))};
}

}  // namespace elastic::cli
