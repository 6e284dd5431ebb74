#include "cli/rendezvous_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "cli/flag_checks.h"
#include "cli/limits.h"
#include "cli/run/worker_environment.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

using StoreKind = store::StoreSettings::Kind;
using ScaleUp = protocol::JobRules::ScaleUp;
using transport::kDefaultPort;

constexpr std::int64_t kSecond = 1000;
constexpr std::size_t kMostPorts = 1024;  // of HOST_PORTS
// torchrun's defaults. Their product is how long torchrun waits for a silent node.
constexpr std::int64_t kKeepAliveSeconds = 5;
constexpr std::int64_t kKeepAliveAttempts = 3;
// torchrun's default with static, where the key has another name.
constexpr std::int64_t kStaticTimeoutSeconds = 900;

constexpr std::array kLossTimeoutKeys = {"loss_timeout", "keep_alive_interval", "keep_alive_max_attempt"};

std::int64_t loss_timeout_ms(const RdzvConf& conf) {
  if (const auto seconds = conf.integer("loss_timeout")) return *seconds * kSecond;
  const auto interval = conf.integer("keep_alive_interval");
  const auto attempts = conf.integer("keep_alive_max_attempt");
  if (!interval && !attempts) return transport::RendezvousSettings{}.loss_timeout_ms;
  const std::int64_t seconds = interval.value_or(kKeepAliveSeconds) * attempts.value_or(kKeepAliveAttempts);
  return std::clamp<std::int64_t>(seconds, 1, limits::kMaxTimeoutSeconds) * kSecond;
}

class RendezvousPlanner {
 public:
  RendezvousPlanner(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                    const HostView& host, const detect::Detected& detected, LaunchPlan& plan)
      : flags_(flags), checked_(checked), environment_(environment), host_(host), detected_(detected), plan_(plan) {}

  Status plan() {
    for (const auto part :
         {&RendezvousPlanner::plan_terms, &RendezvousPlanner::plan_endpoint, &RendezvousPlanner::plan_rank,
          &RendezvousPlanner::plan_store, &RendezvousPlanner::plan_secret}) {
      if (const Status done = (this->*part)(); !done) return done;
    }
    plan_rules();
    return plan_failover();
  }

 private:
  Status plan_terms();
  Status plan_endpoint();
  Status plan_more_hosts();
  void plan_address();
  Status plan_place();
  void take_detected_place();
  Status plan_rank();
  Result<std::vector<std::uint16_t>> port_choices() const;
  Status plan_store();
  Status plan_secret();
  Status plan_munge();
  Status plan_failover();
  void plan_rules();

  // Whether other nodes take the coordinator over, by their votes.
  bool has_failover() const {
    const std::string* mode = checked_.rdzv_conf.find("failover");
    return !is_static() && (mode == nullptr || *mode == "majority");
  }
  bool is_static() const { return checked_.rendezvous == Rendezvous::kStatic; }
  std::optional<std::string> variable(std::string_view name) const { return elastic::lookup(environment_, name); }
  std::int64_t milliseconds(std::string_view key, std::int64_t otherwise) const {
    const auto seconds = checked_.rdzv_conf.integer(key);
    return seconds ? *seconds * kSecond : otherwise;
  }
  void entry(std::string name, std::string value, std::string origin) {
    plan_.entry(std::move(name), std::move(value), std::move(origin));
  }

  const ParsedFlags& flags_;
  const CheckedFlags& checked_;
  const Environment& environment_;
  const HostView& host_;
  const detect::Detected& detected_;
  LaunchPlan& plan_;
};

