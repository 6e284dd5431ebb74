#include "rendezvous/transport/coordinator_server.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/session.h"
#include "src/base/overloaded.h"

namespace elastic::transport {
namespace {

using namespace protocol;

// The agent of the only node. It answers at once, within the call that brings it a message.
struct OnlyAgent {
  OnlyAgent()
      : server(
            CoordinatorServer::for_only_node(loop, "job", 7,
                                             {.on_data = [this](std::span<const std::uint8_t> bytes) { hear(bytes); },
                                              .on_end = [this] { story.push_back("end"); }})) {}

  void join() {
    server->connect();
    session.emplace(Introduction{"job", 7}, "", Nonce{});
    ByteString bytes = session->begin();
    session->send(NodeJoins{.local_world_size = 1, .role = "default", .agent = 7, .hosts_coordinator = true}, bytes);
    server->receive(bytes);
  }

  void hear(std::span<const std::uint8_t> bytes) {
    ByteString reply;
    for (const AgentSession::Event& event : session->receive(bytes, reply)) {
      std::visit(Overloaded{[&](const AgentSession::Welcomed&) { story.push_back("welcome"); },
                            [&](const AgentSession::Received& e) { answer(e.message, reply); },
                            [&](const SessionError& e) { story.push_back(e.text); }, [](const auto&) {}},
                 event);
    }
    if (!reply.empty()) server->receive(reply);
  }

  void answer(const CoordinatorMessage& message, ByteString& reply) {
    std::visit(Overloaded{[&](const PrepareRound& e) {
                            story.push_back("prepare");
                            session->send(StoreIsOpen{e.round, {"", 4000}}, reply);
                          },
                          [&](const RunWorkers& e) {
                            story.push_back("run");
                            if (succeeds) session->send(WorkersSucceeded{e.round}, reply);
                          },
                          [&](const EndJob&) {
                            story.push_back("end job");
                            session->send(JobResultHeard{}, reply);
                          },
                          [&](const Dismiss&) { story.push_back("dismiss"); }, [](const auto&) {}},
               message);
  }

  bool succeeds = true;  // its workers do at once; else they run on
  net::Loop loop;
  std::optional<AgentSession> session;
  std::vector<std::string> story;
  std::unique_ptr<CoordinatorServer> server;
};

TEST_CASE("the only node of a job has a session without a socket, and may answer from within what it hears") {
  OnlyAgent agent;
  agent.join();
  CHECK(agent.story == std::vector<std::string>{"welcome", "prepare", "run", "end job", "dismiss", "end"});
  CHECK(agent.server->jobs() == 0);
  CHECK(agent.server->is_idle());
  REQUIRE(agent.server->status().last_ended.size() == 1);
  CHECK(agent.server->status().last_ended.front().id == "job");
  agent.server->receive(ByteString(100, 0xff));  // nobody is connected
  CHECK(agent.story.size() == 6);
}

TEST_CASE("the only node that is done with its session is not taken for lost; until then it is recorded and ordered") {
  OnlyAgent agent;
  agent.succeeds = false;
  std::vector<std::string> recording;
  agent.server->record("job", [&](std::string_view line) { recording.emplace_back(line); });
  agent.join();
  CHECK(agent.story == std::vector<std::string>{"welcome", "prepare", "run"});
  REQUIRE(recording.size() == 3);  // the head, and what the agent has said
  CHECK(recording[0].contains("\"loss_timeout_ms\""));
  CHECK(recording[1].contains("node-joins"));
  CHECK(recording[2].contains("store-is-open"));
  using coordinator::OrderAnswered;
  CHECK(agent.server->order("other", {}).kind == OrderAnswered::Kind::kUnknown);
  CHECK(agent.server->order("", {.kind = coordinator::OperatorOrder::Kind::kDrain, .node = "nobody"}).kind ==
        OrderAnswered::Kind::kUnknown);
  agent.server->disconnect();
  agent.server->receive(ByteString(100, 0xff));
  REQUIRE(agent.server->status().jobs.size() == 1);
  CHECK(agent.server->status().jobs.front().node_losses == 0);
  CHECK(recording.size() == 4);  // the order that was for this job
}

}  // namespace
}  // namespace elastic::transport
