#include "src/process/signal_source.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <span>

#include "src/base/check.h"

namespace elastic::process {
namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

std::vector<int> not_ignored(const std::vector<int>& numbers) {
  std::vector<int> out;
  for (const int number : numbers) {
    if (!is_ignored(number)) out.push_back(number);
  }
  return out;
}

SignalSource::SignalSource(net::Loop& loop, const std::vector<int>& numbers,
                           std::function<void(const ReceivedSignal&)> callback)
    : callback_(std::move(callback)) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : not_ignored(numbers)) sigaddset(&set, number);
  ELASTIC_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  fd_ = UniqueFd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  ELASTIC_CHECK(static_cast<bool>(fd_));
  watch_ = std::make_unique<net::ReadWatch>(loop, fd_.get(), [this] { read_all(); });
}

void SignalSource::read_all() {
  std::array<signalfd_siginfo, 4> infos{};
  for (;;) {
    const ssize_t bytes = read(fd_.get(), infos.data(), sizeof infos);
    const std::size_t count = bytes > 0 ? static_cast<std::size_t>(bytes) / sizeof infos[0] : 0;
    for (const signalfd_siginfo& info : std::span(infos).first(count)) {
      callback_({static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid), static_cast<uid_t>(info.ssi_uid)});
    }
    if (count < infos.size()) return;
  }
}

}  // namespace elastic::process
