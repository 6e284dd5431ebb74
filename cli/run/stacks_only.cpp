#include "cli/run/commands.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run/control_api.h"
#include "cli/run/proven_request.h"
#include "cli/run/stacks_collector.h"
#include "health/stacks/document.h"
#include "src/base/log.h"
#include "src/base/read_file.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/net/limits.h"
#include "src/net/loop.h"
#include "src/output/write_all.h"
#include "src/process/children.h"
#include "src/process/descendants.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"
#include "src/warm/server_text.h"

namespace elastic::run {
namespace {

constexpr std::size_t kMostEnvironment = 2 * 1024 * 1024;

// The rank that a worker has been given; none where the process is no worker. The kernel's copy of its environment ends
// each entry with NUL.
std::optional<int> rank_in(const std::string& environment) {
  std::optional<std::int64_t> rank;
  bool has_local_rank = false;
  for (const std::string& entry : split(environment, '\0')) {
    if (entry.starts_with("RANK=")) rank = parse_int(entry.substr(5));
    has_local_rank = has_local_rank || entry.starts_with("LOCAL_RANK=");
  }
  if (!rank || *rank < 0 || *rank > INT32_MAX || !has_local_rank) return {};
  return static_cast<int>(*rank);
}

std::string program_of(const std::string& process) {
  std::array<char, 4096> path{};
  const ssize_t size = readlink(format("/proc/{}/exe", process).c_str(), path.data(), path.size());
  std::string_view found(path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  constexpr std::string_view kReplaced = " (deleted)";  // by another version, while it runs
  if (found.ends_with(kReplaced)) found.remove_suffix(kReplaced.size());
  return std::string(found);
}

bool is_elastic_run(pid_t pid) {
  const std::string its = program_of(std::to_string(pid));
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  return !its.empty() && name(its) == name(program_of("self"));
}

// Whether a process that leads a session, and shows no rank, is a worker that was forked from the import server
// (src/warm): /proc shows the environment of that server for it. No rank is known of it.
bool is_warm_worker(const process::ProcessFacts& facts) {
  return is_elastic_run(facts.parent) && !is_elastic_run(facts.pid) &&
         process::command_line(facts.pid).find(warm::kBoot) == std::string::npos;
}

// The workers of an elastic-run: of its descendants those that lead a session and were started with a rank.
std::vector<StacksTarget> workers_of(pid_t launcher) {
  std::vector<StacksTarget> workers;
  const std::vector<process::ProcessFacts> all = process::descendants_of(launcher);
  for (const process::ProcessFacts& facts : all) {
    if (facts.session != facts.pid) continue;
    const auto environment = read_file(format("/proc/{}/environ", facts.pid), kMostEnvironment);
    const auto rank = environment ? rank_in(*environment) : std::nullopt;
    // A process that may not be read may be a worker, and why it may not be read is worth telling.
    if (environment && !rank && !is_warm_worker(facts)) continue;
    workers.push_back({.rank = rank.value_or(-1), .pid = facts.pid, .children = children_of(facts.pid, all)});
  }
  // What a worker has started and given a session of its own is its child.
  std::erase_if(workers, [&workers](const StacksTarget& one) {
    return std::ranges::any_of(workers, [&one](const StacksTarget& other) {
      return std::ranges::find(other.children, one.pid) != other.children.end();
    });
  });
  std::ranges::sort(workers, {}, &StacksTarget::rank);
  return workers;
}

Result<std::vector<StacksTarget>> targets_of(pid_t pid) {
  const std::string what = format("--stacks={}", pid);
  if (!process::processes_can_be_seen()) return fail(what, "/proc is not mounted", "");
  if (kill(pid, 0) != 0 && errno == ESRCH) return fail(what, "there is no such process", "look it up with ps");
  if (!is_elastic_run(pid))
    return std::vector{StacksTarget{.pid = pid, .children = children_of(pid, process::descendants_of(pid))}};
  std::vector<StacksTarget> workers = workers_of(pid);
  if (workers.empty()) {
    return fail(what, "this elastic-run has no workers that can be seen",
                "ask again when they run, as the same user or as root");
  }
  return workers;
}

Result<std::vector<stacks::RankLook>> look_at(std::vector<StacksTarget> targets,
                                              const process::InheritedState& inherited) {
  net::Loop loop;
  const process::SpawnContext context{.inherited = inherited};
  StacksCollector collector(loop, {.start = [&](const process::Command& command) { return spawn(command, context); },
                                   .kill =
                                       [](pid_t reader) {
                                         kill(reader, SIGKILL);
                                         process::wait_for_child(reader);
                                       }});
  std::vector<stacks::RankLook> looks;
  collector.collect(std::move(targets), [&](std::vector<stacks::RankLook> found) {
    looks = std::move(found);
    loop.stop();
  });
  loop.run();
  return looks;
}

Result<stacks::StacksDocument> document_of(const HttpAnswer& answer, const std::string& input) {
  constexpr std::size_t kMostText = 4000;
  if (answer.status == 404 && answer.body.starts_with("not found")) {
    return fail(input, "the elastic-run there is of a version without stacks", "ask with --status, or use a newer one");
  }
  if (answer.status != 200) return fail(input, printable(trim(answer.body), kMostText), "");
  auto document = stacks::read_document(answer.body);
  if (!document) return fail(input, document.error().reason, kNotOurs);
  return document;
}

// Asks an elastic-run of the job at `request.place` what all workers of the job are doing. Without an answer it returns
// the exit status, and the reason is on stderr.
std::expected<stacks::StacksDocument, int> stacks_of_job(const StacksRequest& request) {
  net::Loop loop;
  std::expected<stacks::StacksDocument, int> out = std::unexpected(1);
  const process::SignalSource signals(loop, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                      [&](const process::ReceivedSignal& signal) {
                                        out = std::unexpected(128 + signal.number);
                                        loop.stop();
                                      });
  const ProvenRequest question(loop,
                               {.place = *request.place,
                                .secret = request.secret,
                                .target = stacks_target(request.run_id),
                                .by = {.option = "--stacks", .answer_ms = limits::kHttpLaterMs}},
                               [&](const Result<HttpAnswer>& answer) {
                                 auto document =
                                     answer ? document_of(*answer, request.input) : std::unexpected(answer.error());
                                 if (document) {
                                   out = std::move(*document);
                                 } else {
                                   log::critical(document.error().text());
                                 }
                                 loop.stop();
                               });
  loop.run();
  return out;
}

}  // namespace

int print_stacks(const StacksRequest& request, const process::InheritedState& inherited) {
  const auto refuse = [](const Error& error) {
    log::critical(error.text());
    return 1;
  };
  if (const Status prepared = process::prepare_process("--stacks", 0); !prepared) return refuse(prepared.error());
  stacks::StacksDocument document;
  if (request.place) {
    auto told = stacks_of_job(request);
    if (!told) return told.error();
    document = std::move(*told);
    if (document.nodes.empty()) return refuse({request.input, "the job has no nodes now", "ask again when it has"});
  } else {
    auto targets = targets_of(request.pid);
    if (!targets) return refuse(targets.error());
    const auto looks = look_at(std::move(*targets), inherited);
    if (!looks) return refuse(looks.error());
    document.all = stacks::grouped(*looks);
  }
  const std::string text = request.json ? stacks::json_of(document).dump() + "\n" : stacks::page_of(document);
  if (const int error = output::write_all(STDOUT_FILENO, text); error != 0) {
    return refuse({"stdout", errno_text(error), ""});
  }
  const bool has_stack =
      std::ranges::any_of(document.all.groups, [](const stacks::StackGroup& group) { return !group.frames.empty(); });
  return has_stack ? 0 : 1;
}

}  // namespace elastic::run