Status RendezvousPlanner::plan_terms() {
  protocol::JobTerms& terms = plan_.settings.node.terms;
  if (checked_.nodes.max > static_cast<std::int64_t>(limits::kNodesPerJob)) {
    return fail(flags_.input(FlagId::kNnodes), format("a job has at most {} nodes", limits::kNodesPerJob),
                "ask for fewer");
  }
  terms.max_nodes = static_cast<int>(checked_.nodes.max);
  // The static backend waits for all of them, as torchrun's does.
  terms.min_nodes = is_static() ? terms.max_nodes : static_cast<int>(checked_.nodes.min);
  const auto unit = checked_.rdzv_conf.integer("node_unit");
  terms.node_unit = static_cast<int>(unit.value_or(flags_.integer(FlagId::kNodeUnit)));
  const int least = (terms.min_nodes + terms.node_unit - 1) / terms.node_unit * terms.node_unit;
  if (least > terms.max_nodes) {
    return fail(
        flags_.input(FlagId::kNodeUnit),
        format("no multiple of {} lies between {} and {} nodes", terms.node_unit, terms.min_nodes, terms.max_nodes),
        "choose --nnodes and --node-unit so that one does");
  }
  if (terms.node_unit > 1) entry("node unit", format("{}", terms.node_unit), flags_.origin_text(FlagId::kNodeUnit));
  return {};
}

Status RendezvousPlanner::plan_endpoint() {
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  rendezvous.alone = false;
  if (const Status status = plan_place(); !status) return status;
  const bool by_file = rendezvous.place == transport::RendezvousSettings::Place::kFile;
  rendezvous.host = checked_.endpoint.host;
  rendezvous.port = checked_.endpoint.port.value_or(kDefaultPort);
  const FlagId named_by = checked_.endpoint_is_master ? FlagId::kMasterAddr : FlagId::kRdzvEndpoint;
  rendezvous.is_default = !flags_.is_known(named_by);
  if (!flags_.is_detected(named_by)) {
    const bool is_master = checked_.endpoint_is_master;
    rendezvous.option = {.name = is_master ? "--master-addr" : "--rdzv-endpoint", .takes_port = !is_master};
  }
  std::string origin = flags_.origin_text(named_by);
  if (checked_.endpoint_is_master && !is_static()) {
    plan_.warn(format("{}: nodes meet there, at port {}, as --rdzv-endpoint is not given",
                      flags_.input(FlagId::kMasterAddr), rendezvous.port));
  }
  if (rendezvous.is_default && !is_static()) {
    if (const auto master = variable("DLROVER_MASTER_ADDR"); master && !master->empty()) {
      auto endpoint = check_endpoint(*master, format("DLROVER_MASTER_ADDR={}", printable(*master)));
      if (!endpoint) return std::unexpected(std::move(endpoint.error()));
      rendezvous.host = endpoint->host;
      rendezvous.port = endpoint->port.value_or(kDefaultPort);
      rendezvous.is_default = false;
      rendezvous.option = {.name = "DLROVER_MASTER_ADDR"};
      origin = "environment: DLROVER_MASTER_ADDR";
    }
  }
  if (rendezvous.port == 0 && !by_file) {
    const bool is_master = checked_.endpoint_is_master;
    return fail(flags_.input(is_master ? FlagId::kMasterPort : FlagId::kRdzvEndpoint),
                "the other nodes must know the port in advance",
                is_master ? "give a port from 1 to 65535"
                          : format("give a port from 1 to 65535, or none for {}", kDefaultPort));
  }
  rendezvous.is_host = checked_.rdzv_conf.boolean("is_host");
  if (const Status status = plan_more_hosts(); !status) return status;
  entry("endpoint", transport::endpoint_text(rendezvous), origin);
  if (flags_.is_detected(FlagId::kRdzvEndpoint)) take_detected_place();
  plan_address();
  return {};
}

// Any node of the job leads to its coordinator, so that newcomers may ask at several.
Status RendezvousPlanner::plan_more_hosts() {
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  if (checked_.more_endpoints.empty()) return {};
  if (!has_failover()) {
    return fail(flags_.input(FlagId::kRdzvEndpoint),
                "several hosts are named, and with failover=off no other than the first can have the coordinator",
                "name one host, or leave failover=off out");
  }
  for (const Endpoint& host : checked_.more_endpoints) {
    rendezvous.more_hosts.push_back({host.host, host.port.value_or(kDefaultPort)});
    if (rendezvous.more_hosts.back().port != 0) continue;
    return fail(flags_.input(FlagId::kRdzvEndpoint), "the other nodes must know the port in advance",
                format("give a port from 1 to 65535, or none for {}", kDefaultPort));
  }
  return {};
}

