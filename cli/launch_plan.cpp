#include "cli/launch_plan.h"

#include <algorithm>
#include <utility>

#include "cli/device_plan.h"
#include "cli/output_plan.h"
#include "cli/plan_parts.h"
#include "cli/rendezvous_plan.h"
#include "cli/wrap_rules.h"
#include "src/base/address.h"
#include "src/base/environment.h"
#include "src/base/limits.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/output/lines/line_assembler.h"

namespace elastic::cli {
namespace {

using StoreKind = store::StoreSettings::Kind;

constexpr std::int64_t kDefaultShutdownSeconds = 30;
// The grace after a SIGTERM from outside. Kubernetes and Slurm send SIGKILL after 30 s.
constexpr std::int64_t kTerminatedSeconds = 25;
constexpr std::int64_t kStuckSeconds = 5;
constexpr std::uint16_t kNoPort = 0;
// Longer than a failure report takes, even if the log directory hangs.
constexpr std::int64_t kPartingMs = 2'000;

std::string names_of(const std::vector<int>& signals) {
  std::vector<std::string> names;
  for (const int signal : signals) names.push_back(signal_name(signal));
  return join(names, ",");
}

// Builds the plan part by part, in the order in which a reader wants to see it.
class Planner {
 public:
  Planner(const ParsedFlags& flags, CheckedFlags checked, const Environment& environment, const HostView& host,
          const detect::Detected& detected)
      : flags_(flags), checked_(std::move(checked)), environment_(environment), host_(host), detected_(detected) {}

  Result<LaunchPlan> plan() {
    for (const auto part :
         {&Planner::apply_auto_config, &Planner::plan_nodes, &Planner::plan_workers, &Planner::plan_program,
          &Planner::plan_rendezvous, &Planner::plan_http_port, &Planner::plan_stop, &Planner::plan_logs,
          &Planner::plan_output, &Planner::plan_environment}) {
      if (const Status done = (this->*part)(); !done) return std::unexpected(done.error());
    }
    tell_rendezvous_of_node(plan_.settings);
    return std::move(plan_);
  }

 private:
  Status apply_auto_config();
  void plan_local_tasks();
  Status plan_nodes();
  Status plan_workers();
  Status plan_program();
  Status plan_rendezvous();
  Status check_http_port(std::uint16_t port) const;
  Status plan_http_port();
  Status plan_stop();
  bool leaves_background() const { return flags_.on(FlagId::kLeaveBackground); }
  Status plan_logs();
  Status plan_output();
  void plan_prefix();
  Status plan_events();
  void show_output();
  std::optional<std::string> temporary_directory(bool warns);
  Status plan_environment();

  std::optional<std::string> variable(std::string_view name) const { return elastic::lookup(environment_, name); }
  void entry(std::string name, std::string value, std::string origin) {
    plan_.entry(std::move(name), std::move(value), std::move(origin));
  }
  void warn(std::string text) { plan_.warn(std::move(text)); }
  std::string run_id(bool standalone, std::string& origin);

