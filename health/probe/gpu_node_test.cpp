#include "health/probe/gpu_node.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <future>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;

namespace {

// A deadline that no test reaches.
constexpr std::int64_t kEverMs = 3'600'000;

// A shell script in the place of the probe. At each request to gather it runs the commands in `on_gather`, where $line
// is the request and $gathers the number of such requests before; `wait` there sends no reply until the channel closes.
class Program {
 public:
  explicit Program(const std::string& on_gather,
                   const std::string& on_compute = R"(say '{"ok":true,"product_ms":1.5}')") {
    const int file = mkstemp(path_.data());
    REQUIRE(file >= 0);
    const std::string id(256, 'a');
    const std::string text =
        "#!/bin/sh\ngathers=0\nsay() { printf '%s\\n' \"$1\"; }\nwait() { read -r nothing <&1; exit 0; }\n"
        "while read -r line <&1; do case $line in\n"
        "do=open*) say '{\"ok\":true,\"uuid\":\"u\",\"nccl\":{\"path\":\"p\",\"version\":22809}}' ;;\n"
        "do=facts*) say '{\"unavailable\":\"none\"}' ;;\n"
        "do=id*) say '{\"ok\":true,\"id\":\"" +
        id +
        "\"}' ;;\n"
        "do=compute*) " +
        on_compute +
        " ;;\n"
        "*) " +
        on_gather + "\n gathers=$((gathers + 1)) ;;\nesac; done\n";
    REQUIRE(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    fchmod(file, 0700);
    close(file);
  }
  ~Program() { unlink(path_.c_str()); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& path() const { return path_; }
  GpuSettings settings(int gpus) const {
    return {.gpus = gpus,
            .program = path_,
            .environment = {"PATH=/usr/bin:/bin"},
            .open_ms = kEverMs,
            .facts_ms = kEverMs,
            .compute_ms = kEverMs,
            .gather_ms = kEverMs};
  }

 private:
  std::string path_ = "/tmp/gpu-node-test.XXXXXX";
};

const std::string kPasses = R"(say '{"ok":true,"ms":2.5,"latency_us":20}')";
const std::string kFails = R"(say '{"failed":"boom"}')";

// Two nodes with one GPU each, and a connection between them.
struct Two {
  Two(const Program& leader, const Program& follower)
      : nodes{GpuNode(leader.settings(1)), GpuNode(follower.settings(1))} {
    for (GpuNode& node : nodes) REQUIRE(node.run_self_tests().unavailable == "");
  }
  using Result = std::expected<GpuPairFigures, GatherFailure>;
  std::pair<Result, Result> meet() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const auto side = [this](int index, int socket) {
      return std::async(std::launch::async, [this, index, end = UniqueFd(socket)] {
        return nodes[index].meet(end.get(), index == 0, 1, Deadline(kEverMs));
      });
    };
    auto leader = side(0, ends[0]), follower = side(1, ends[1]);
    Result first = leader.get();
    return {std::move(first), follower.get()};
  }

  GpuNode nodes[2];
};

}  // namespace

TEST_CASE("two nodes whose GPUs gather tell the slower one's time") {
  Two two(Program(R"(say '{"ok":true,"ms":7.5,"latency_us":20}')"), Program{kPasses});
  const auto [leader, follower] = two.meet();
  REQUIRE(leader);
  REQUIRE(follower);
  CHECK(leader->ms == 7.5);
  CHECK(follower->ms == 7.5);
  CHECK(leader->ranks == 2);
  CHECK(leader->latency_us == 20);
}

TEST_CASE("a node whose all-gather fails is heard by the other while that one's own still goes on") {
  for (const char* how : {R"(say '{"failed":"boom"}')", "exit 3"}) {
    for (const bool leader_fails : {true, false}) {
      CAPTURE(how);
      CAPTURE(leader_fails);
      const Program fails(how), waits("wait");
      Two two(leader_fails ? fails : waits, leader_fails ? waits : fails);
      const auto [leader, follower] = two.meet();
      REQUIRE(!leader);
      REQUIRE(!follower);
      CHECK((leader_fails ? leader : follower).error().why.starts_with("GPU 0: "));
      CHECK((leader_fails ? follower : leader).error().why == "");
    }
  }
}

TEST_CASE("a probe that was ended for another's failure is there again in the next test") {
  const Program once("if [ $gathers = 0 ]; then " + kFails + "; else " + kPasses + "; fi");
  const Program waits_at_first("if [ -e \"$0.passes\" ]; then " + kPasses + "; else wait; fi");
  Two two(once, waits_at_first);
  CHECK(!two.meet().first);
  const std::string mark = waits_at_first.path() + ".passes";
  REQUIRE(close(creat(mark.c_str(), 0600)) == 0);
  const auto [leader, follower] = two.meet();
  CHECK_MESSAGE(leader.has_value(), (leader ? "" : leader.error().why));
  CHECK(follower.has_value());
  unlink(mark.c_str());
}

TEST_CASE("a node that is gone ends the all-gather of the other") {
  const Program waits("wait");
  GpuNode node(waits.settings(1));
  REQUIRE(node.run_self_tests().unavailable == "");
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  auto met = std::async(std::launch::async, [&] { return node.meet(ours.get(), true, 1, Deadline(kEverMs)); });
  char byte = 0;
  while (recv(theirs.get(), &byte, 1, 0) == 1 && byte != '\n') {
  }
  theirs = UniqueFd();
  CHECK(met.get().error().why == "the other node: it closed the connection");
}

TEST_CASE("of a node's own GPUs one that fails ends the all-gather of all, and is named") {
  const Program program("case $line in *rank=1*) " + kFails + " ;; *) wait ;; esac");
  const GpuLook look = GpuNode(program.settings(3)).run_self_tests();
  REQUIRE(look.failure);
  CHECK(look.failure->step == GpuStep::kGather);
  CHECK(look.failure->why == "the all-gather of its own GPUs over NCCL failed: GPU 1: boom");
  CHECK(look.unhealthy == "");
}

TEST_CASE("what is a GPU's own fault makes its node unhealthy, a call that fails is only told") {
  const GpuLook failed = GpuNode(Program(kPasses, R"(say '{"failed":"no handle"}')").settings(1)).run_self_tests();
  CHECK(failed.failure == GpuFailure{GpuStep::kCompute, "GPU 0: no handle"});
  CHECK(failed.unhealthy == "");
  const GpuLook wrong =
      GpuNode(Program(kPasses, R"(say '{"failed":"it is wrong","defect":true}')").settings(1)).run_self_tests();
  CHECK(!wrong.failure);
  CHECK(wrong.unhealthy == "GPU 0: it is wrong");
}