// DLRover, too, gives workers the pod's address as that of the first node.
void RendezvousPlanner::plan_address() {
  std::string& address = plan_.settings.node.address;
  const bool is_given = flags_.is_given(FlagId::kLocalAddr);
  address = is_given ? flags_.text(FlagId::kLocalAddr) : variable("POD_IP").value_or("");
  if (address.empty()) return;
  entry("address", printable(address), is_given ? flags_.origin_text(FlagId::kLocalAddr) : "environment: POD_IP");
}

// Other jobs may detect the same endpoint, so this coordinator serves its own job only, and further ports are tried.
void RendezvousPlanner::take_detected_place() {
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  rendezvous.serves_own_job_only = true;
  if (!rendezvous.is_host && detected_.is_host) {
    rendezvous.is_host = detected_.is_host;
    rendezvous.is_host_source = detected_.is_host_source;
  }
  for (const std::string& host : detected_.more_hosts) {
    if (rendezvous.more_hosts.size() + 1 < limits::kEndpointHosts && has_failover()) {
      rendezvous.more_hosts.push_back({host, rendezvous.port});
    }
  }
  if (detected_.ports.size() < 2) return;
  std::vector<std::string> ports;
  for (const std::uint16_t port : detected_.ports) {
    ports.push_back(format("{}", port));
    if (port != rendezvous.port) rendezvous.more_ports.push_back(port);
  }
  entry("ports", join(ports, ", "), "tried in this order");
}

// Finds out where nodes read the coordinator's address, where it is not the endpoint itself.
Status RendezvousPlanner::plan_place() {
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  const std::string* type = checked_.rdzv_conf.find("store_type");
  const std::int64_t port = checked_.rdzv_conf.integer("coordinator_port").value_or(0);
  if (port > 65535) {
    return fail(flags_.input(FlagId::kRdzvConf), format("coordinator_port={} is not a port", port),
                "give one from 1 to 65535, or none for a free one");
  }
  rendezvous.coordinator_port = static_cast<std::uint16_t>(port);
  if (type == nullptr || *type == "tcp") {
    if (port == 0 || has_failover()) return {};
    return fail(flags_.input(FlagId::kRdzvConf), "the coordinator listens at the port of --rdzv-endpoint",
                "give that port there, or coordinator_port= where another node may take the coordinator over");
  }
  if (is_static()) {
    return fail(flags_.input(FlagId::kRdzvConf),
                format("nodes of the static backend meet at the master's port, not by store_type={}", *type),
                "leave it out, or give --rdzv-backend=c10d");
  }
  rendezvous.path = trim(flags_.text(FlagId::kRdzvEndpoint));
  if (rendezvous.path.empty() || rendezvous.path.ends_with('/')) {
    return fail(flags_.input(FlagId::kRdzvConf), "nothing says by which file the nodes meet",
                "name it with --rdzv-endpoint, in a directory that all of them can write, such as /shared/job.meeting");
  }
  rendezvous.place = transport::RendezvousSettings::Place::kFile;
  return {};
}

// With c10d, a rank of 0 on the command line means: assign one. It is the default, and command lines for torchrun often
// give it on all nodes. Such a node gets the lowest free rank.
Status RendezvousPlanner::plan_rank() {
  protocol::JobTerms& terms = plan_.settings.node.terms;
  std::optional<std::int64_t> rank;
  std::string origin = flags_.origin_text(FlagId::kNodeRank);
  std::string input = flags_.input(FlagId::kNodeRank);
  // If there are more nodes than the maximum, some wait in reserve and have no rank of their own.
  const bool is_detected = flags_.is_detected(FlagId::kNodeRank);
  if (is_detected && checked_.node_rank >= terms.max_nodes) return {};
  if (is_static() || is_detected || checked_.node_rank > 0) rank = checked_.node_rank;
  for (const char* name : {"NODE_RANK", "WORKER_RANK"}) {
    const auto text = variable(name);
    if (rank || is_static() || !text || text->empty()) continue;
    const auto number = parse_int(*text);
    if (!number || *number < 0) {
      return fail(format("{}={}", name, printable(*text)), "this is not a node rank",
                  "set it to a number from 0 on, or unset it");
    }
    rank = *number;
    input = format("{}={}", name, printable(*text));
    origin = format("environment: {}", name);
  }
  if (!rank) return {};
  if (*rank >= terms.max_nodes) {
    return fail(input, format("the last node rank of a job of {} nodes is {}", terms.max_nodes, terms.max_nodes - 1),
                "give each node a rank of its own, or raise --nnodes");
  }
  plan_.settings.node.node_rank = static_cast<int>(*rank);
  if (is_static()) plan_.settings.rendezvous.is_host = *rank == 0;
  entry("node rank", format("{}", *rank), origin);
  return {};
}

