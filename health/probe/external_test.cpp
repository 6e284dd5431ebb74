#include "health/probe/external.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongMs = 60'000;
constexpr int kOwn = 3;  // node ranks
const char* const kWell = "echo \"{\\\"time\\\": 0.5, \\\"local_rank\\\": $LOCAL_RANK}\" > $OUT/$LOCAL_RANK.txt";

UniqueFd stream() { return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool can_bind(std::uint16_t port) {
  const UniqueFd socket = stream();
  const sockaddr_in address = loopback(port);
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// A node with an external probe. The test itself plays the other node.
struct Node {
  Node() {
    char made[] = "/tmp/external_test.XXXXXX";
    REQUIRE(mkdtemp(made) != nullptr);
    folder = made;
    probe = {.environment = {"PATH=/usr/bin:/bin", "RANK=99", format("OUT={}/results", folder), "FOLDER=" + folder},
             .directory = folder + "/results",
             .local_world_size = 2};
    const UniqueFd listener = stream();
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    own = stream();
    REQUIRE(connect(own.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    other = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  ~Node() { fs::remove_all(folder); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Attempt<double> run(const std::string& command, int with = 7, std::int64_t after_ms = kLongMs) {
    probe.command = command;
    return run_external(probe, own.get(), kOwn, {.with = with, .master_port = 4711, .local_world_size = 4}, port,
                        Deadline(after_ms));
  }
  // Runs the probe, which has to fail, and returns the reason.
  std::string failure(const std::string& command, std::int64_t after_ms = kLongMs) {
    const auto ms = run(command, 7, after_ms);
    return ms ? "it did not fail" : ms.error();
  }
  std::string text_in(const std::string& name) const {
    std::ifstream file(folder + "/" + name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // What the probe sends to the other node.
  std::string told() const {
    char byte = '\0';
    return recv(other.get(), &byte, 1, MSG_DONTWAIT) == 1 ? std::string(1, byte) : "";
  }

  std::string folder;
  ExternalProbe probe;
  UniqueFd own;
  UniqueFd other;
  MasterPort port = MasterPort::open();
};

}  // namespace

TEST_CASE("an external probe runs for each worker with its variables, and the longest time counts") {
  Node node;
  const std::string command =
      "echo $RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR $MASTER_PORT "
      "$TORCHELASTIC_USE_AGENT_STORE > $FOLDER/$LOCAL_RANK; "
      "echo \"{\\\"time\\\": 1.$LOCAL_RANK, \\\"local_rank\\\": 0}\" > $OUT/$LOCAL_RANK.txt; exit 1";
  CHECK(node.run(command) == Attempt<double>(1100));
  CHECK(node.text_in("0") == format("0 6 2 0 2 127.0.0.1 {} False\n", node.port.number()));
  CHECK(node.text_in("1") == format("1 6 2 0 2 127.0.0.1 {} False\n", node.port.number()));
  CHECK(node.told() == "+");
  CHECK(fs::is_empty(node.folder + "/results"));
  // The node with the higher rank does not lead.
  CHECK(node.run(command, 1) == Attempt<double>(1100));
  CHECK(node.text_in("0") == "4 6 2 1 2 127.0.0.1 4711 False\n");
  CHECK(node.text_in("1") == "5 6 2 1 2 127.0.0.1 4711 False\n");
}

TEST_CASE("a result of an earlier test never counts") {
  Node node;
  fs::create_directories(node.folder + "/results");
  for (const char* name : {"/results/0.txt", "/results/1.txt"}) std::ofstream(node.folder + name) << "{\"time\": 1}";
  CHECK(node.failure("exit 0").starts_with("the external probe left no result: local rank "));
}

TEST_CASE("where a worker leaves no result its end is told, the others are stopped and the other node learns of it") {
  Node node;
  CHECK(node.failure(format("[ $LOCAL_RANK = 1 ] && exit 3; {}; sleep 1000", kWell)) ==
        "the external probe left no result: local rank 0 was stopped, local rank 1 exited with code 3");
  CHECK(node.told() == "-");
  node.probe.local_world_size = 1;
  CHECK(node.failure("kill -9 $$") == "the external probe left no result: local rank 0 was killed by SIGKILL");
}

TEST_CASE("what is no result is none: an empty file, other text, a negative time, a link, a pipe") {
  Node node;
  node.probe.local_world_size = 1;
  for (const char* command : {": > $OUT/0.txt", "echo 1 > $OUT/0.txt", "echo '{\"time\": -1}' > $OUT/0.txt",
                              "echo '{\"time\": \"1\"}' > $OUT/0.txt", "mkfifo $OUT/0.txt",
                              "echo '{\"time\": 1}' > $OUT/x; ln -s x $OUT/0.txt"}) {
    CAPTURE(command);
    CHECK(node.failure(command) == "the external probe left no result: local rank 0 exited with code 0");
  }
}

TEST_CASE("when the other node has failed, or is gone, the probe is stopped; when it is done, it is not") {
  Node node;
  REQUIRE(send(node.other.get(), "-", 1, 0) == 1);
  CHECK(node.failure("sleep 1000") == "");
  REQUIRE(send(node.other.get(), "+", 1, 0) == 1);
  node.other = UniqueFd();
  CHECK(node.run(kWell) == Attempt<double>(500));
  CHECK(node.failure("sleep 1000") == "");
}

TEST_CASE("an external probe that does not end in time has failed, whatever it has written") {
  Node node;
  node.probe.local_world_size = 1;
  CHECK(node.failure(format("{}; sleep 1000", kWell), 200) ==
        "the external probe left no result: local rank 0 did not end within 0.2 s");
}

TEST_CASE("a directory that cannot be made is told") {
  Node node;
  node.probe.directory = "/proc/none/results";
  CHECK(node.failure("exit 0").starts_with("/proc/none/results cannot be created: "));
}

TEST_CASE("the port of the master is kept from others, and free for the probe") {
  Node node;
  CHECK(node.port.number() != 0);
  CHECK(!can_bind(node.port.number()));
  const std::uint16_t number = node.port.number();
  node.port.lend();
  CHECK(can_bind(number));
  node.port.take_back();
  CHECK(node.port.number() == number);
  CHECK(!can_bind(number));
}
