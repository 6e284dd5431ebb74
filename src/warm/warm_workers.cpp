#include "src/warm/warm_workers.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/clock.h"

namespace elastic::warm {
namespace {

// They differ between ranks or rounds. The import server is started without them (OF_RANKS in src/warm/server.py).
constexpr std::array<std::string_view, 27> kOfRanks = {"LOCAL_RANK",
                                                       "RANK",
                                                       "GROUP_RANK",
                                                       "ROLE_RANK",
                                                       "ROLE_NAME",
                                                       "LOCAL_WORLD_SIZE",
                                                       "WORLD_SIZE",
                                                       "GROUP_WORLD_SIZE",
                                                       "ROLE_WORLD_SIZE",
                                                       "MASTER_ADDR",
                                                       "MASTER_PORT",
                                                       "TORCHELASTIC_RESTART_COUNT",
                                                       "TORCHELASTIC_MAX_RESTARTS",
                                                       "TORCHELASTIC_RUN_ID",
                                                       "TORCHELASTIC_USE_AGENT_STORE",
                                                       "TORCHELASTIC_ERROR_FILE",
                                                       "TORCHELASTIC_SIGNALS_TO_HANDLE",
                                                       "ELASTIC_RUN_FENCE",
                                                       "ELASTIC_RUN_PROGRESS",
                                                       "RUNTIME_METRICS_PATH",
                                                       "FT_RANK_MONITOR_IPC_SOCKET",
                                                       "FT_LAUNCHER_IPC_SOCKET",
                                                       "CUDA_VISIBLE_DEVICES",
                                                       "HIP_VISIBLE_DEVICES",
                                                       "ZE_AFFINITY_MASK",
                                                       "ASCEND_RT_VISIBLE_DEVICES",
                                                       "HCCL_IF_BASE_PORT"};

bool is_of_ranks(std::string_view variable) {
  return std::ranges::find(kOfRanks, variable.substr(0, variable.find('='))) != kOfRanks.end();
}

std::vector<std::string> of_all_ranks(const std::vector<std::string>& variables) {
  std::vector<std::string> out;
  std::ranges::copy_if(variables, std::back_inserter(out), [](const std::string& each) { return !is_of_ranks(each); });
  return out;
}

}  // namespace

WarmWorkers::WarmWorkers(net::Loop& loop, Settings settings, process::WorkerTree& tree, int cgroup_procs)
    : settings_(std::move(settings)),
      tree_(tree),
      cgroup_procs_(cgroup_procs),
      rules_(settings_.launch.rules),
      server_(loop, tree,
              {.on_ready =
                   [this](const Ready& ready) {
                     rules_.server_is_ready();
                     spared_cpu_ms_ = ready.spared_cpu_ms;
                     log::info("warm_server",
                               format("warm workers: {} modules are imported, with {} ms of processor time and {} MiB",
                                      ready.modules, ready.cpu_ms, ready.memory_kib / 1024));
                     look_at_server();
                   },
               .on_struck =
                   [](const Struck& struck) {
                     log::info("warm_server", format("warm workers do without {}: it {}", printable(struck.package),
                                                     printable(struck.why)));
                   },
               .on_parked =
                   [this] {
                     const int wanted = settings_.workers;
                     if (server_.parked() < wanted) return;
                     log::info("warm_workers", format("{} {} for the next round", wanted,
                                                      wanted == 1 ? "warm worker waits" : "warm workers wait"));
                   },
               .on_taken = [this](Result<std::vector<pid_t>> pids) { started(std::move(pids)); },
               .on_gone =
                   [this](const std::string& why, bool for_good) {
                     rules_.server_has_gone(printable(why), for_good);
                     warn_once(printable(why));
                     plan_look();
                   }}),
      timer_(loop) {}

std::string WarmWorkers::why_cold(const std::vector<process::Command>& commands) {
  std::string why;
  const bool is_environment_the_same = std::ranges::all_of(
      commands, [&](const process::Command& command) { return of_all_ranks(command.variables) == found_; });
  if (!is_environment_the_same) {
    why = "the environment is another one than the import server's";
  } else if (!server_.are_modules_the_same()) {
    why = "packages have been installed or removed";
  } else {
    return {};
  }
  server_.end();
  rules_.must_begin_again();
  return why;
}

bool WarmWorkers::may_start(int count) {
  if (rules_.settings().mode == Mode::kOff) return false;
  const std::string why = rules_.why_cold(server_.parked(), count);
  if (!why.empty()) warn_once(why);
  return why.empty();
}

bool WarmWorkers::start_workers(const std::vector<process::Command>& commands,
                                std::function<void(std::vector<pid_t>)> done) {
  const std::string why = why_cold(commands);
  if (!why.empty()) {
    warn_once(why);
    return false;
  }
  std::vector<ImportServer::Order> orders;
  for (const process::Command& command : commands) {
    // Without a pipe of its own a worker writes where we do.
    orders.push_back({command.variables, command.arguments,
                      command.standard_output < 0 ? STDOUT_FILENO : command.standard_output,
                      command.standard_error < 0 ? STDERR_FILENO : command.standard_error});
  }
  starting_since_ms_ = process::boottime_ms();
  const Status given = server_.give(orders, cgroup_procs_);
  rules_.workers_have_gone();
  if (!given) {
    warn_once(given.error().text());
    return false;
  }
  done_ = std::move(done);
  return true;
}

void WarmWorkers::started(Result<std::vector<pid_t>> pids) {
  const auto done = std::exchange(done_, nullptr);
  if (!pids) {
    warn_once(pids.error().text());
    return done({});
  }
  log::info("warm_workers", format("{} of the workers' ranks {} taken by warm workers, in {} ms", pids->size(),
                                   pids->size() == 1 ? "is" : "are", process::boottime_ms() - starting_since_ms_));
  done(std::move(*pids));
}

status::WarmWorkers WarmWorkers::status() const {
  using State = WarmRules::Outlook::State;
  const auto outlook = rules_.outlook(server_.parked(), settings_.workers);
  status::WarmWorkers out{.waiting = server_.parked(), .why = outlook.why};
  switch (outlook.state) {
    case State::kOff: out.state = status::Warmth::kOff; break;
    case State::kPreparing: out.state = status::Warmth::kPreparing; break;
    case State::kReady: out.state = status::Warmth::kReady; break;
    case State::kCold: out.state = status::Warmth::kCold; break;
  }
  return out;
}

void WarmWorkers::give_up_starting() {
  if (std::exchange(done_, nullptr)) server_.withdraw();
}

void WarmWorkers::round_began(bool are_warm, int restarts_left, const process::Command& one, pid_t pid) {
  if (!rules_.may_be_warm()) return;
  running_ = pid;
  environment_.assign(one.environment.begin(), one.environment.end());
  variables_ = of_all_ranks(one.variables);
  rules_.round_began(are_warm, restarts_left, process::boottime_ms());
  plan_look();
}

void WarmWorkers::round_ended(bool has_failed) {
  rules_.round_ended(has_failed, process::boottime_ms());
  timer_.stop();
}

void WarmWorkers::end() {
  timer_.stop();
  server_.end();
}

void WarmWorkers::plan_look() {
  const auto due_ms = rules_.next_ms();
  if (!due_ms) return timer_.stop();
  timer_.start(std::max<std::int64_t>(*due_ms - process::boottime_ms(), 0), [this] { look_at_server(); });
}

void WarmWorkers::look_at_server() {
  using Step = WarmRules::Step;
  const Step step = rules_.next_step(process::boottime_ms());
  if (step == Step::kStartServer) start_server();
  if (step == Step::kPark) server_.park(settings_.workers);
  plan_look();
}

void WarmWorkers::start_server() {
  const WarmLaunch& launch = settings_.launch;
  found_ = variables_;
  Environment environment;
  std::ranges::copy_if(environment_, std::back_inserter(environment),
                       [](const std::string& each) { return !is_of_ranks(each) || each.starts_with("CUDA_"); });
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const Status started = server_.start({.python = settings_.program,
                                        .options = launch.options,
                                        .is_module = launch.is_module,
                                        .target = launch.target,
                                        .wanted = launch.rules.wanted,
                                        .running = running_,
                                        .environment = environment,
                                        .variables = variables_,
                                        .output = nowhere.get()});
  if (started) return;
  rules_.server_has_gone(started.error().text(), true);
  warn_once(started.error().text());
}

void WarmWorkers::warn_once(const std::string& why) {
  if (rules_.is_to_tell(why)) {
    log::warning("warm_workers", format("workers start as fresh interpreters: {}", why));
  } else {
    log::debug("warm_workers", format("workers start as fresh interpreters: {}", why));
  }
}

}  // namespace elastic::warm
