// Busy clients beside idle ones: --operation.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "src/base/check.h"
#include "src/base/text.h"
#include "tests/bench/store_load_connections.h"

namespace elastic::store_load {
namespace {

using store::test::Reply;
using store::test::ReplyReader;

constexpr std::uint32_t kNonce = 0x0BADCAFE;

std::string key_of(std::size_t client) { return format("/load/{}/{}", getpid(), client); }

// A connection with requests on their way.
struct Client {
  std::size_t number = 0;
  Socket socket;
  std::string key;
  std::string request;  // one operation's bytes
  std::string out;      // not yet taken by the kernel, from `sent` on
  std::size_t sent = 0;
  std::deque<std::int64_t> began_ns;  // of the operations that are not answered yet
  ReplyReader reader;
  std::int64_t sum = 0;     // of ADD
  bool wants_room = false;  // to be told when the kernel takes more
};

// Clients that send, and an epoll that tells when they can go on.
class Crowd {
 public:
  explicit Crowd(const Options& options) : options_(options) {}

  Status open(std::size_t clients) {
    if (auto allowed = allow_sockets(options_.idle + clients); !allowed) return allowed;
    auto idle = open_greeted(options_, options_.idle);
    if (!idle) return std::unexpected(std::move(idle.error()));
    idle_ = std::move(*idle);
    auto busy = open_greeted(options_, clients);
    if (!busy) return std::unexpected(std::move(busy.error()));
    for (Socket& socket : *busy) {
      const std::size_t number = clients_.size();
      Client& client = clients_.emplace_back();
      client.number = number;
      client.socket = std::move(socket);
      client.key = key_of(number);
      poller_.add(client.socket, number, EPOLLIN);
    }
    return {};
  }

  std::deque<Client>& clients() { return clients_; }

  // Gives the kernel what it takes. Who has more, or `goes_on`, has another turn when there is room.
  Status flush(Client& client, bool goes_on = false) {
    std::string_view rest = std::string_view(client.out).substr(client.sent);
    if (!client.socket.send(rest)) return std::unexpected(lost(options_, "it closed a connection"));
    client.sent = client.out.size() - rest.size();
    if (rest.empty()) {
      client.out.clear();
      client.sent = 0;
    }
    const bool wants_room = goes_on || !rest.empty();
    if (client.wants_room != wants_room) {
      client.wants_room = wants_room;
      poller_.change(client.socket, client.number, wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    return {};
  }

  // Serves events until `done`; `on_reply(client, now_ns)` takes each reply, `on_turn(client)` follows
  // those of one event and may send.
  template <class Done, class OnReply, class OnTurn>
  Status serve(Done done, OnReply on_reply, OnTurn on_turn) {
    while (!done()) {
      const auto events = poller_.wait();
      if (events.empty()) return std::unexpected(lost(options_, "it has not answered for ten seconds"));
      const std::int64_t now = now_ns();
      for (const epoll_event& event : events) {
        Client& client = clients_[event.data.u64];
        if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0) {
          if (auto read = take_replies(client, now, on_reply); !read) return read;
        }
        if (auto turned = on_turn(client); !turned) return turned;
      }
    }
    return {};
  }

 private:
  template <class OnReply>
  Status take_replies(Client& client, std::int64_t now, OnReply& on_reply) {
    store::Bytes bytes;
    if (!client.socket.receive(bytes)) return std::unexpected(lost(options_, "it closed a connection"));
    while (!bytes.empty()) {
      const ReplyReader::Step step = client.reader.next(bytes);
      if (step == ReplyReader::Step::kReply) on_reply(client, now);
      if (step == ReplyReader::Step::kNonsense) return std::unexpected(lost(options_, client.reader.reason()));
    }
    return {};
  }

  const Options& options_;
  Poller poller_;
  std::vector<Socket> idle_;
  std::deque<Client> clients_;
};

// get, set-ack, add, check: each request has one reply.
class Answered {
 public:
  Answered(const Options& options, Figures& figures)
      : options_(options), figures_(figures), crowd_(options), value_(options.value_bytes, 'v') {}

