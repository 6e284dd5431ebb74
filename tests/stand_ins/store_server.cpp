// Serves one worker store, so that tests can drive it without a launcher:
//   store_server [ADDRESS [PORT]]     127.0.0.1 and a free port; "" means all addresses
// Prints "port N" when it listens. Then one line on stdin asks for one thing:
//   reset   starts a new round; prints "reset"
//   stats   prints "stats connections=N keys=N accepted=N refused=N commands=N"
//   hold    serves nothing until the next line comes, so that connections queue up; prints "held"
// The end of stdin ends it.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "rendezvous/store/server.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/loop.h"

namespace {

using namespace elastic;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Reads what is there, or waits for it. False at the end of stdin.
bool read_more(std::string& orders) {
  std::array<char, 4096> bytes{};
  pollfd readable{STDIN_FILENO, POLLIN, 0};  // the loop has made stdin non-blocking
  while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
  }
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return false;
  orders.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

void obey(store::Server& server, std::string_view order) {
  if (order == "reset") {
    server.reset();
    say("reset");
  } else if (order == "stats") {
    const store::Server::Stats stats = server.stats();
    say(format("stats connections={} keys={} accepted={} refused={} commands={}", stats.connections, stats.keys,
               stats.accepted, stats.refused, stats.commands));
  } else {
    log::error(format("not an order: {}", printable(order)));
  }
}

// Carries out whole lines. False when stdin has ended.
bool obey_all(store::Server& server, std::string& orders) {
  bool hold = false;
  while (hold || orders.find('\n') != std::string::npos) {
    const std::size_t end = orders.find('\n');
    if (end == std::string::npos) {
      if (!read_more(orders)) return false;
      continue;
    }
    const std::string order = orders.substr(0, end);
    orders.erase(0, end + 1);
    hold = order == "hold";
    if (hold) {
      say("held");
    } else {
      obey(server, order);
    }
  }
  return true;
}

int serve(const std::string& address, std::uint16_t port) {
  net::Loop loop;
  auto server = store::Server::open(loop, address, port);
  if (!server) {
    log::error(server.error().text());
    return 1;
  }
  say(format("port {}", (*server)->port()));
  std::string orders;
  net::ReadWatch watch(loop, STDIN_FILENO, [&] {
    if (!read_more(orders) || !obey_all(**server, orders)) loop.stop();
  });
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  log::set_level(log::Level::kDebug);
  const auto port = parse_int(argc > 2 ? argv[2] : "0");
  if (argc > 3 || !port || *port < 0 || *port > 65535) {
    log::error("usage: store_server [ADDRESS [PORT]]");
    return 2;
  }
  return serve(argc > 1 ? argv[1] : "127.0.0.1", static_cast<std::uint16_t>(*port));
}
