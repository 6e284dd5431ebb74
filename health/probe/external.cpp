#include "health/probe/external.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "health/probe/command.h"
#include "src/base/address.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// | a result of an external probe | {kResultBytes} | a longer file is no result |
constexpr std::size_t kResultBytes = 4096;
constexpr int kTold = 4;  // how many local ranks without a result are named
constexpr char kWell = '+';
constexpr char kFailed = '-';

std::string file_of(const ExternalProbe& probe, int local_rank) {
  return format("{}/{}.txt", probe.directory, local_rank);
}

// The time in a result file, in seconds; nothing where there is no file, or it cannot be read.
std::optional<double> time_in(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  char bytes[kResultBytes];
  const ssize_t got = read(file.get(), bytes, sizeof bytes);
  if (got <= 0) return {};
  const std::string_view text(bytes, static_cast<std::size_t>(got));
  if (!json_over_bounds(text, 4, 16).empty()) return {};
  const auto json = Json::parse(text, path);
  const Json* member = json ? json->find("time") : nullptr;
  const auto seconds = member == nullptr ? std::nullopt : member->as_number();
  return seconds && std::isfinite(*seconds) && *seconds >= 0 ? seconds : std::nullopt;
}

// Removes all result files. Returns why that failed, as a clause; empty if it did not.
std::string clear_results(const ExternalProbe& probe) {
  std::error_code error;
  std::filesystem::create_directories(probe.directory, error);
  if (error) return format("{} cannot be created: {}", printable(probe.directory), error.message());
  for (int rank = 0; rank < probe.local_world_size; ++rank) {
    const std::string path = file_of(probe, rank);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return format("{} cannot be removed: {}", printable(path), errno_text(errno));
    }
  }
  return {};
}

// The address at the lower rank's end of the connection.
std::string master_address(int socket, bool is_own) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if ((is_own ? getsockname(socket, address, &length) : getpeername(socket, address, &length)) != 0) return {};
  const void* bytes = storage.ss_family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(storage.ss_family, bytes, text, sizeof text) == nullptr ? std::string() : without_mapping(text);
}

std::vector<ShellCommand> commands_of(const ExternalProbe& probe, bool leads, const PairOrder& order,
                                      const std::string& address, std::uint16_t port) {
  const int own = probe.local_world_size;
  const int world = own + order.local_world_size;
  std::vector<ShellCommand> commands;
  for (int local_rank = 0; local_rank < own; ++local_rank) {
    const int rank = (leads ? 0 : order.local_world_size) + local_rank;
    commands.push_back(
        {.text = probe.command,
         .variables = {format("RANK={}", rank), format("LOCAL_RANK={}", local_rank), format("WORLD_SIZE={}", world),
                       format("LOCAL_WORLD_SIZE={}", own), format("GROUP_RANK={}", leads ? 0 : 1), "GROUP_WORLD_SIZE=2",
                       format("MASTER_ADDR={}", address), format("MASTER_PORT={}", port),
                       // Rank 0 has to serve the store, even where we are a worker of a torchelastic agent ourselves.
                       "TORCHELASTIC_USE_AGENT_STORE=False"}});
  }
  return commands;
}

std::string how_ended(const CommandEnd& end, const Deadline& deadline) {
  switch (end.how) {
    case CommandEnd::How::kByItself: return end.status.text();
    case CommandEnd::How::kAtDeadline: return "did not end within " + deadline.span();
    case CommandEnd::How::kStopped: return "was stopped";
    case CommandEnd::How::kNotStarted: break;
  }
  return end.why_not_started.empty() ? "was not started" : end.why_not_started;
}

// False if the other node has told that it failed, or is gone; true as long as it has told nothing.
bool other_is_well(int socket) {
  char byte = kFailed;
  const ssize_t got = recv(socket, &byte, 1, MSG_DONTWAIT);
  return got == 1 ? byte == kWell : got < 0 && (errno == EAGAIN || errno == EINTR);
}

struct Times {
  double longest_s = 0;
  std::string missing = {};
};

Times read_times(const ExternalProbe& probe, const std::vector<CommandEnd>& ends, const Deadline& deadline) {
  Times times;
  int told = 0;
  for (int rank = 0; rank < probe.local_world_size; ++rank) {
    const CommandEnd& end = ends[static_cast<std::size_t>(rank)];
    const auto seconds = time_in(file_of(probe, rank));
    if (seconds && end.how == CommandEnd::How::kByItself) {
      times.longest_s = std::max(times.longest_s, *seconds);
    } else if (++told <= kTold) {
      times.missing += format("{}local rank {} {}", told == 1 ? "" : ", ", rank, how_ended(end, deadline));
    }
  }
  if (told > kTold) times.missing += format(" and {} more", told - kTold);
  return times;
}

}  // namespace

MasterPort MasterPort::open() {
  MasterPort port;
  port.take_back();
  return port;
}

// The socket is bound with SO_REUSEADDR and does not listen: the kernel gives the port to no other socket by itself,
// but a store that binds it with SO_REUSEADDR gets it.
void MasterPort::take_back() {
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool is_v6 = static_cast<bool>(socket);
  if (!is_v6) socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(number_);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(number_);
  auto* address = is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t length = is_v6 ? sizeof v6 : sizeof v4;
  const int on = 1;
  const int off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (is_v6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(socket.get(), address, length) != 0 || getsockname(socket.get(), address, &length) != 0) return;
  number_ = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
  holder_ = std::move(socket);
}

Attempt<double> run_external(const ExternalProbe& probe, int socket, int rank, const PairOrder& order,
                             MasterPort& own_port, const Deadline& deadline) {
  if (std::string why = clear_results(probe); !why.empty()) return std::unexpected(std::move(why));
  const bool leads = rank < order.with;
  enum class Failed { kNeither, kOwn, kOther } first = Failed::kNeither;
  const auto goes_on = [&first](bool is_well, Failed whose) {
    if (!is_well && first == Failed::kNeither) first = whose;
    return is_well;
  };
  const CommandRules rules{.environment = probe.environment,
                           .goes_on =
                               [&](std::size_t rank_of_it) {
                                 return goes_on(time_in(file_of(probe, static_cast<int>(rank_of_it))).has_value(),
                                                Failed::kOwn);
                               },
                           .news = socket,
                           .goes_on_after_news = [&] { return goes_on(other_is_well(socket), Failed::kOther); }};
  if (leads) own_port.lend();
  const CommandsEnd end = run_commands(
      commands_of(probe, leads, order, master_address(socket, leads), leads ? own_port.number() : order.master_port),
      rules, deadline);
  if (leads) own_port.take_back();
  const Times times = read_times(probe, end.commands, deadline);
  (void)clear_results(probe);
  const char word = times.missing.empty() ? kWell : kFailed;
  send(socket, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (times.missing.empty()) return times.longest_s * 1000;
  if (first == Failed::kOther) return std::unexpected(std::string());
  return std::unexpected("the external probe left no result: " + times.missing);
}

}  // namespace elastic::health