  Status run() {
    if (auto opened = crowd_.open(options_.clients); !opened) return opened;
    if (auto prepared = prepare(); !prepared) return prepared;
    Stopwatch watch(options_.server_pid);
    end_ns_ = watch.began_ns() + static_cast<std::int64_t>(options_.seconds * 1e9);
    for (Client& client : crowd_.clients()) {
      if (auto sent = send_more(client); !sent) return sent;
    }
    auto served = crowd_.serve([&] { return open_ == 0; },
                               [&](Client& client, std::int64_t now) {
                                 on_reply(client, now);
                                 watch.look(now, figures_.operations);
                               },
                               [&](Client& client) { return send_more(client); });
    watch.stop(figures_);
    return served;
  }

 private:
  // Each client has a key of its own, which is there already.
  Status prepare() {
    std::size_t ready = 0;
    for (Client& client : crowd_.clients()) {
      client.request = request_of(client);
      store::test::put_set(client.out, client.key, options_.operation == "add" ? "0" : value_);
      store::test::put_ping(client.out, kNonce);
      client.reader.expect(Reply::kU32);
      if (auto flushed = crowd_.flush(client); !flushed) return flushed;
    }
    return crowd_.serve([&] { return ready == crowd_.clients().size(); }, [&](Client&, std::int64_t) { ++ready; },
                        [&](Client& client) { return crowd_.flush(client); });
  }

  std::string request_of(const Client& client) {
    const std::vector<std::string> key{client.key};
    std::string request;
    if (options_.operation == "get") {
      shape_ = Reply::kText;
      store::test::put_get(request, client.key);
    } else if (options_.operation == "add") {
      shape_ = Reply::kI64;
      store::test::put_add(request, client.key, 1);
    } else {
      shape_ = Reply::kByte;
      if (options_.operation == "set-ack") store::test::put_set(request, client.key, value_);
      store::test::put_check(request, key);
    }
    return request;
  }

  Status send_more(Client& client) {
    const std::int64_t now = now_ns();
    while (now < end_ns_ && client.began_ns.size() < options_.depth) {
      client.out += client.request;
      client.reader.expect(shape_);
      client.began_ns.push_back(now);
      ++open_;
    }
    return client.out.empty() ? Status() : crowd_.flush(client);
  }

  void on_reply(Client& client, std::int64_t now) {
    figures_.latency.add(now - client.began_ns.front());
    client.began_ns.pop_front();
    --open_;
    ++figures_.operations;
    const bool right = shape_ == Reply::kText  ? client.reader.text() == value_
                       : shape_ == Reply::kI64 ? client.reader.number() == ++client.sum
                                               : client.reader.number() == store::kReady;
    if (!right) figures_.error(format("a wrong reply to {}", options_.operation));
  }

  const Options& options_;
  Figures& figures_;
  Crowd crowd_;
  std::string value_;
  Reply shape_ = Reply::kByte;
  std::int64_t end_ns_ = 0;
  std::size_t open_ = 0;
};

// set: no request has a reply; each client sends `depth` of them at a time, as fast as they are taken.
// A PING at the end is answered when all have been carried out.
Status run_set(const Options& options, Figures& figures) {
  constexpr int kInOneTurn = 16;
  Crowd crowd(options);
  if (auto opened = crowd.open(options.clients); !opened) return opened;
  const std::string value(options.value_bytes, 'v');
  for (Client& client : crowd.clients()) {
    for (std::size_t i = 0; i < options.depth; ++i) store::test::put_set(client.request, client.key, value);
  }
  Stopwatch watch(options.server_pid);
  const std::int64_t end_ns = watch.began_ns() + static_cast<std::int64_t>(options.seconds * 1e9);
  std::size_t left = options.clients;
  std::vector<bool> asked(options.clients);
  const auto send_more = [&](Client& client) -> Status {
    for (int i = 0; i < kInOneTurn; ++i) {
      if (client.out.empty() && !asked[client.number] && now_ns() < end_ns) {
        client.out = client.request;
        figures.operations += options.depth;
      } else if (client.out.empty() && !asked[client.number]) {
        asked[client.number] = true;
        store::test::put_ping(client.out, kNonce);
        client.reader.expect(Reply::kU32);
      }
      if (auto flushed = crowd.flush(client, !asked[client.number]); !flushed) return flushed;
      if (!client.out.empty() || asked[client.number]) break;
    }
    return {};
  };
  for (Client& client : crowd.clients()) {
    if (auto sent = send_more(client); !sent) return sent;
  }
  auto served = crowd.serve([&] { return left == 0; },
                            [&](Client& client, std::int64_t) {
                              --left;
                              if (client.reader.number() != kNonce) figures.error("a wrong reply to PING");
                            },
                            send_more);
  watch.stop(figures);
  return served;
}

// wait-notify: of each pair one waits for a key that the other sets when the wait is known to stand.
class Pairs {
 public:
  Pairs(const Options& options, Figures& figures)
      : options_(options), figures_(figures), crowd_(options), value_(options.value_bytes, 'v') {}