  const ParsedFlags& flags_;
  CheckedFlags checked_;
  const Environment& environment_;
  const HostView& host_;
  const detect::Detected& detected_;
  LaunchPlan plan_;
  std::string nodes_origin_;
  std::string prefix_origin_;
  std::optional<int> auto_workers_;  // the number of GPUs that --auto_config has counted
};

// dlrover-run's rule: nodes come from NODE_NUM and workers from the GPUs, each only where it is there.
Status Planner::apply_auto_config() {
  nodes_origin_ = flags_.origin_text(FlagId::kNnodes);
  if (!flags_.on(FlagId::kAutoConfig)) return {};
  if (const auto count = variable("NODE_NUM")) {
    const auto nodes = parse_int(*count);
    if (!nodes || *nodes < 1) {
      return fail(format("NODE_NUM={}", printable(*count)), "not a number of nodes of at least 1",
                  "set it to the number of nodes, or leave out --auto_config");
    }
    checked_.nodes = {*nodes, *nodes};
    nodes_origin_ = "--auto_config: NODE_NUM";
    // check_flags() chose how nodes meet before it was known that the job has many.
    if (*nodes > 1 && checked_.rendezvous == Rendezvous::kImplicitStandalone) {
      const auto master = variable("DLROVER_MASTER_ADDR");
      if (!master || master->empty()) {
        return fail(format("NODE_NUM={}", printable(*count)), format("a job of {} nodes needs a place to meet", *nodes),
                    "name it with --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT, or DLROVER_MASTER_ADDR");
      }
      checked_.rendezvous = Rendezvous::kC10d;
    }
  }
  if (const auto count = count_gpus(host_, environment_).number; count > 0) auto_workers_ = static_cast<int>(count);
  return {};
}

void Planner::plan_local_tasks() {
  const detect::LocalTasks& local_tasks = detected_.local_tasks;
  plan_.settings.local_tasks = {local_tasks.name, local_tasks.index, local_tasks.members};
  plan_.settings.node.signals_are_shared = detected_.signals_the_node;
  // A node that ends with a failure may end the others, see detect::Detected.
  if (detected_.signals_the_node && checked_.nodes.max > 1) plan_.settings.parting_ms = kPartingMs;
  if (local_tasks.members < 2) return;
  entry("tasks of this node",
        local_tasks.index == 0 ? format("this one launches; {} wait for its end", local_tasks.members - 1)
                               : "another one launches; this one waits and ends with its status",
        local_tasks.source);
}

Status Planner::plan_nodes() {
  plan_local_tasks();
  const NodeRange nodes = checked_.nodes;
  const std::string text = nodes.min == nodes.max ? format("{}", nodes.min) : format("{}:{}", nodes.min, nodes.max);
  if (checked_.rendezvous == Rendezvous::kStandalone && nodes.max > 1) {
    const std::string input = flags_.input(FlagId::kStandalone);
    if (nodes.min > 1) {
      return fail(nodes_origin_.starts_with("--auto") ? format("NODE_NUM={}", text) : flags_.input(FlagId::kNnodes),
                  format("{} is for one node", input),
                  format("leave {} out, and name a host with --rdzv-endpoint", input));
    }
    warn(format("{}: {} is for one node; this node goes on alone", flags_.input(FlagId::kNnodes), input));
  }
  entry("nodes", text, nodes_origin_);
  return {};
}

Status Planner::plan_workers() {
  auto counted = count_workers(checked_.workers, flags_.input(FlagId::kNprocPerNode), host_, environment_);
  if (!counted) return std::unexpected(std::move(counted.error()));
  std::int64_t count = counted->number;
  std::string origin = flags_.origin_text(FlagId::kNprocPerNode);
  if (!counted->of.empty()) origin += ", " + counted->of;
  if (auto_workers_) {
    count = *auto_workers_;
    origin = "--auto_config: visible GPUs";
  }
  plan_.settings.node.local_world_size = static_cast<int>(count);
  plan_.settings.worker.local_world_size = static_cast<int>(count);
  entry("workers on this node", format("{}", count), origin);
  plan_.settings.node.role = plan_.settings.worker.role = flags_.text(FlagId::kRole);
  entry("role", printable(flags_.text(FlagId::kRole)), flags_.origin_text(FlagId::kRole));
  return {};
}

Status Planner::plan_program() {
  plan_.settings.parent_error_file = variable("TORCHELASTIC_ERROR_FILE").value_or("");
  plan_.settings.termination_log = variable("ELASTIC_RUN_TERMINATION_LOG").value_or("/dev/termination-log");
  if (flags_.on(FlagId::kCheckOnly)) {
    plan_.settings.title = long_spelling(flag_of(FlagId::kCheckOnly));
    return {};
  }
  auto program = find_worker_program(flags_, checked_, environment_, host_);
  if (!program) return std::unexpected(program.error());
  for (std::string& warning : program->warnings) warn(std::move(warning));
  entry("program", printable(program->path, 4096), program->origin);
  // torchrun runs such a script in a function of this name.
  const auto slash = program->path.rfind('/');
  plan_.settings.entry_point = checked_.run_path ? "run_script_path" : program->path.substr(slash + 1);
  plan_.settings.workers_end_together = checked_.run_path;
  plan_warm(flags_, checked_, *program, plan_);
  plan_numa(flags_, environment_, host_, plan_);
  plan_.settings.program = std::move(program->path);
  plan_.settings.worker.arguments = std::move(program->arguments);
  plan_.settings.title = std::move(program->title);
  return plan_wrap(flags_, environment_, host_, plan_);
}

std::string Planner::run_id(bool standalone, std::string& origin) {
  const std::string& given = flags_.text(FlagId::kRdzvId);
  origin = flags_.origin_text(FlagId::kRdzvId);
  // --standalone overwrites the id, as with torchrun; a plain one-node launch keeps one that was given.
  if (flags_.on(FlagId::kStandalone) || (standalone && !flags_.is_known(FlagId::kRdzvId))) {
    origin = "random, for a job of one node";
    return host_.random_uuid();
  }
  if (!given.empty()) return given;
  origin = "random, because --rdzv-id is empty";
  std::string id = host_.random_uuid();
  warn(format("--rdzv-id is empty; the job's id is {}", id));
  return id;
}

Status Planner::plan_rendezvous() {
  const bool standalone =
      checked_.rendezvous == Rendezvous::kStandalone || checked_.rendezvous == Rendezvous::kImplicitStandalone;
  store::StoreSettings& store = plan_.settings.store;
  std::string origin;
  plan_.settings.worker.run_id = run_id(standalone, origin);
  entry("job id", printable(plan_.settings.worker.run_id), origin);
  if (checked_.nodes.max > 1 && !standalone) {
    return plan_many_nodes(flags_, checked_, environment_, host_, detected_, plan_);
  }
  if (checked_.rendezvous == Rendezvous::kStatic) {
    const std::string& host = checked_.endpoint.host;
    const std::string* admitted = checked_.rdzv_conf.find("store_admits");
    store = {.kind = StoreKind::kFixedPort,
             .master_addr = host,
             .port = checked_.endpoint.port.value_or(kNoPort),
             .of_loopback = is_loopback(host) || lower(host) == "localhost",
             .admits_all = admitted != nullptr && *admitted == "all"};
    const std::string_view who = store.of_loopback  ? "of loopback"
                                 : store.admits_all ? "on all addresses"
                                                    : "on all addresses, for processes of this host";
    entry("worker store", format("port {} {}, given to workers as {}", store.port, who, printable(store.master_addr)),
          flags_.is_given(FlagId::kRdzvEndpoint) ? flags_.origin_text(FlagId::kRdzvEndpoint)
                                                 : flags_.origin_text(FlagId::kMasterPort));
    return {};
  }
  for (const FlagId id : {FlagId::kMasterAddr, FlagId::kNodeRank}) {
    if (flags_.is_given(id) && flags_.text(id) != flag_of(id).by_default.value_or("")) {
      warn(format("{} is only used with --rdzv-backend=static and a port; it is ignored", flags_.input(id)));
    }
  }
  const bool by_worker = variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1";
  store.kind = by_worker ? StoreKind::kByWorker : StoreKind::kFreshLoopback;
  plan_.settings.worker.use_agent_store = !by_worker;
  const std::string by = by_worker    ? "served by rank 0 (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)"
                         : standalone ? "one node"
                                      : "--rdzv-backend=c10d, one node";
  if (const std::string& address = flags_.text(FlagId::kLocalAddr); !address.empty()) {
    // A user who names the address wants to be reached there, whatever interface that is.
    store.master_addr = address;
    store.of_loopback = false;
    if (!by_worker) store.kind = StoreKind::kFreshPort;
    entry("worker store",
          format("a free port on all addresses, a new one for each round, given to workers as {}", printable(address)),
          format("{}; {}", flags_.origin_text(FlagId::kLocalAddr), by));
    return {};
  }
  entry("worker store", "a free port of 127.0.0.1, a new one for each round", by);
  return {};
}

// The port of the rendezvous serves status and metrics already.
Status Planner::check_http_port(std::uint16_t port) const {
  const transport::RendezvousSettings& rendezvous = plan_.settings.rendezvous;
  const bool is_endpoint =
      !rendezvous.alone && (port == rendezvous.port || std::ranges::count(rendezvous.more_ports, port) > 0);
  if (port == 0 || (!is_endpoint && port != plan_.settings.store.port)) return {};
  return fail(flags_.input(FlagId::kHttpPort),
              is_endpoint ? "it is the port of the rendezvous" : "it is the port of the workers' store",
              "choose another, or 0 for a free one");
}

Status Planner::plan_http_port() {
  plan_.settings.rendezvous.status_open = flags_.on(FlagId::kStatusOpen);
  if (flags_.on(FlagId::kStatusOpen))
    entry("status", "names and texts are shown to everyone", flags_.origin_text(FlagId::kStatusOpen));
  if (!flags_.is_set(FlagId::kHttpPort)) return {};
  const auto port = static_cast<std::uint16_t>(flags_.integer(FlagId::kHttpPort));
  if (const Status free = check_http_port(port); !free) return free;
  plan_.settings.http_port = port;
  entry("status and metrics", port == 0 ? "a free port on all addresses" : format("port {} on all addresses", port),
        flags_.origin_text(FlagId::kHttpPort));
  if (!plan_.settings.rendezvous.alone) return {};
  auto secret = plan_secret_alone(flags_, checked_, environment_, host_);
  if (!secret) return std::unexpected(std::move(secret.error()));
  plan_.settings.rendezvous.secret = std::move(*secret);
  return {};
}

Status Planner::plan_stop() {
  run::LaunchSettings& settings = plan_.settings;
  settings.max_restarts = static_cast<int>(checked_.max_restarts);
  settings.node.terms.max_restarts = settings.max_restarts;
  entry("restarts", format("{}", settings.max_restarts), flags_.origin_text(FlagId::kMaxRestarts));
  const bool restarts_crashes = flags_.text(FlagId::kCrashLoop) == "restart";
  if (restarts_crashes) settings.node.rules.crash_loop = protocol::JobRules::CrashLoop::kRestart;
  if (settings.max_restarts > 0) {
    entry("crash loop", restarts_crashes ? "restarted like any failure" : "ends the job after two attempts",
          flags_.origin_text(FlagId::kCrashLoop));
  }
  std::int64_t seconds = kDefaultShutdownSeconds;
  std::string origin = "default";
  constexpr const char* kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  if (checked_.shutdown_timeout_seconds) {
    seconds = *checked_.shutdown_timeout_seconds;
    origin = flags_.origin_text(FlagId::kShutdownTimeout);
  } else if (const auto value = variable(kVariable)) {
    // torchrun takes a negative value of this variable, though not of the flag, for "kill at once".
    const auto number = parse_int(*value);
    const auto known = number && *number < 0 ? Result<std::int64_t>(0)
                                             : check_seconds(*value, format("{}={}", kVariable, printable(*value)));
    if (!known) return std::unexpected(known.error());
    seconds = *known;
    origin = format("environment: {}", kVariable);
  }
  settings.node.shutdown_timeout_ms = seconds * 1000;
  const bool chosen = origin != "default";
  settings.node.terminated_timeout_ms = chosen ? seconds * 1000 : kTerminatedSeconds * 1000;
  entry("stop",
        format("SIGTERM, then SIGKILL after {} s{}", seconds,
               chosen ? "" : format(" ({} s after a SIGTERM from outside)", kTerminatedSeconds)),
        origin);
  entry("who gets a signal",
        "a worker alone that handles it, and its group when it has ended; SIGINT, and if it is a shell: the group",
        "default");
  settings.node.ignore_stuck_workers = flags_.text(FlagId::kStuckWorker) == "ignore";
  settings.node.stuck_timeout_ms = checked_.rdzv_conf.integer("stuck_timeout").value_or(kStuckSeconds) * 1000;
  if (Status status = plan_check(flags_, checked_, environment_, host_, plan_); !status) return status;
  settings.propagate_exit_code = flags_.on(FlagId::kPropagateExitCode);
  settings.node.leave_background = leaves_background();
  if (settings.node.leave_background) {
    entry("background processes", "left alive after success", flags_.origin_text(FlagId::kLeaveBackground));
  }
  settings.use_cgroup = variable("ELASTIC_RUN_CGROUP") != "off";
  settings.signals = checked_.signals;
  for (const std::string& name : checked_.unknown_signals) {
    warn(format("Failed to register signal handler for {}: {} there is no such signal; it is skipped", printable(name),
                flags_.input(FlagId::kSignalsToHandle)));
  }
  entry("signals that end the job", names_of(checked_.signals), flags_.origin_text(FlagId::kSignalsToHandle));
  if (checked_.forward_signals.empty()) return {};
  entry("signals for the workers", names_of(checked_.forward_signals), flags_.origin_text(FlagId::kForwardSignals));
  settings.node.forward_signals.insert(checked_.forward_signals.begin(), checked_.forward_signals.end());
  settings.signals.insert(settings.signals.end(), checked_.forward_signals.begin(), checked_.forward_signals.end());
  return {};
}

Status Planner::plan_logs() {
  run::LogSettings& logs = plan_.settings.logs;
  const std::string& given = flags_.text(FlagId::kLogDir);
  const std::string origin = flags_.origin_text(FlagId::kLogDir);
  if (given == "/dev/null") {
    logs.enabled = false;
    entry("log directory", "none", origin);
  } else if (!given.empty()) {
    logs.base = given;
    entry("log directory", printable(given, 4096), origin);
  } else if (auto place = temporary_directory(true)) {
    logs.temporary = std::move(*place);
    entry("log directory", format("a new one in {}", printable(logs.temporary, 4096)), "default");
  } else {
    logs.enabled = false;
    entry("log directory", "none", "default");
    warn(
        "no log directory and no error files: neither /tmp, /var/tmp, /usr/tmp nor the working directory can be "
        "written; name a place with TMPDIR or --log-dir");
  }
  return {};
}

// The first directory for temporary files that can be written, in Python's order, which is torchrun's; none on a host
// that is read-only throughout.
std::optional<std::string> Planner::temporary_directory(bool warns) {
  std::string passed_over;
  const auto usable = [this](const std::string& path) {
    const HostView::PathFacts facts = host_.look_at(path);
    return facts.directory && facts.writable && facts.executable;
  };
  const auto chosen = [&](const std::string& place) {
    if (warns && !passed_over.empty()) {
      warn(format("{} cannot be written; log directories go to {}", passed_over, printable(place)));
    }
    return place;
  };
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const auto value = variable(name);
    if (!value || value->empty()) continue;
    if (usable(*value)) return chosen(*value);
    if (passed_over.empty()) passed_over = format("{}={}", name, printable(*value));
  }
  for (const char* place : {"/tmp", "/var/tmp", "/usr/tmp", "."}) {
    if (usable(place)) return chosen(place);
  }
  return {};
}

Status Planner::plan_output() {
  run::OutputSettings& output = plan_.settings.output;
  for (int rank = 0; rank < plan_.settings.node.local_world_size; ++rank) {
    const auto& filter = checked_.local_ranks_filter;
    output.ranks.push_back({.redirects = checked_.redirects.of(rank),
                            .tee = checked_.tee.of(rank),
                            .shown = !filter || filter->contains(rank)});
  }
  output.role = plan_.settings.worker.role;
  plan_prefix();
  output.stdout_filters = flags_.list(FlagId::kDuplicateStdoutFilters);
  output.stderr_filters = flags_.list(FlagId::kDuplicateStderrFilters);
  output.log_max_bytes = checked_.log_max_bytes;
  // A process that is to outlive elastic-run must not write to a pipe whose reader ends with elastic-run.
  output.stderr_tail =
      flags_.text(FlagId::kStderrTail) == "auto" && (!leaves_background() || flags_.is_given(FlagId::kStderrTail));
  if (!output.stderr_tail) output.no_tail_because = leaves_background() ? "--leave-background" : "--stderr-tail=never";
  const std::string terminal = variable("TERM").value_or("");
  output.status_line = !terminal.empty() && terminal != "dumb" && flags_.text(FlagId::kLogFormat) == "text";
  show_output();
  plan_watching(flags_, checked_, environment_, plan_);
  plan_.settings.tuning.cpus = std::max(host_.usable_cpus() / plan_.settings.node.local_world_size, 1);
  plan_.settings.progress.parent = temporary_directory(false).value_or("");
  if (flags_.is_given(FlagId::kRecord)) {
    plan_.settings.record_file = flags_.text(FlagId::kRecord);
    entry("recording", printable(plan_.settings.record_file, 4096), flags_.origin_text(FlagId::kRecord));
  }
  return plan_events();
}

// With torchrun an empty flag gives way to the variable, as an empty variable does to the default. Here it is meant.
void Planner::plan_prefix() {
  std::string& prefix = plan_.settings.output.prefix_template;
  constexpr const char* kVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  prefix = flags_.text(FlagId::kLogLinePrefixTemplate);
  prefix_origin_ = flags_.origin_text(FlagId::kLogLinePrefixTemplate);
  if (flags_.is_given(FlagId::kLogLinePrefixTemplate)) return;
  prefix = variable(kVariable).value_or("");
  if (prefix.empty()) {
    prefix = output::kDefaultLinePrefix;
  } else {
    prefix_origin_ = format("environment: {}", kVariable);
  }
}

Status Planner::plan_events() {
  if (!flags_.text(FlagId::kEvents).empty()) {
    if (flags_.text(FlagId::kEvents) == plan_.settings.record_file) {
      return fail(flags_.input(FlagId::kEvents), format("{} is the same file", flags_.input(FlagId::kRecord)),
                  "name another");
    }
    plan_.settings.events_file = flags_.text(FlagId::kEvents);
    entry("events", printable(plan_.settings.events_file, 4096), flags_.origin_text(FlagId::kEvents));
  }
  plan_.settings.on_event = flags_.text(FlagId::kOnEvent);
  plan_.settings.on_event_kinds = checked_.on_event_kinds;
  if (!plan_.settings.on_event.empty()) {
    entry("event command", printable(plan_.settings.on_event, 4096), flags_.origin_text(FlagId::kOnEvent));
  }
  plan_.settings.torch_events = flags_.text(FlagId::kEventLogHandler) == "console";
  plan_.settings.rdzv_backend = checked_.rendezvous == Rendezvous::kStatic ? "static" : "c10d";
  return {};
}

// Shows where the workers' output goes.
void Planner::show_output() {
  const run::OutputSettings& output = plan_.settings.output;
  const bool has_files = plan_.settings.logs.enabled;
  std::vector<std::string> given;
  for (const FlagId id : {FlagId::kRedirects, FlagId::kTee, FlagId::kLocalRanksFilter}) {
    if (flags_.is_given(id)) given.push_back(flags_.origin_text(id));
  }
  const std::string origin = given.empty() ? "default" : join(given, ", ");
  entry("stdout", where_it_goes(output.ranks, output::kStdoutBit, has_files), origin);
  entry("stderr", where_it_goes(output.ranks, output::kStderrBit, has_files), origin);
  entry("stderr kept",
        output.stderr_tail ? format("{} KiB of each rank, for the failure report", limits::kStderrTailBytes / 1024)
                           : "not kept",
        flags_.origin_text(leaves_background() && !flags_.is_given(FlagId::kStderrTail) ? FlagId::kLeaveBackground
                                                                                        : FlagId::kStderrTail));
  if (!has_files) return;
  if (std::ranges::any_of(output.ranks, [](const output::OutputFlags& flags) { return flags.tee != 0; })) {
    entry("line prefix", output.prefix_template.empty() ? "none" : printable(output.prefix_template), prefix_origin_);
  }
  const auto show_filter = [this](FlagId id, const char* file, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    std::vector<std::string> quoted;
    for (const std::string& text : texts) quoted.push_back(shell_quote(text));
    entry(file, format("lines of --tee with {}", join(quoted, " or ")), flags_.origin_text(id));
  };
  show_filter(FlagId::kDuplicateStdoutFilters, "filtered_stdout.log", output.stdout_filters);
  show_filter(FlagId::kDuplicateStderrFilters, "filtered_stderr.log", output.stderr_filters);
  if (output.log_max_bytes == 0) return;
  entry("log files", format("at most {} bytes each, and one older file", output.log_max_bytes),
        flags_.origin_text(FlagId::kLogMaxBytes));
}

Status Planner::plan_environment() {
  run::WorkerTemplate& worker = plan_.settings.worker;
  worker.environment = environment_;
  worker.virtual_local_rank = flags_.on(FlagId::kVirtualLocalRank);
  if (worker.virtual_local_rank) worker.devices = devices_of_workers(flags_, host_, environment_);
  if (const Status port = plan_training_port(flags_, environment_, plan_); !port) return port;
  worker.signals_to_handle = flags_.text(FlagId::kSignalsToHandle);
  // A worker that has the first variable writes to a pipe that nobody reads, unless file timers are served. Workers
  // must not have the job's secret.
  std::erase_if(worker.environment, [](const std::string& text) {
    return text.starts_with("TORCHELASTIC_TIMER_FILE=") || text.starts_with(format("{}=", run::kSecretVariable));
  });
  if (worker.local_world_size > 1 && !variable("OMP_NUM_THREADS")) {
    warn(
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid "
        "your system being overloaded, please further tune the variable for optimal performance in "
        "your application as needed.");
  }
  for (int rank = 0; worker.virtual_local_rank && rank < worker.local_world_size; ++rank) {
    const auto known = run::worker_variables(
        worker, {.local_rank = rank, .node = {}, .master_addr = {}, .master_port = {}, .error_file = {}, .fence = {}});
    if (!known) return std::unexpected(known.error());
  }
  return {};
}

}  // namespace

Result<LaunchPlan> make_launch_plan(const ParsedFlags& flags, const Environment& environment, const HostView& host,
                                    const detect::Detected& detected) {
  auto checked = check_flags(flags);
  if (!checked) return std::unexpected(checked.error());
  return Planner(flags, std::move(*checked), environment, host, detected).plan();
}

}  // namespace elastic::cli
