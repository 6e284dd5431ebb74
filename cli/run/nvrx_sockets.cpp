#include "cli/run/nvrx_sockets.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "health/progress/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

namespace nvrx = progress::nvrx;

std::array<char, 16 * 1024> words_buffer;

Result<UniqueFd> listen_at(const std::string& path) {
  const std::string what = format("cannot listen at {}", printable(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(what, "the name is too long for a socket", "set TMPDIR to a shorter one");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!descriptor || bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(descriptor.get(), static_cast<int>(limits::kNvrxConnections)) != 0) {
    return fail_errno(what, errno);
  }
  return descriptor;
}

// Whether the client has taken all of it: answers are short, and a client that reads none is not NVRx's.
bool send_all(int descriptor, std::string_view bytes) {
  return bytes.empty() ||
         send(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == std::ssize(bytes);
}

}  // namespace

NvrxSockets::NvrxSockets(net::Loop& loop, const std::vector<std::string>& sections, Handlers handlers)
    : loop_(loop), sections_(sections), handlers_(std::move(handlers)) {}

NvrxSockets::~NvrxSockets() = default;

std::string NvrxSockets::path(const std::string& directory, int local_rank) {
  return format("{}/nvrx_{}", directory, local_rank);
}

std::string NvrxSockets::launcher_path(const std::string& directory) { return format("{}/nvrx_launcher", directory); }

Status NvrxSockets::open(const std::string& directory, int workers) {
  std::vector<Listener> made;
  for (int local_rank = 0; local_rank <= workers; ++local_rank) {
    auto descriptor = listen_at(local_rank < workers ? path(directory, local_rank) : launcher_path(directory));
    if (!descriptor) return std::unexpected(descriptor.error());
    made.push_back({std::move(*descriptor), {}, nullptr});
  }
  listeners_ = std::move(made);
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    listeners_[i].watch =
        std::make_unique<net::ReadWatch>(loop_, listeners_[i].descriptor.get(), [this, i] { accept_one(i); });
  }
  return {};
}

void NvrxSockets::close_connections() {
  for (Listener& listener : listeners_) listener.connections.clear();
}

void NvrxSockets::accept_one(std::size_t listener) {
  UniqueFd descriptor(accept4(listeners_[listener].descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  std::list<Connection>& all = listeners_[listener].connections;
  if (!descriptor || all.size() == limits::kNvrxConnections) return;
  all.push_back({.descriptor = std::move(descriptor), .session = nullptr, .request = {}, .watch = nullptr});
  const auto added = std::prev(all.end());
  if (!is_of_launcher(listener)) added->session = std::make_unique<progress::NvrxSession>(sections_);
  added->watch = std::make_unique<net::ReadWatch>(loop_, added->descriptor.get(),
                                                  [this, listener, added] { readable(listener, added); });
}

void NvrxSockets::readable(std::size_t listener, std::list<Connection>::iterator connection) {
  const ssize_t count = read(connection->descriptor.get(), words_buffer.data(), words_buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0 && feed_session(listener, *connection, {words_buffer.data(), static_cast<std::size_t>(count)})) return;
  listeners_[listener].connections.erase(connection);
}

bool NvrxSockets::feed_session(std::size_t listener, Connection& connection, std::string_view bytes) {
  if (is_of_launcher(listener)) return take_of_launcher(connection, bytes);
  const auto answer = connection.session->feed(
      bytes, [this, listener](const progress::NvrxWord& word) { handlers_.on_word(static_cast<int>(listener), word); });
  const bool is_sent = send_all(connection.descriptor.get(), answer.bytes);
  if (!answer.problem.empty()) tell_problem(format("local rank {}: {}", listener, answer.problem));
  return is_sent && answer.problem.empty();
}

// One request, one answer.
bool NvrxSockets::take_of_launcher(Connection& connection, std::string_view bytes) {
  connection.request.append(bytes);
  const std::string_view all = connection.request;
  if (all.size() < nvrx::kLengthBytes) return true;
  const std::size_t length = nvrx::length_of(all);
  if (length > limits::kNvrxMessageBytes) {
    tell_problem(format("a request of {} bytes is longer than {}", length, limits::kNvrxMessageBytes));
    return false;
  }
  if (all.size() - nvrx::kLengthBytes < length) return true;
  const auto request = nvrx::read_request(all.substr(nvrx::kLengthBytes, length));
  const std::string why_not = request ? handlers_.on_request(*request) : request.error().text();
  if (!request) tell_problem(why_not);
  (void)send_all(connection.descriptor.get(), why_not.empty() ? nvrx::accepted() : nvrx::declined(why_not));
  return false;
}

void NvrxSockets::tell_problem(const std::string& problem) {
  if (std::exchange(has_told_problem_, true)) return;
  log::warning("nvrx_not_understood",
               format("an NVRx client is not understood, and its connection is closed: {}; what other clients say is "
                      "taken",
                      problem));
}

}  // namespace elastic::run
