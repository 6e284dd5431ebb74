// What happens once with very many clients: --scenario.
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "src/base/check.h"
#include "src/base/text.h"
#include "tests/bench/store_load_connections.h"

namespace elastic::store_load {
namespace {

constexpr std::uint32_t kNonce = 0x0BADCAFE;

Status send_all(const Options& options, const Socket& socket, std::string_view bytes) {
  if (!socket.send(bytes)) return std::unexpected(lost(options, "it closed a connection"));
  ELASTIC_CHECK(bytes.empty());  // a socket without unsent bytes takes a request or two
  return {};
}

// Waits until each has been answered by one reply of that shape. `latency`: from `since_ns` on.
Status await(const Options& options, const std::vector<Socket>& sockets, store::test::Reply shape, std::int64_t right,
             Figures& figures, std::int64_t since_ns = 0) {
  Poller poller;
  std::vector<store::test::ReplyReader> readers(sockets.size());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    readers[i].expect(shape);
    poller.add(sockets[i], i, EPOLLIN);
  }
  for (std::size_t left = sockets.size(); left > 0;) {
    const auto events = poller.wait();
    if (events.empty()) return std::unexpected(lost(options, "it has not answered for ten seconds"));
    for (const epoll_event& event : events) {
      store::Bytes bytes;
      store::test::ReplyReader& reader = readers[event.data.u64];
      if (!sockets[event.data.u64].receive(bytes)) return std::unexpected(lost(options, "it closed a connection"));
      const auto step = reader.next(bytes);
      if (step == store::test::ReplyReader::Step::kNeedMore) continue;
      if (step == store::test::ReplyReader::Step::kNonsense || reader.number() != right || !bytes.empty()) {
        figures.error("a wrong reply");
      }
      if (since_ns != 0) figures.latency.add(now_ns() - since_ns);
      --left;
    }
  }
  return {};
}

}  // namespace

// Many clients wait for one key, one sets it; the time until the last has been told.
Result<Figures> run_wake(const Options& options) {
  Figures figures;
  if (auto allowed = allow_sockets(options.clients + 1); !allowed) return std::unexpected(std::move(allowed.error()));
  auto waiting = open_greeted(options, options.clients);
  if (!waiting) return std::unexpected(std::move(waiting.error()));
  auto setting = open_greeted(options, 1);
  if (!setting) return std::unexpected(std::move(setting.error()));

  const std::vector<std::string> key{format("/wake/{}", getpid())};
  std::string wait;
  store::test::put_wait(wait, key);
  store::test::put_ping(wait, kNonce);
  for (const Socket& socket : *waiting) {
    if (auto sent = send_all(options, socket, wait); !sent) return std::unexpected(std::move(sent.error()));
  }
  auto stand = await(options, *waiting, store::test::Reply::kU32, kNonce, figures);
  if (!stand) return std::unexpected(std::move(stand.error()));

  std::string set;
  store::test::put_set(set, key[0], std::string(options.value_bytes, 'v'));
  Stopwatch watch(options.server_pid);
  if (auto sent = send_all(options, (*setting)[0], set); !sent) return std::unexpected(std::move(sent.error()));
  auto woken = await(options, *waiting, store::test::Reply::kByte, store::kStopWaiting, figures, watch.began_ns());
  if (!woken) return std::unexpected(std::move(woken.error()));
  watch.stop(figures);
  figures.operations = options.clients;
  return figures;
}

// Many clients connect at once; the time until each has been answered its PING.
Result<Figures> run_connects(const Options& options) {
  Figures figures;
  if (auto allowed = allow_sockets(options.clients); !allowed) return std::unexpected(std::move(allowed.error()));
  Stopwatch watch(options.server_pid);
  const auto sockets = open_greeted(options, options.clients, &figures.latency);
  if (!sockets) return std::unexpected(sockets.error());
  watch.stop(figures);
  figures.operations = options.clients;
  return figures;
}

}  // namespace elastic::store_load