  Status run() {
    if (auto opened = crowd_.open(2 * options_.clients); !opened) return opened;
    Stopwatch watch(options_.server_pid);
    end_ns_ = watch.began_ns() + static_cast<std::int64_t>(options_.seconds * 1e9);
    open_ = options_.clients;
    for (std::size_t pair = 0; pair < options_.clients; ++pair) {
      begin(crowd_.clients()[pair]);
      if (auto flushed = crowd_.flush(crowd_.clients()[pair]); !flushed) return flushed;
    }
    auto served = crowd_.serve([&] { return open_ == 0; },
                               [&](Client& waiter, std::int64_t now) {
                                 on_reply(waiter, now);
                                 watch.look(now, figures_.operations);
                               },
                               [&](Client& waiter) { return go_on(waiter); });
    watch.stop(figures_);
    return served;
  }

 private:
  // A key serves once.
  std::string key_of_turn(const Client& waiter) const { return format("{}/{}", waiter.key, waiter.sum); }

  void begin(Client& waiter) {
    ++waiter.sum;
    const std::vector<std::string> key{key_of_turn(waiter)};
    store::test::put_wait(waiter.out, key);
    store::test::put_ping(waiter.out, kNonce);
    waiter.reader.expect(Reply::kU32);
    waiter.reader.expect(Reply::kByte);
  }

  void on_reply(Client& waiter, std::int64_t now) {
    if (waiter.reader.expected() == 1) {  // PING's: the wait stands
      if (waiter.reader.number() != kNonce) figures_.error("a wrong reply to PING");
      return;
    }
    figures_.latency.add(now - waiter.began_ns.front());
    waiter.began_ns.pop_front();
    ++figures_.operations;
    if (waiter.reader.number() != store::kStopWaiting) figures_.error("a wrong reply to WAIT");
    if (now >= end_ns_) {
      --open_;
    } else {
      begin(waiter);
    }
  }

  Status go_on(Client& waiter) {
    if (waiter.number >= options_.clients) return {};  // a notifier, which is never answered
    if (waiter.reader.expected() == 1 && waiter.began_ns.empty()) {
      Client& notifier = crowd_.clients()[options_.clients + waiter.number];
      waiter.began_ns.push_back(now_ns());
      store::test::put_set(notifier.out, key_of_turn(waiter), value_);
      if (auto flushed = crowd_.flush(notifier); !flushed) return flushed;
    }
    return crowd_.flush(waiter);
  }

  const Options& options_;
  Figures& figures_;
  Crowd crowd_;
  std::string value_;
  std::int64_t end_ns_ = 0;
  std::size_t open_ = 0;
};

}  // namespace

Result<Figures> run_operation(const Options& options) {
  Figures figures;
  Status done;
  if (options.operation == "set") {
    done = run_set(options, figures);
  } else if (options.operation == "wait-notify") {
    done = Pairs(options, figures).run();
  } else {
    done = Answered(options, figures).run();
  }
  if (!done) return std::unexpected(std::move(done.error()));
  return figures;
}

}  // namespace elastic::store_load
