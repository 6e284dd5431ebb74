#include "health/probe/gpu_probes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "health/gpu/messages.h"
#include "src/base/exit_status.h"
#include "src/base/text.h"
#include "src/process/children.h"

namespace elastic::health {
namespace {

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<ProbeImage> ProbeImage::make(std::span<const std::byte> image, const std::string& directory) {
  UniqueFd memory(memfd_create("elastic-gpu-probe", MFD_CLOEXEC));
  if (memory && write_all(memory.get(), image)) {
    // The path names our process, since the child has no descriptor of ours when it executes the program.
    std::string path = format("/proc/{}/fd/{}", getpid(), memory.get());
    if (access(path.c_str(), X_OK) == 0) return ProbeImage(std::move(path), std::move(memory), "");
  }
  std::string path = directory + "/elastic-gpu-probe.XXXXXX";
  const UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  if (!file) return fail_errno("the GPU probe", errno, "name another directory with TMPDIR");
  ProbeImage made(path, UniqueFd(), path);
  if (!write_all(file.get(), image) || fchmod(file.get(), 0700) != 0) {
    return fail_errno(format("the GPU probe {}", printable(path)), errno, "name another directory with TMPDIR");
  }
  return made;
}

ProbeImage ProbeImage::at(std::string path) { return ProbeImage(std::move(path), UniqueFd(), ""); }

ProbeImage::~ProbeImage() {
  if (!file_.empty()) unlink(file_.c_str());
}

Attempt<GpuProbes::Probe> GpuProbes::start_one(const ProbeImage& image, std::span<const std::string> environment) {
  const process::SpawnContext context{.inherited = process::InheritedState::capture()};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::unexpected(errno_text(errno));
  UniqueFd ours(ends[0]);
  const UniqueFd its(ends[1]);
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  const auto pid = process::spawn({.path = image.path(),
                                   .arguments = {"elastic-gpu-probe"},
                                   .environment = environment,
                                   .variables = {},
                                   .standard_output = its.get()},
                                  context);
  if (!pid) return std::unexpected(pid.error().text());
  return Probe{.pid = *pid, .channel = std::move(ours)};
}

Attempt<GpuProbes> GpuProbes::start(int count, const ProbeImage& image, std::span<const std::string> environment) {
  GpuProbes started;
  for (int i = 0; i < count; ++i) {
    auto one = start_one(image, environment);
    if (!one) return std::unexpected(one.error());
    started.probes_.push_back(std::move(*one));
  }
  return started;
}

Attempt<std::vector<std::size_t>> GpuProbes::restart(const ProbeImage& image,
                                                     std::span<const std::string> environment) {
  std::vector<std::size_t> restarted;
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (probes_[i].pid != 0) continue;
    auto one = start_one(image, environment);
    if (!one) return std::unexpected(one.error());
    probes_[i] = std::move(*one);
    restarted.push_back(i);
  }
  return restarted;
}

GpuProbes::~GpuProbes() {
  for (const Probe& probe : probes_) {
    if (probe.pid != 0) kill(probe.pid, SIGKILL);
  }
  for (Probe& probe : probes_) end(probe, "");
}

// Kills and reaps a probe. If it had ended before by itself, the reason is how.
void GpuProbes::end(Probe& probe, std::string why) {
  probe.channel = UniqueFd();
  if (probe.pid == 0) return;
  kill(probe.pid, SIGKILL);
  const ExitStatus status = process::wait_for_child(probe.pid);
  const bool killed_by_us = status.signal == SIGKILL;
  probe.why_gone = killed_by_us ? std::move(why) : format("its probe {}", status.text());
  probe.pid = 0;
}

// The requests to all probes of one ask(), as far as they are sent, and the answers that have come.
class GpuProbes::Asking {
 public:
  Asking(GpuProbes& all, const std::vector<std::string>& lines, EarlyEnd* early_end)
      : all_(all), early_end_(early_end), unsent_(all.probes_.size()), answers_(all.probes_.size()) {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (lines[i].empty())
        answers_[i] = std::unexpected("it was not asked");
      else if (!probe(i).channel)
        settle(i, std::unexpected(probe(i).why_gone));
      else
        unsent_[i] = lines[i] + "\n";
    }
  }