// HOST_PORTS is DLRover's variable: the ports of the host that belong to the pod.
Result<std::vector<std::uint16_t>> RendezvousPlanner::port_choices() const {
  std::vector<std::uint16_t> ports;
  const std::string text = variable("HOST_PORTS").value_or("");
  if (trim(text).empty()) return ports;
  for (const std::string& word : split(text, ',')) {
    const auto port = parse_int(word);
    if (!port || *port < 1 || *port > 65535 || ports.size() == kMostPorts) {
      return fail(format("HOST_PORTS={}", printable(text)),
                  ports.size() == kMostPorts ? format("more than {} ports", kMostPorts)
                                             : format("{} is not a port", printable(word)),
                  "set it to ports from 1 to 65535 separated by commas, or unset it");
    }
    ports.push_back(static_cast<std::uint16_t>(*port));
  }
  return ports;
}

Status RendezvousPlanner::plan_store() {
  store::StoreSettings& store = plan_.settings.store;
  const std::string* admitted = checked_.rdzv_conf.find("store_admits");
  const bool admits_all = admitted != nullptr && *admitted == "all";
  const bool by_worker = variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1";
  plan_.settings.worker.use_agent_store = !by_worker;
  if (is_static()) {
    plan_.settings.rendezvous.store_at_endpoint = true;
    plan_.settings.rendezvous.asks_first = true;
    store = {.kind = StoreKind::kAtEndpoint,
             .master_addr = plan_.settings.rendezvous.host,
             .port = plan_.settings.rendezvous.port,
             .admits_all = admits_all};
    entry("worker store", format("at the endpoint, given to workers as {}", printable(store.master_addr)), "static");
    return {};
  }
  const std::int64_t port = checked_.rdzv_conf.integer("store_port").value_or(0);
  if (port > 65535) {
    return fail(flags_.input(FlagId::kRdzvConf), format("store_port={} is not a port", port),
                "give one from 1 to 65535");
  }
  store = {.kind = by_worker ? StoreKind::kByWorker : StoreKind::kFreshPort,
           .master_addr = plan_.settings.node.address,
           .port = static_cast<std::uint16_t>(port),
           .of_loopback = false,
           .admits_all = admits_all};
  if (port == 0) {
    auto choices = port_choices();
    if (!choices) return std::unexpected(std::move(choices.error()));
    store.port_choices = std::move(*choices);
  }
  const std::string a_free_one = store.port_choices.empty() ? "a free port" : "a free port of HOST_PORTS, or any,";
  entry("worker store",
        format("on node rank 0, {} on all addresses{}", port == 0 ? a_free_one : format("port {}", port),
               port == 0 ? ", a new one for each round" : ""),
        by_worker ? "served by rank 0 (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)" : "--rdzv-backend=c10d");
  return {};
}

Status RendezvousPlanner::plan_secret() {
  auto secret = find_job_secret(checked_.rdzv_conf, flags_, environment_, host_);
  if (!secret) return std::unexpected(std::move(secret.error()));
  plan_.settings.rendezvous.secret = std::move(secret->text);
  if (!plan_.settings.rendezvous.secret.empty()) entry("secret", "given", secret->origin);
  return plan_munge();
}

