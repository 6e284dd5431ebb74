#include "cli/run/check_runner.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "health/probe/probe_process.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"

namespace elastic::run {
CheckRunner::CheckRunner(net::Loop& loop, CheckRunnerSettings settings, Handlers handlers)
    : loop_(loop), settings_(std::move(settings)), handlers_(std::move(handlers)), deadline_(loop) {
  settings_.task.began_us = process::clock_ms(CLOCK_MONOTONIC_RAW) * 1000;
}

health::ProbeTask CheckRunner::probe_task() const {
  health::ProbeTask task = settings_.task;
  task.interfaces = net::interfaces_with(settings_.address, net::interfaces());
  return task;
}

void CheckRunner::perform(const agent::CheckNode& order) {
  asked_ = order;
  tests_ = {};
  order.phase == health::kSelfPhase ? begin(order) : ask(order);
}

void CheckRunner::begin(const agent::CheckNode&) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(errno_text(errno));
  channel_ = UniqueFd(ends[0]);
  const UniqueFd its(ends[1]);
  const health::ProbeTask task = probe_task();
  process::Command command{.path = "/proc/self/exe",
                           .arguments = health::probe_arguments(task),
                           .environment = settings_.environment,
                           .variables = {},
                           .standard_output = its.get()};
  command.arguments.insert(command.arguments.begin(), std::string(program_name()));
  line_.clear();
  if (const auto pid = handlers_.start(command); !pid) {
    channel_ = UniqueFd();
    return failed(pid.error().text());
  }
  watch_.emplace(loop_, channel_.get(), [this] { read(); });
  const std::int64_t limit_ms = health::look_limit_ms(settings_.environment, task);
  deadline_.start(limit_ms, [this, limit_ms] { failed(format("it did not answer within {} s", limit_ms / 1000)); });
}

void CheckRunner::ask(const agent::CheckNode& order) {
  auto tests = health::read_check_order(order.order);
  if (!tests) return answer(health::text_of(health::PairResults{}));
  tests_ = std::move(*tests);
  const std::int64_t limit_ms = health::tests_limit_ms(settings_.environment, probe_task(), tests_);
  if (!channel_) return failed("its check process is not running");
  const std::string line = order.order + "\n";
  const auto sent = ::send(channel_.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) return failed("its check process does not accept orders");
  deadline_.start(
      limit_ms, [this, limit_ms] { failed(format("its check process did not answer within {} s", limit_ms / 1000)); });
}

void CheckRunner::read() {
  char piece[8192];
  const ssize_t count = ::read(channel_.get(), piece, sizeof piece);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    watch_.reset();  // exited() is about to be called
    return;
  }
  line_.append(piece, static_cast<std::size_t>(count));
  const std::size_t end = line_.find('\n');
  if (end == std::string::npos) {
    if (line_.size() > limits::kAgentCheckBytes) failed("its check process sent a line that is too long");
    return;
  }
  std::string result = line_.substr(0, end);
  line_.erase(0, end + 1);
  if (asked_) answer(std::move(result));
}

void CheckRunner::exited(ExitStatus status) {
  watch_.reset();
  channel_ = UniqueFd();
  if (asked_) failed(format("its check process {}", status.text()));
}

// Answers the order in the place of the probe, which is killed.
void CheckRunner::failed(const std::string& why) {
  deadline_.stop();
  watch_.reset();
  if (channel_) {
    channel_ = UniqueFd();
    handlers_.kill();
  }
  if (!asked_) return;
  log::info("check", format("the check of this node failed: {}", why));
  answer(asked_->phase == health::kSelfPhase ? health::text_of(health::SelfResult{.unhealthy = why})
                                             : health::text_of_failed(tests_, why));
}

void CheckRunner::answer(std::string result) {
  deadline_.stop();
  const agent::CheckNode order = *std::exchange(asked_, {});
  keep_findings(order.phase, result);
  handlers_.on_checked({order.round, order.phase, std::move(result)});
}

void CheckRunner::keep_findings(std::uint32_t phase, const std::string& result) {
  if (phase == health::kSelfPhase) findings_.clear();
  const auto keep = [this](const std::vector<health::Finding>& found) {
    findings_.insert(findings_.end(), found.begin(), found.end());
  };
  const auto read = health::read_check_result(phase, result);
  if (!read) return;
  if (const auto* self = std::get_if<health::SelfResult>(&*read)) {
    keep(self->findings);
    if (!self->unhealthy.empty()) keep({{health::Severity::kFatal, self->unhealthy}});
  } else if (const auto* pairs = std::get_if<health::PairResults>(&*read)) {
    keep(pairs->findings);
  }
}

void CheckRunner::stop() {
  if (leave()) handlers_.kill();
}

bool CheckRunner::leave() {
  asked_.reset();
  deadline_.stop();
  watch_.reset();
  if (!channel_) return false;
  channel_ = UniqueFd();
  return true;
}

}  // namespace elastic::run
