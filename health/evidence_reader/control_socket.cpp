#include "health/evidence_reader/control_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "health/hang_evidence/recorder_facts.h"
#include "health/probe/attempt.h"
#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

using hang::Source;
using Worker = hang::EvidenceTask::Worker;

// | an environment that may name a control server | {kMostEnvironmentBytes} | what follows is not read |
constexpr std::size_t kMostEnvironmentBytes = 4 * 1024 * 1024;

struct Place {
  std::int64_t pid = 0;  // of the process that sees it
  std::string path = {};
};

// What its own environment names; nothing also where it cannot be read.
std::optional<std::string> named_by(std::int64_t pid) {
  const auto text = read_file(format("/proc/{}/environ", pid), kMostEnvironmentBytes);
  if (!text) return {};
  return hang::recorder_places(hang::environment_in(*text)).control;
}

std::optional<Place> place_of(const Worker& worker, const std::optional<std::string>& common) {
  if (auto path = named_by(worker.pid)) return Place{worker.pid, *std::move(path)};
  for (const std::int64_t child : worker.children) {
    if (auto path = named_by(child)) return Place{child, *std::move(path)};
  }
  if (common) return Place{worker.pid, *common};
  return {};
}

// The socket's file, which is only named by it: its path may be longer than that of a socket may be.
health::Attempt<UniqueFd> file_at(const Place& place) {
  const bool is_absolute = place.path.starts_with('/');
  const std::string path = format("/proc/{}/{}{}", place.pid, is_absolute ? "root" : "cwd/", place.path);
  UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::unexpected("it has no control socket " + printable(place.path));
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0) {
    return std::unexpected(
        format("its control socket {} cannot be opened: {}", printable(place.path), errno_text(errno)));
  }
  if (!S_ISSOCK(about.st_mode)) return std::unexpected(printable(place.path) + " is no socket");
  return file;
}

bool is_of(const Worker& worker, pid_t pid) {
  return pid == worker.pid || std::ranges::find(worker.children, pid) != worker.children.end();
}

health::Attempt<UniqueFd> connect_to(int file, const Worker& worker, const std::string& path) {
  const auto failed = [&](std::string_view what) {
    return std::unexpected(format("its control socket {} {}", printable(path), what));
  };
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string its = format("/proc/self/fd/{}", file);
  std::memcpy(address.sun_path, its.c_str(), its.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("cannot be asked: " + errno_text(errno));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed(errno == ECONNREFUSED ? "is served by nobody" : "takes no connection: " + errno_text(errno));
  }
  // Several workers may have the same variable, and one of them the socket.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !is_of(worker, peer.pid)) {
    return failed("is served by another process");
  }
  return socket;
}

}  // namespace

ControlSocket::ControlSocket(const Worker& worker, const std::optional<std::string>& common) {
  const auto place = place_of(worker, common);
  if (!place) return;
  const auto file = file_at(*place);
  if (!file) {
    why_not_ = {Source::kRefused, file.error()};
    return;
  }
  is_asked_ = true;
  for (std::size_t i = 0; i < questions_.size(); ++i) {
    auto socket = connect_to(file->get(), worker, place->path);
    if (!socket) {
      why_not_ = {Source::kRefused, socket.error()};
      return;
    }
    const std::string request = control_request(kRecorderHandlers[i]);
    if (send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      why_not_ = {Source::kRefused, format("its control socket {} takes no request", printable(place->path))};
      return;
    }
    questions_[i].socket = *std::move(socket);
  }
}

bool ControlSocket::is_waited_for() const {
  return std::ranges::any_of(questions_, [](const Question& question) { return static_cast<bool>(question.socket); });
}

void ControlSocket::go_on() {
  for (Question& question : questions_) {
    if (question.socket) go_on(question);
  }
}

void ControlSocket::go_on(Question& question) {
  std::array<char, 64 * 1024> piece{};
  for (;;) {
    const ssize_t count = recv(question.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return keep_dump(question, question.answer.closed());
    if (auto dump = question.answer.feed({piece.data(), static_cast<std::size_t>(count)})) {
      return keep_dump(question, *std::move(dump));
    }
  }
}

void ControlSocket::keep_dump(Question& question, ControlAnswer::Dump dump) {
  question.socket = UniqueFd();
  if (dump) {
    question.dump = *std::move(dump);
  } else {
    why_not_ = {Source::kLost, dump.error().reason};
  }
}

void ControlSocket::give_up(const std::string& span) {
  if (is_waited_for()) why_not_ = {Source::kLate, "its control server has not answered within " + span};
  for (Question& question : questions_) question.socket = UniqueFd();
}

hang::RankRecorder ControlSocket::said() {
  static_assert(kRecorderHandlers.size() == 2);
  hang::RankRecorder said{.why_not = why_not_};
  if (!is_asked_ || why_not_.state != Source::kNotAsked) return said;
  auto& [nccl, others] = questions_;
  if (!nccl.dump && !others.dump) {
    said.why_not = {Source::kRefused, "its control server dumps no recorder"};
    return said;
  }
  FlightFacts both =
      of_both_recorders(std::move(nccl.dump).value_or(FlightFacts()), std::move(others.dump).value_or(FlightFacts()));
  // That of a worker that has launched nothing is the same as that of one that records nothing.
  if (both.entries + both.entries_left_out == 0 && !both.is_cut) {
    said.why_not = {Source::kPartial, "its recorder has recorded nothing"};
  } else {
    said.dump = std::move(both);
  }
  return said;
}

}  // namespace elastic::evidence
