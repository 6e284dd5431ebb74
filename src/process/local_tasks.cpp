#include "src/process/local_tasks.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "src/base/program_name.h"
#include "src/base/text.h"
#include "src/process/clock.h"

namespace elastic::process {
namespace {

constexpr const char* kWaiting = "cannot wait for task 0 of this node";
constexpr const char* kHow = "start one elastic-run on each node (srun --ntasks-per-node=1)";

// The name of a task's socket. It contains the user, so that other users' tasks have other names.
std::string socket_name(const LocalTaskPlace& place, int index) {
  return format("elastic-run/{}/{}/{}", geteuid(), place.name, index);
}

struct Address {
  sockaddr_un bytes{};
  socklen_t size = 0;
};

Result<Address> address_of(const LocalTaskPlace& place, int index) {
  const std::string name = socket_name(place, index);
  Address address;
  if (name.size() + 1 > sizeof address.bytes.sun_path) {
    return fail(printable(name), "the name is too long for a socket", kHow);
  }
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool is_own_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

Result<UniqueFd> listen_as(const LocalTaskPlace& place, int index) {
  const auto address = address_of(place, index);
  if (!address) return std::unexpected(address.error());
  const std::string what = format("cannot listen as {}", socket_name(place, index));
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return fail_errno(what, errno, kHow);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0 ||
      listen(listener.get(), std::max(place.members, 1)) != 0) {
    return fail_errno(what, errno, kHow);
  }
  return listener;
}

// Connects to a task; none where no task of this user listens.
UniqueFd call_at(const LocalTaskPlace& place, int index) {
  const auto address = address_of(place, index);
  if (!address) return {};
  UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection) return {};
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0) return {};
  if (!is_own_user(connection.get())) return {};
  return connection;
}

void ignore(std::initializer_list<int> signals) {
  for (const int signal : signals) ::signal(signal, SIG_IGN);
}

}  // namespace

Result<LocalTasksHost> LocalTasksHost::open(const LocalTaskPlace& place) {
  auto listener = listen_as(place, place.index);
  if (!listener) return std::unexpected(std::move(listener.error()));
  LocalTasksHost host;
  host.listener_ = std::move(*listener);
  host.others_ = place.members - 1;
  host.opened_ms_ = monotonic_ms();
  for (int index = 0; index < place.members; ++index) {
    if (index != place.index) (void)call_at(place, index);  // the connection itself is the message
  }
  return host;
}

void LocalTasksHost::tell_status(int status) const {
  for (int told = 0; told < others_;) {
    const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) {
      if (!is_own_user(connection.get())) continue;
      (void)!send(connection.get(), &status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
      ++told;
      continue;
    }
    const std::int64_t left_ms = opened_ms_ + kLocalTasksMeetMs - monotonic_ms();
    pollfd comes{listener_.get(), POLLIN, 0};
    if (left_ms <= 0 || poll(&comes, 1, static_cast<int>(left_ms)) < 0) return;
  }
}

Result<int> wait_for_local_tasks(const LocalTaskPlace& place, const std::function<void()>& on_met) {
  ignore({SIGUSR1, SIGUSR2});  // they are meant for workers, and this task has none
  const auto door = listen_as(place, place.index);
  if (!door) return std::unexpected(door.error());
  const std::int64_t until_ms = monotonic_ms() + kLocalTasksPatienceMs;
  UniqueFd connection = call_at(place, 0);
  while (!connection) {
    const std::int64_t left_ms = until_ms - monotonic_ms();
    if (left_ms <= 0) {
      return fail(in_our_name(kWaiting), format("it did not start within {} s", kLocalTasksPatienceMs / 1000),
                  in_our_name(kHow));
    }
    pollfd called{door->get(), POLLIN, 0};
    if (poll(&called, 1, static_cast<int>(left_ms)) <= 0) continue;
    const UniqueFd call(accept4(door->get(), nullptr, nullptr, SOCK_CLOEXEC));
    connection = call_at(place, 0);
  }
  ignore({SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  on_met();
  int status = 0;
  const ssize_t count = recv(connection.get(), &status, sizeof status, MSG_WAITALL);
  if (count == static_cast<ssize_t>(sizeof status)) return status;
  return fail(in_our_name(kWaiting), "it ended without reporting an exit status", "");
}

}  // namespace elastic::process
