#include "cli/request_plan.h"

#include <cstdint>
#include <utility>

#include "cli/flag_checks.h"
#include "cli/rendezvous_plan.h"
#include "rendezvous/protocol/proof.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// What --status, --drain, --stop and --stacks have in common: whom they ask, for which job (empty: all), and as who.
struct Asked {
  run::HttpPlace place;
  std::string secret;
  std::string run_id;
};

Result<Asked> plan_asked(const ParsedFlags& flags, const Environment& environment, const HostView& host,
                         FlagId where = FlagId::kStatus) {
  auto conf = check_rdzv_conf(flags.text(FlagId::kRdzvConf), flags.input(FlagId::kRdzvConf));
  if (!conf) return std::unexpected(std::move(conf.error()));
  auto endpoint = check_endpoint(flags.text(where), flags.input(where));
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  if (endpoint->port == 0) {
    return fail(flags.input(where), "nothing can listen on port 0", "give a port from 1 to 65535");
  }
  auto secret = find_job_secret(*conf, flags, environment, host);
  if (!secret) return std::unexpected(std::move(secret.error()));
  const bool names_job = flags[FlagId::kRdzvId].origin == Origin::kCommandLine;
  return Asked{.place = {endpoint->host, endpoint->port.value_or(transport::kDefaultPort)},
               .secret = std::move(secret->text),
               .run_id = names_job ? flags.text(FlagId::kRdzvId) : ""};
}

}  // namespace

Result<run::StatusRequest> plan_status(const ParsedFlags& flags, const Environment& environment, const HostView& host) {
  auto asked = plan_asked(flags, environment, host);
  if (!asked) return std::unexpected(std::move(asked.error()));
  return run::StatusRequest{.place = std::move(asked->place),
                            .key = protocol::status_key(asked->secret),
                            .run_id = std::move(asked->run_id),
                            .watch = flags.on(FlagId::kWatch),
                            .json = flags.text(FlagId::kLogFormat) == "json"};
}

Result<run::OrderRequest> plan_order(const ParsedFlags& flags, const Environment& environment, const HostView& host) {
  auto asked = plan_asked(flags, environment, host);
  if (!asked) return std::unexpected(std::move(asked.error()));
  const bool drains = flags.mode == Mode::kDrain;
  const std::string input = flags.input(drains ? FlagId::kDrain : FlagId::kStop);
  if (drains && trim(flags.text(FlagId::kDrain)).empty()) {
    return fail(input, "it names no node", "give the node's rank, name or address, as --status prints them");
  }
  using Kind = coordinator::OperatorOrder::Kind;
  return run::OrderRequest{
      .place = std::move(asked->place),
      .secret = std::move(asked->secret),
      .run_id = std::move(asked->run_id),
      .order = {.kind = drains ? Kind::kDrain : Kind::kStop, .node = std::string(trim(flags.text(FlagId::kDrain)))},
      .input = input};
}

Result<run::StacksRequest> plan_stacks(const ParsedFlags& flags, const Environment& environment, const HostView& host) {
  run::StacksRequest request{.input = flags.input(FlagId::kStacks), .json = flags.text(FlagId::kLogFormat) == "json"};
  if (flags.text(FlagId::kStacks).contains(':')) {
    auto asked = plan_asked(flags, environment, host, FlagId::kStacks);
    if (!asked) return std::unexpected(std::move(asked.error()));
    request.place = std::move(asked->place);
    request.secret = std::move(asked->secret);
    request.run_id = std::move(asked->run_id);
    return request;
  }
  const auto pid = parse_int(flags.text(FlagId::kStacks));
  if (!pid || *pid <= 0 || *pid > INT32_MAX) {
    return fail(request.input, "it is not the number of a process, nor HOST:PORT of a job",
                "give the PID of an elastic-run or of a Python process on this host, or a job's endpoint");
  }
  request.pid = static_cast<int>(*pid);
  return request;
}

Result<std::string> plan_status_key(const ParsedFlags& flags, const Environment& environment, const HostView& host) {
  auto conf = check_rdzv_conf(flags.text(FlagId::kRdzvConf), flags.input(FlagId::kRdzvConf));
  if (!conf) return std::unexpected(std::move(conf.error()));
  auto secret = find_job_secret(*conf, flags, environment, host);
  if (!secret) return std::unexpected(std::move(secret.error()));
  if (secret->text.empty()) {
    return fail(flags.input(FlagId::kStatusKey), "there is no token to make a key from",
                "set ELASTIC_RUN_TOKEN, or give --rdzv-conf=token_file=FILE, as the job's nodes do");
  }
  return protocol::status_key(secret->text);
}

}  // namespace elastic::cli
