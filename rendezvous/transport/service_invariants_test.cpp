// A service whose connections, jobs and times do not agree is noticed.
#include <doctest/doctest.h>

#include <string>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/transport/limits.h"
#include "rendezvous/transport/service.h"
#include "src/base/check_test_support.h"

namespace elastic::transport {

using namespace coordinator;
using namespace protocol;

// Breaks what holds of a service that has welcomed connection 1 to job "a", in which it is a node, and whose connection
// 2 has not introduced itself yet.
struct ServiceBreaker {
  static void open_too_many(Service& service) {
    for (ConnectionId id = 100; service.connections_.size() <= limits::kAgentConnections; ++id) {
      service.connections_.emplace(id, Service::Connection(CoordinatorSession("", {})));
    }
  }
  static void remember_too_many(Service& service) { service.ended_.resize(limits::kEndedJobs + 1); }
  static void wait_for_no_greeting(Service& service) { service.greetings_.clear(); }
  static void wait_for_another_greeting(Service& service) { service.greetings_.emplace(5, 99); }
  static void mistake_job(Service& service) { service.connections_.at(1).job = "b"; }
  static void mistake_both_jobs(Service& service) {
    service.jobs_.emplace("b", std::make_unique<Coordinator>(service.jobs_.at("a")->config()));
    service.connections_.at(1).session.set_stamp(1, service.jobs_.at("a")->incarnation());
    mistake_job(service);
  }
  static void stamp_with_another_term(Service& service) {
    service.connections_.at(1).session.set_stamp(9, service.jobs_.at("a")->incarnation());
  }
  static void stamp_with_another_incarnation(Service& service) {
    service.connections_.at(1).session.set_stamp(service.jobs_.at("a")->term(), 99);
  }
  static void lose_connection(Service& service) { service.connections_.erase(1); }
  static void forget_time(Service& service) { service.deadline_of_.clear(); }
  static void forget_when_it_is_due(Service& service) { service.deadlines_.clear(); }
  static void wait_for_another_time(Service& service) { service.deadlines_.emplace(5, "b"); }
  static void keep_ended_job(Service& service) {
    (void)service.jobs_.at("a")->on_event(SessionEnded{1, "reset"}, 0);  // its only node
  }
};

namespace {

using Breaker = ServiceBreaker;

struct Served {
  Served() : service({.random = [] { return 5U; }}, 0) {
    (void)service.on_event(ConnectionOpened{1}, 0);
    AgentSession agent({"a", 1}, "", {});
    read(agent.begin(), agent);
    ByteString joins;
    agent.send(NodeJoins{.local_world_size = 1, .agent = 1, .terms = coordinator::testing::job_terms(2, 2)}, joins);
    read(joins, agent);
    (void)service.on_event(ConnectionOpened{2}, 0);
    REQUIRE(service.find("a")->roster().size() == 1);
  }
  void read(const ByteString& bytes, AgentSession& agent) {
    for (const ServiceEffect& effect : service.on_event(ConnectionRead{1, bytes}, 0)) {
      const auto* write = std::get_if<Write>(&effect);
      if (write == nullptr) continue;
      ByteString reply;
      (void)agent.receive(write->bytes, reply);
      if (!reply.empty()) read(reply, agent);
    }
  }
  Service service;
};

std::string noticed(void (*broken)(Service&)) {
  Served served;
  broken(served.service);
  return failed_check([&] { served.service.check_invariants(); });
}

TEST_CASE("a service that has more than it may is noticed") {
  CHECK(noticed([](Service&) {}).empty());
  CHECK(noticed(Breaker::open_too_many) == "connections_.size() <= limits::kAgentConnections");
  CHECK(noticed(Breaker::remember_too_many) ==
        "jobs_.size() <= limits::kJobsServed && ended_.size() <= limits::kEndedJobs");
}

TEST_CASE("a connection that is not of its job, or is not waited for, is noticed") {
  CHECK(noticed(Breaker::wait_for_no_greeting) == "greetings_.contains({connection.greet_until_ms, id})");
  CHECK(noticed(Breaker::wait_for_another_greeting) == "greetings_.size() == strangers");
  CHECK(noticed(Breaker::mistake_job) == "coordinator != nullptr");
  CHECK(noticed(Breaker::stamp_with_another_term) == "connection.session.stamp().term == coordinator->term()");
  CHECK(noticed(Breaker::stamp_with_another_incarnation) ==
        "connection.session.stamp().incarnation == coordinator->incarnation()");
  const std::string of_session =
      "connection != connections_.end() && connection->second.welcome && connection->second.job == job";
  CHECK(noticed(Breaker::lose_connection) == of_session);
  CHECK(noticed(Breaker::mistake_both_jobs) == of_session);
}

TEST_CASE("a job whose time is not known, or that has ended and is served, is noticed") {
  CHECK(noticed(Breaker::forget_time) == "deadline != deadline_of_.end() && deadline->second == *next_ms");
  CHECK(noticed(Breaker::forget_when_it_is_due) == "deadlines_.contains({*next_ms, job})");
  CHECK(noticed(Breaker::wait_for_another_time) == "deadlines_.size() == timed && deadline_of_.size() == timed");
  CHECK(noticed(Breaker::keep_ended_job) == "!coordinator->ended()");
}

TEST_CASE("a service checks itself after an event") {
  Served served;
  Breaker::wait_for_another_greeting(served.service);
  int events = 0;
  while (events < 100 && failed_check([&] { (void)served.service.on_event(ServiceTime{}, 0); }).empty()) ++events;
  CHECK(events < 10);  // there are three things to look at
}

}  // namespace
}  // namespace elastic::transport