// Munge proves nodes to each other in a Slurm step that meets where Slurm says and has no secret of the user's.
Status RendezvousPlanner::plan_munge() {
  const std::string* wish = checked_.rdzv_conf.find("slurm_auth");
  const bool is_required = wish != nullptr && *wish == "munge";
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  const bool is_step = !detected_.step.empty() && flags_.is_detected(FlagId::kRdzvEndpoint);
  if (is_required && (!is_step || !rendezvous.secret.empty())) {
    return fail(flags_.input(FlagId::kRdzvConf),
                is_step ? "slurm_auth=munge, and a secret for the job is given, too"
                        : "slurm_auth=munge works only in a Slurm step whose endpoint comes from Slurm",
                is_step ? "choose one of the two" : "leave it out, or give token_file=");
  }
  if (!is_step || !rendezvous.secret.empty() || (wish != nullptr && *wish == "off")) return {};
  const std::string* socket = checked_.rdzv_conf.find("munge_socket");
  rendezvous.munge = {.step = detected_.step, .socket = socket != nullptr ? *socket : "", .required = is_required};
  entry("node authentication", is_required ? "munge" : "munge, if it answers",
        wish != nullptr ? flags_.origin_text(FlagId::kRdzvConf) : detected_.system);
  return {};
}

// Whether the job outlives its coordinator's node, by the votes of the others.
Status RendezvousPlanner::plan_failover() {
  const RdzvConf& conf = checked_.rdzv_conf;
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  const auto is = [&](const char* key, std::string_view value) {
    const std::string* given = conf.find(key);
    return given != nullptr && *given == value;
  };
  if (is_static() && is("failover", "majority")) {
    return fail(flags_.input(FlagId::kRdzvConf),
                "failover=majority, and with --rdzv-backend=static node 0 is the only host",
                "leave it out, or use --rdzv-backend=c10d");
  }
  if (!has_failover()) {
    const std::string why = is_static() ? "with --rdzv-backend=static no other node takes over"
                                        : "with failover=off no other node takes over";
    for (const char* key : {"on_leave", "failover_evidence", "rejoin_timeout"}) {
      if (conf.find(key) == nullptr) continue;
      return fail(flags_.input(FlagId::kRdzvConf), format("{}={}, and {}", key, *conf.find(key), why),
                  "leave it out, or use failover=majority");
    }
    entry("failover", "off: the job ends with its coordinator's node",
          is_static() ? "static" : flags_.origin_text(FlagId::kRdzvConf));
    return {};
  }
  using OnLeave = protocol::JobRules::OnLeave;
  protocol::JobRules& rules = plan_.settings.node.rules;
  rules.failover = protocol::JobRules::Failover::kMajority;
  if (is("on_leave", "end")) rules.on_leave = OnLeave::kEnd;
  if (is("on_leave", "wait")) rules.on_leave = OnLeave::kWait;
  if (is("failover_evidence", "none")) rules.failover_evidence = protocol::JobRules::Evidence::kNone;
  rendezvous.refusal_is_proof = rules.failover_evidence != protocol::JobRules::Evidence::kNone;
  rendezvous.has_peer_server = true;
  rendezvous.peer_port = rendezvous.coordinator_port;
  entry("failover", "by more than half of the last round",
        conf.find("failover") != nullptr ? flags_.origin_text(FlagId::kRdzvConf) : "default");
  return {};
}

