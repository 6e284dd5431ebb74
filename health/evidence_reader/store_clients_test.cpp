#include "health/evidence_reader/store_clients.h"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::evidence {
namespace {

sockaddr_in place_of(int socket) {
  sockaddr_in place{};
  socklen_t size = sizeof place;
  REQUIRE(getsockname(socket, reinterpret_cast<sockaddr*>(&place), &size) == 0);
  return place;
}

// A server of this host, and a client of it.
struct Connection {
  Connection()
      : server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(server.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    REQUIRE(listen(server.get(), 1) == 0);
    place = place_of(server.get());
    REQUIRE(connect(client.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
  }
  // As the server sees the client.
  std::string peer() const { return format("127.0.0.1:{}", ntohs(place_of(client.get()).sin_port)); }

  UniqueFd server;
  UniqueFd client;
};

}  // namespace

TEST_CASE("a connection is that of the worker that has it, or has started who has it") {
  const Connection connection;
  hang::EvidenceTask task{.part = hang::Part::kStoreClients, .peers = {"127.0.0.1:1", connection.peer()}};
  task.workers = {{.rank = 3, .pid = 0x40000001, .children = {}}, {.rank = 5, .pid = getpid(), .children = {}}};
  const std::vector<hang::StoreClient> own = {{.peer = connection.peer(), .rank = 5}};
  CHECK(find_store_clients(task).clients == own);
  task.workers = {{.rank = 3, .pid = 0x40000001, .children = {getpid()}}};
  CHECK(find_store_clients(task).clients == std::vector<hang::StoreClient>{{.peer = connection.peer(), .rank = 3}});
  task.workers.pop_back();
  CHECK(find_store_clients(task).clients.empty());
}

TEST_CASE("a connection that a child has inherited is its parent's") {
  const Connection connection;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  hang::EvidenceTask task{.part = hang::Part::kStoreClients, .peers = {connection.peer()}};
  task.workers = {{.rank = 1, .pid = 0x40000001, .children = {child}}, {.rank = 2, .pid = getpid(), .children = {}}};
  CHECK(find_store_clients(task).clients == std::vector<hang::StoreClient>{{.peer = connection.peer(), .rank = 2}});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace elastic::evidence