  bool is_done() const {
    return std::ranges::all_of(answers_, [](const auto& answer) { return answer.has_value(); });
  }
  bool is_over() const { return is_over_; }

  void wait(int limit_ms) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (answers_[i]) continue;
      const short events = static_cast<short>(unsent_[i].empty() ? POLLIN : POLLIN | POLLOUT);
      polled.push_back({probe(i).channel.get(), events, 0});
      of.push_back(i);
    }
    // poll() ignores negative descriptors.
    polled.push_back({early_end_ == nullptr ? -1 : early_end_->descriptor(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), limit_ms) <= 0) return;
    for (std::size_t k = 0; k < of.size(); ++k) {
      const std::size_t i = of[k];
      if (polled[k].revents & POLLOUT) send_more(i);
      if (!answers_[i] && (polled[k].revents & ~POLLOUT) != 0) receive_more(i);
    }
    if (polled.back().revents != 0 && early_end_->is_over_by_descriptor()) is_over_ = true;
  }

  void give_up_all(const std::string& why) {
    // All are killed before the first one is waited for, since the driver may take long to end each process.
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i]) kill(probe(i).pid, SIGKILL);
    }
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i]) give_up(i, why);
    }
  }

  std::vector<Attempt<std::string>> answers() && {
    std::vector<Attempt<std::string>> out;
    for (auto& answer : answers_) out.push_back(std::move(*answer));
    return out;
  }

 private:
  Probe& probe(std::size_t i) { return all_.probes_[i]; }

  void settle(std::size_t i, Attempt<std::string> answer) {
    answers_[i] = std::move(answer);
    if (early_end_ != nullptr && early_end_->is_over_by_answer(i, *answers_[i])) is_over_ = true;
  }

  void give_up(std::size_t i, std::string why) {
    all_.end(probe(i), std::move(why));
    settle(i, std::unexpected(probe(i).why_gone));
  }

  void send_more(std::size_t i) {
    const ssize_t sent = send(probe(i).channel.get(), unsent_[i].data(), unsent_[i].size(), MSG_NOSIGNAL);
    if (sent > 0) unsent_[i].erase(0, static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) give_up(i, "its probe does not accept requests");
  }

  void receive_more(std::size_t i) {
    char piece[4096];
    const ssize_t got = recv(probe(i).channel.get(), piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return give_up(i, "its probe has closed its channel");
    std::string& unread = probe(i).unread;
    unread.append(piece, static_cast<std::size_t>(got));
    const std::size_t end_of_line = unread.find('\n');
    if (end_of_line == std::string::npos) {
      if (unread.size() > kProbeLineBytes) give_up(i, "its probe sent a line that is too long");
      return;
    }
    std::string line = unread.substr(0, end_of_line);
    unread.erase(0, end_of_line + 1);
    settle(i, std::move(line));
  }

  GpuProbes& all_;
  EarlyEnd* early_end_;
  std::vector<std::string> unsent_;
  std::vector<std::optional<Attempt<std::string>>> answers_;
  bool is_over_ = false;
};

std::vector<Attempt<std::string>> GpuProbes::ask(const std::vector<std::string>& lines, const Deadline& deadline,
                                                 EarlyEnd* early_end) {
  Asking asking(*this, lines, early_end);
  while (!asking.is_done()) {
    if (asking.is_over())
      asking.give_up_all("its probe was ended because others had failed");
    else if (deadline.has_passed())
      asking.give_up_all(format("its probe did not answer within {}", deadline.span()));
    else
      asking.wait(deadline.left_ms());
  }
  return std::move(asking).answers();
}

}  // namespace elastic::health
