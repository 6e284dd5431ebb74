#include "health/evidence_reader/control_socket.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "health/probe/attempt.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

using hang::RankRecorder;
using hang::Source;
using hang::SourceFacts;

std::string dump_of(std::string_view backend, int number) {
  return format(
      R"({{"version": "2.10", "entries": [{{"record_id": 0, "process_group": ["0", "default_pg"],
          "collective_seq_id": {}, "profiling_name": "{}:all_reduce", "retired": false, "is_p2p": false}}]}})",
      number, backend);
}
const std::string kNothing = R"({"version": "2.10", "pg_config": {}, "pg_status": {}})";

std::string answer_of(std::string_view status, std::string_view body) {
  return format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/control_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

UniqueFd listening_at(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(socket.get(), 16) == 0);
  return socket;
}

// A control server, as a thread of the test's: what it answers to each handler. Without an answer it says nothing.
class Server {
 public:
  Server(const std::string& path, std::map<std::string, std::string> answers)
      : socket_(listening_at(path)), thread_([this, answers = std::move(answers)] {
          for (std::size_t i = 0; i < kRecorderHandlers.size(); ++i) {
            UniqueFd client(accept(socket_.get(), nullptr, nullptr));
            if (!client) return;
            std::string request(4096, '\0');
            const ssize_t count = recv(client.get(), request.data(), request.size(), 0);
            request.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
            const std::string handler = request.substr(0, request.find(" HTTP")).substr(14);
            const auto known = answers.find(handler);
            if (known == answers.end()) {
              silent_.push_back(std::move(client));
            } else {
              (void)!send(client.get(), known->second.data(), known->second.size(), MSG_NOSIGNAL);
            }
          }
        }) {}
  ~Server() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  UniqueFd socket_;
  std::vector<UniqueFd> silent_;
  std::thread thread_;
};

// What is said of a worker that is this process. `patience_ms` for an answer.
RankRecorder ask(const std::string& path, std::int64_t patience_ms = 60'000) {
  ControlSocket control({.rank = 3, .pid = getpid()}, path);
  const health::Deadline deadline(patience_ms);
  while (control.is_waited_for() && !deadline.has_passed()) {
    control.go_on();
    std::this_thread::yield();
  }
  control.give_up("so long");
  return control.said();
}

RankRecorder ask_server(std::map<std::string, std::string> answers, std::int64_t patience_ms = 60'000) {
  const Directory directory;
  const Server server(directory.path() + "/control", std::move(answers));
  return ask(directory.path() + "/control", patience_ms);
}

}  // namespace

TEST_CASE("a worker's control server is asked for both recorders, and what both say is one") {
  const RankRecorder said = ask_server({{"dump_nccl_trace_json", answer_of("200 OK", dump_of("nccl", 7))},
                                        {"fr_trace_json", answer_of("200 OK", dump_of("gloo", 2))}});
  REQUIRE(said.dump.has_value());
  REQUIRE(said.dump->groups.size() == 2);
  CHECK(said.dump->groups[0].enqueued == 7);
  CHECK(said.dump->groups[1].enqueued == 2);
}

TEST_CASE("a recorder that has recorded nothing, or that an older PyTorch does not dump, leaves the other one") {
  for (const std::string& other : {answer_of("200 OK", kNothing), answer_of("404 Not Found", "no handler")}) {
    const RankRecorder said =
        ask_server({{"dump_nccl_trace_json", other}, {"fr_trace_json", answer_of("200 OK", dump_of("gloo", 2))}});
    REQUIRE(said.dump.has_value());
    CHECK(said.dump->groups.at(0).enqueued == 2);
  }
}

TEST_CASE("a recorder that fails or says nothing in time spoils the other one, which does not know its groups") {
  const std::string good = answer_of("200 OK", dump_of("gloo", 2));
  RankRecorder said = ask_server({{"dump_nccl_trace_json", answer_of("200 OK", "{}")}, {"fr_trace_json", good}});
  CHECK(!said.dump);
  CHECK(said.why_not.state == Source::kLost);
  said = ask_server({{"fr_trace_json", good}}, 200);
  CHECK(!said.dump);
  CHECK(said.why_not == SourceFacts{Source::kLate, "its control server has not answered within so long"});
}

TEST_CASE("of recorders that have recorded nothing it is not known whether they are on") {
  const std::string nothing = answer_of("200 OK", kNothing);
  RankRecorder said = ask_server({{"dump_nccl_trace_json", nothing}, {"fr_trace_json", nothing}});
  CHECK(!said.dump);
  CHECK(said.why_not == SourceFacts{Source::kPartial, "its recorder has recorded nothing"});
  const std::string unknown = answer_of("404 Not Found", "no handler");
  said = ask_server({{"dump_nccl_trace_json", unknown}, {"fr_trace_json", unknown}});
  CHECK(said.why_not == SourceFacts{Source::kRefused, "its control server dumps no recorder"});
}

TEST_CASE("a control socket that is not there, that nobody serves, or that is none, is refused") {
  const Directory directory;
  std::ofstream(directory.path() + "/file") << "no socket";
  { const UniqueFd gone = listening_at(directory.path() + "/gone"); }
  for (const auto& [name, why] : std::map<std::string, std::string>{
           {"absent", "it has no control socket"}, {"file", "is no socket"}, {"gone", "is served by nobody"}}) {
    const RankRecorder said = ask(directory.path() + "/" + name);
    CHECK(said.why_not.state == Source::kRefused);
    CHECK_MESSAGE(said.why_not.why.contains(why), said.why_not.why);
  }
}

TEST_CASE("a control socket that another process serves is not asked for this worker") {
  const Directory directory;
  const std::string path = directory.path() + "/control";
  const UniqueFd socket = listening_at(path);  // by this process
  ControlSocket control({.rank = 3, .pid = getppid()}, path);
  CHECK(!control.is_waited_for());
  const RankRecorder said = control.said();
  CHECK(said.why_not.state == Source::kRefused);
  CHECK_MESSAGE(said.why_not.why.contains("is served by another process"), said.why_not.why);
  ControlSocket of_child({.rank = 3, .pid = getppid(), .children = {getpid()}}, path);
  CHECK(of_child.is_waited_for());
}

TEST_CASE("a worker without a control socket is not asked") {
  ControlSocket control({.rank = 3, .pid = getpid()}, {});
  CHECK(!control.is_waited_for());
  const RankRecorder said = control.said();
  CHECK(said.why_not.state == Source::kNotAsked);
  CHECK(!said.dump);
}

}  // namespace elastic::evidence
