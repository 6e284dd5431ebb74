#include "health/probe/gpu_probes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "health/gpu/words.h"
#include "src/base/exit_status.h"
#include "src/base/text.h"

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

ExitStatus exit_status(int status) {
  if (WIFEXITED(status)) return {.code = WEXITSTATUS(status)};
  return {.signal = WTERMSIG(status), .core_dumped = WCOREDUMP(status)};
}

}  // namespace

Result<ProbeImage> ProbeImage::make(std::span<const std::byte> image, const std::string& directory) {
  UniqueFd memory(memfd_create("elastic-gpu-probe", MFD_CLOEXEC));
  if (memory && write_all(memory.get(), image)) {
    // A child has closed all descriptors of ours when it executes this.
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

Attempt<GpuProbes> GpuProbes::start(int count, const ProbeImage& image, std::span<const std::string> environment) {
  GpuProbes started;
  const process::SpawnContext context{.inherited = process::InheritedState::capture()};
  for (int i = 0; i < count; ++i) {
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
    started.probes_.push_back({.pid = *pid, .channel = std::move(ours)});
  }
  return started;
}

GpuProbes::~GpuProbes() {
  for (Probe& probe : probes_) end(probe, "");
}

// Killed, if it has not ended by itself: then the reason is how.
void GpuProbes::end(Probe& probe, std::string why) {
  probe.channel = UniqueFd();
  if (probe.pid == 0) return;
  kill(probe.pid, SIGKILL);
  int status = 0;
  while (waitpid(probe.pid, &status, 0) < 0 && errno == EINTR) {
  }
  const bool killed_by_us = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  probe.why_gone = killed_by_us ? std::move(why) : format("its probe {}", exit_status(status).text());
  probe.pid = 0;
}

std::vector<Attempt<std::string>> GpuProbes::ask(const std::vector<std::string>& lines, const Deadline& deadline) {
  std::vector<std::optional<Attempt<std::string>>> answers(probes_.size());
  std::vector<std::string> unsent(probes_.size());
  const auto give_up = [&](std::size_t i, std::string why) {
    end(probes_[i], std::move(why));
    answers[i] = std::unexpected(probes_[i].why_gone);
  };
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (lines[i].empty()) {
      answers[i] = std::unexpected("it was not asked");
    } else if (!probes_[i].channel) {
      answers[i] = std::unexpected(probes_[i].why_gone);
    } else {
      unsent[i] = lines[i] + "\n";
    }
  }
  const auto send_more = [&](std::size_t i) {
    const ssize_t sent = send(probes_[i].channel.get(), unsent[i].data(), unsent[i].size(), MSG_NOSIGNAL);
    if (sent > 0) unsent[i].erase(0, static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) give_up(i, "its probe takes no orders");
  };
  const auto receive_more = [&](std::size_t i) {
    char piece[4096];
    const ssize_t got = recv(probes_[i].channel.get(), piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return give_up(i, "its probe has closed its channel");
    std::string& unread = probes_[i].unread;
    unread.append(piece, static_cast<std::size_t>(got));
    const std::size_t end_of_line = unread.find('\n');
    if (end_of_line == std::string::npos) {
      if (unread.size() > kProbeLineBytes) give_up(i, "its probe says too much");
      return;
    }
    answers[i] = unread.substr(0, end_of_line);
    unread.erase(0, end_of_line + 1);
  };
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      if (answers[i]) continue;
      const short events = static_cast<short>(unsent[i].empty() ? POLLIN : POLLIN | POLLOUT);
      polled.push_back({probes_[i].channel.get(), events, 0});
      of.push_back(i);
    }
    if (polled.empty()) break;
    if (deadline.has_passed()) {
      for (const std::size_t i : of) give_up(i, format("its probe did not answer within {}", deadline.span()));
      break;
    }
    if (poll(polled.data(), polled.size(), deadline.left_ms()) <= 0) continue;
    for (std::size_t k = 0; k < polled.size(); ++k) {
      const std::size_t i = of[k];
      if (polled[k].revents & POLLOUT) send_more(i);
      if (!answers[i] && (polled[k].revents & ~POLLOUT) != 0) receive_more(i);
    }
  }
  std::vector<Attempt<std::string>> out;
  for (auto& answer : answers) out.push_back(std::move(*answer));
  return out;
}

}  // namespace elastic::health