void RendezvousPlanner::plan_rules() {
  const RdzvConf& conf = checked_.rdzv_conf;
  protocol::JobRules& rules = plan_.settings.node.rules;
  rules.last_call_ms = milliseconds("last_call_timeout", milliseconds("lastcall_timeout", rules.last_call_ms));
  // With static, torchrun has another name for this key; where both are given, this one wins.
  const std::int64_t otherwise_ms =
      is_static() ? milliseconds("timeout", kStaticTimeoutSeconds * kSecond) : rules.join_timeout_ms;
  rules.join_timeout_ms = milliseconds("join_timeout", otherwise_ms);
  rules.replacement_grace_ms = milliseconds("replacement_grace", rules.replacement_grace_ms);
  if (const std::string* text = conf.find("scale_up")) {
    const auto wish = parse_scale_up(*text);  // its form was checked
    rules.scale_up = wish->mode;
    rules.scale_up_after_ms = wish->after_ms.value_or(rules.scale_up_after_ms);
  }
  rules.node_losses = static_cast<int>(conf.integer("node_losses").value_or(rules.node_losses));
  rules.loss_window_ms = milliseconds("loss_window", rules.loss_window_ms);
  rules.quarantine_ms = milliseconds("keep_out", rules.quarantine_ms);
  rules.job_losses = static_cast<int>(conf.integer("job_losses").value_or(rules.job_losses));
  plan_.settings.node.exit_barrier_ms = milliseconds("exit_barrier", plan_.settings.node.exit_barrier_ms);
  transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  rendezvous.rejoin_ms = milliseconds("rejoin_timeout", rendezvous.rejoin_ms);
  rendezvous.loss_timeout_ms = loss_timeout_ms(conf);
  rendezvous.gives_loss_timeout =
      std::ranges::any_of(kLossTimeoutKeys, [&](const char* key) { return conf.integer(key).has_value(); });
  const std::string origin = flags_.is_given(FlagId::kRdzvConf) ? flags_.origin_text(FlagId::kRdzvConf) : "default";
  entry("waits",
        format("{} s for the minimum of nodes, then {} s for more", rules.join_timeout_ms / kSecond,
               rules.last_call_ms / kSecond),
        origin);
  if (detected_.has_all_nodes && !is_static() && !conf.find("join_timeout")) {
    rules.replacement_wait_ms = 0;
    entry("wait below the minimum", "none after the first round: no other node can come",
          format("{}: a step; --rdzv-conf=join_timeout=SECONDS waits", detected_.system));
  }
  entry("loss timeout", format("{} s without a message from a node", rendezvous.loss_timeout_ms / kSecond), origin);
}

}  // namespace

Status plan_many_nodes(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                       const HostView& host, const detect::Detected& detected, LaunchPlan& plan) {
  return RendezvousPlanner(flags, checked, environment, host, detected, plan).plan();
}

void tell_rendezvous_of_node(run::LaunchSettings& settings) {
  transport::RendezvousSettings& rendezvous = settings.rendezvous;
  rendezvous.job = settings.worker.run_id;
  rendezvous.node_rank = settings.node.node_rank;
  rendezvous.node_address = settings.node.address;
  rendezvous.max_nodes = settings.node.terms.max_nodes;
}

Result<transport::RendezvousSettings> plan_coordinator_only(const ParsedFlags& flags, const Environment& environment,
                                                            const HostView& host) {
  auto conf = check_rdzv_conf(flags.text(FlagId::kRdzvConf), flags.input(FlagId::kRdzvConf));
  if (!conf) return std::unexpected(std::move(conf.error()));
  if (const std::string* type = conf->find("store_type"); type != nullptr && *type != "tcp") {
    return fail(flags.input(FlagId::kRdzvConf), "--coordinator-only listens at an endpoint of its own, for any job",
                "leave store_type out, and name host and port with --rdzv-endpoint");
  }
  auto endpoint = check_endpoint(flags.text(FlagId::kRdzvEndpoint), flags.input(FlagId::kRdzvEndpoint));
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  auto secret = find_job_secret(*conf, flags, environment, host);
  if (!secret) return std::unexpected(std::move(secret.error()));
  return transport::RendezvousSettings{.alone = false,
                                       .host = endpoint->host,
                                       .port = endpoint->port.value_or(kDefaultPort),
                                       .secret = std::move(secret->text),
                                       .status_open = flags.on(FlagId::kStatusOpen),
                                       .loss_timeout_ms = loss_timeout_ms(*conf)};
}

Result<std::string> plan_secret_alone(const ParsedFlags& flags, const CheckedFlags& checked,
                                      const Environment& environment, const HostView& host) {
  auto secret = find_job_secret(checked.rdzv_conf, flags, environment, host);
  if (!secret) return std::unexpected(std::move(secret.error()));
  return std::move(secret->text);
}

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
