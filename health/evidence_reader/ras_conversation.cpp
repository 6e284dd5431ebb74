#include "health/evidence_reader/ras_conversation.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "health/evidence/ras_client.h"
#include "health/evidence/ras_comparison.h"
#include "health/evidence/ras_report.h"
#include "health/evidence_reader/worker_samples.h"
#include "health/hang_evidence/ras_facts.h"
#include "health/probe/attempt.h"
#include "src/base/address.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/death_notice.h"

namespace elastic::evidence {
namespace {

constexpr std::int64_t kConversationMs = 5'500;
constexpr std::int64_t kBetweenMs = 2'000;
// For which RAS itself waits for a process.
constexpr int kTimeoutS = 3;

// Why there is no report.
struct Failure {
  hang::Source state = hang::Source::kRefused;
  std::string why = {};
  bool is_nobody = false;  // nobody listens there
};

// Nothing where the address is not numeric, or the port is none.
std::optional<process::SocketAddress> address_of(const RasPlace& place) {
  const auto port = parse_int(place.port);
  if (!port || *port < 1 || *port > UINT16_MAX) return {};
  return process::socket_address(place.address, static_cast<std::uint16_t>(*port));
}

std::expected<UniqueFd, Failure> connect_to(const process::SocketAddress& address, const health::Deadline& deadline) {
  UniqueFd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(Failure{.why = errno_text(errno)});
  int error =
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd polled{socket.get(), POLLOUT, 0};
    if (poll(&polled, 1, deadline.left_ms()) <= 0) {
      return std::unexpected(Failure{hang::Source::kLate, "no connection within " + deadline.span()});
    }
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return socket;
  return std::unexpected(Failure{.why = health::connection_failure(error), .is_nobody = error == ECONNREFUSED});
}

bool send_all(int socket, std::string_view text, const health::Deadline& deadline) {
  while (!text.empty()) {
    const ssize_t count = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count >= 0 || errno == EINTR) continue;
    pollfd polled{socket, POLLOUT, 0};
    if (errno != EAGAIN || poll(&polled, 1, deadline.left_ms()) <= 0) return false;
  }
  return true;
}

std::expected<RasReport, Failure> report_of(const process::SocketAddress& address) {
  const health::Deadline deadline(kConversationMs);
  auto socket = connect_to(address, deadline);
  if (!socket) return std::unexpected(socket.error());
  RasClient client(kTimeoutS);
  std::string to_send = client.start();
  for (;;) {
    if (!send_all(socket->get(), to_send, deadline)) return std::unexpected(Failure{.why = "it takes no requests"});
    pollfd polled{socket->get(), POLLIN, 0};
    if (poll(&polled, 1, deadline.left_ms()) <= 0) {
      return std::unexpected(Failure{hang::Source::kLate, client.late().reason});
    }
    std::array<char, 64 * 1024> piece{};
    const ssize_t count = recv(socket->get(), piece.data(), piece.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) {
      const auto text = client.closed();
      if (!text) return std::unexpected(Failure{hang::Source::kLost, text.error().reason});
      auto report = read_ras_report(*text);
      if (!report) return std::unexpected(Failure{hang::Source::kLost, report.error().reason});
      return std::move(*report);
    }
    auto next = client.feed({piece.data(), static_cast<std::size_t>(count)});
    if (!next) return std::unexpected(Failure{.why = next.error().reason});
    to_send = std::move(*next);
  }
}

std::vector<RasWorker> workers_of(const hang::EvidenceTask& task) {
  std::vector<RasWorker> workers;
  for (const hang::EvidenceTask::Worker& worker : task.workers) {
    // RAS names processes as they are numbered in their own namespace.
    const std::int64_t pid = sample_of(worker.pid).own_pid.value_or(static_cast<int>(worker.pid));
    for (const std::string& address : task.addresses) {
      workers.push_back({.process = {address, pid}, .global_rank = worker.rank});
    }
  }
  return workers;
}

}  // namespace

Result<std::optional<RasPlace>> ras_place(const Environment& environment) {
  if (lookup(environment, "NCCL_RAS_ENABLE") == "0") return std::nullopt;
  RasPlace place;
  const auto named = lookup(environment, "NCCL_RAS_ADDR");
  if (!named || named->empty()) return place;
  place.is_named = true;
  const std::size_t colon = named->rfind(':');
  if (colon == std::string::npos) return fail("NCCL_RAS_ADDR=" + printable(*named), "it has no port", "");
  place.port = named->substr(colon + 1);
  place.address = named->substr(0, colon);
  if (place.address.size() > 2 && place.address.starts_with('[') && place.address.ends_with(']')) {
    place.address = place.address.substr(1, place.address.size() - 2);
  }
  if (place.address == "localhost") place.address = kLoopback;
  return place;
}

hang::EvidenceAnswer ask_ras(const hang::EvidenceTask& task, const Environment& environment,
                             const std::function<Status()>& before_reading) {
  hang::EvidenceAnswer answer;
  const auto give_up = [&](hang::Source state, std::string why) {
    if (state != hang::Source::kNotAsked) answer.lines.push_back(why);
    answer.facts.ras_source = {state, std::move(why)};
    return answer;
  };
  const auto place = ras_place(environment);
  if (!place) return give_up(hang::Source::kRefused, place.error().text());
  if (!*place) return give_up(hang::Source::kNotAsked, "NCCL_RAS_ENABLE=0");
  const auto address = address_of(**place);
  if (!address) return give_up(hang::Source::kRefused, "NCCL_RAS_ADDR is no numeric address");
  if (const Status ready = before_reading ? before_reading() : Status(); !ready) {
    return give_up(hang::Source::kRefused, ready.error().text());
  }
  std::vector<RasReport> reports;
  for (int turn = 0; turn < 2; ++turn) {
    if (turn > 0) std::this_thread::sleep_for(std::chrono::milliseconds(kBetweenMs));
    auto report = report_of(*address);
    if (!report) {
      // Without NCCL, or before its first communicator, nobody listens where nobody was told to.
      const bool is_off = report.error().is_nobody && (!(*place)->is_named || task.ras_is_ours) && turn == 0;
      return give_up(is_off ? hang::Source::kNotAsked : report.error().state, report.error().why);
    }
    reports.push_back(std::move(*report));
  }
  const std::vector<RasWorker> ours = workers_of(task);
  answer.facts = hang::ras_facts_of(reports[0], reports[1], ours, task.world_size);
  answer.lines = ras_summary(compare_ras(reports[0], reports[1], ours));
  return answer;
}

}  // namespace elastic::evidence
