#include "health/evidence_reader/ras_conversation.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "health/evidence/ras_test_support.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

using hang::Source;
using namespace test;

// A stand-in for NCCL's RAS at a port of its own: it takes connections one after the other, as many as there are
// reports, and answers each by one.
class Ras {
 public:
  Ras(std::vector<std::string> reports, bool knows_json = true)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener_, 8) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, knows_json, reports = std::move(reports)] {
      for (const std::string& report : reports) serve(report, knows_json);
    });
  }
  ~Ras() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Ras(const Ras&) = delete;
  Ras& operator=(const Ras&) = delete;

  Environment environment() const { return {format("NCCL_RAS_ADDR=127.0.0.1:{}", port_)}; }

 private:
  void serve(const std::string& report, bool knows_json) const {
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    const auto say = [&](const std::string& text) { (void)!send(client, text.data(), text.size(), MSG_NOSIGNAL); };
    std::string line;
    for (char byte = 0; recv(client, &byte, 1, 0) == 1;) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      if (line.starts_with("CLIENT PROTOCOL")) say("SERVER PROTOCOL 2\n");
      if (line.starts_with("TIMEOUT")) say("OK\n");
      if (line.starts_with("SET FORMAT")) say(knows_json ? "OK\n" : "ERROR: unknown command\n");
      if (line.find("STATUS") != std::string::npos) {
        say(report);
        break;
      }
      line.clear();
    }
    close(client);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// Workers are this process as rank 0, and one that is not there as rank 1.
constexpr std::int64_t kAbsent = 0x40000001;
std::string report(std::int64_t first, std::int64_t second) {
  return report_json({{.ranks = {{.rank = 0, .host = "127.0.0.1", .pid = getpid(), .all_reduces = first},
                                 {.rank = 1, .host = "127.0.0.1", .pid = kAbsent, .all_reduces = second}}}});
}

hang::EvidenceAnswer asked(const Environment& environment, bool is_ours = false) {
  hang::EvidenceTask task{
      .part = hang::Part::kRas, .world_size = 2, .addresses = {"127.0.0.1"}, .ras_is_ours = is_ours};
  task.workers = {{.rank = 0, .pid = getpid()}, {.rank = 1, .pid = kAbsent}};
  return ask_ras(task, environment);
}

}  // namespace

TEST_CASE("RAS is asked twice, and a rank that stays behind is known") {
  const Ras ras({report(90, 89), report(90, 89)});
  const hang::EvidenceAnswer answer = asked(ras.environment());
  CHECK(answer.facts.ras_source == hang::SourceFacts{Source::kHad});
  REQUIRE(answer.facts.ras.has_value());
  CHECK(answer.facts.ras->counts.size() == 2);
  CHECK(answer.lines.back().find("rank 1") != std::string::npos);
}

TEST_CASE("RAS that knows no JSON is partial") {
  const std::string text = report_text("", "");
  const Ras ras({text, text}, false);
  CHECK(asked(ras.environment()).facts.ras_source.state == Source::kPartial);
}

TEST_CASE("RAS that closes early, or sends what is no report, is lost") {
  CHECK(asked(Ras({""}).environment()).facts.ras_source.state == Source::kLost);
  CHECK(asked(Ras({"nonsense\n"}).environment()).facts.ras_source.state == Source::kLost);
}

TEST_CASE("where nobody listens RAS is refused if the user has named the place, else it is off") {
  CHECK(asked({"NCCL_RAS_ADDR=127.0.0.1:1"}).facts.ras_source.state == Source::kRefused);
  CHECK(asked({"NCCL_RAS_ADDR=127.0.0.1:1"}, true).facts.ras_source.state == Source::kNotAsked);
  CHECK(asked({"NCCL_RAS_ENABLE=0"}).facts.ras_source.state == Source::kNotAsked);
  CHECK(asked({"NCCL_RAS_ADDR=somewhere"}).facts.ras_source.state == Source::kRefused);
}

TEST_CASE("the place of RAS is NCCL's own, or what NCCL_RAS_ADDR says") {
  const auto place = [](const Environment& environment) {
    const auto found = ras_place(environment);
    return found && *found ? (*found)->address + " " + (*found)->port : std::string("none");
  };
  CHECK(place({}) == "127.0.0.1 28028");
  CHECK(place({"NCCL_RAS_ADDR=localhost:5"}) == "127.0.0.1 5");
  CHECK(place({"NCCL_RAS_ADDR=[::1]:5"}) == "::1 5");
  CHECK(place({"NCCL_RAS_ADDR=5"}) == "none");
  CHECK(place({"NCCL_RAS_ENABLE=0"}) == "none");
}

}  // namespace elastic::evidence
