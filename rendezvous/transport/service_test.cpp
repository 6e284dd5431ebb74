#include "rendezvous/transport/service.h"

#include <doctest/doctest.h>

#include "rendezvous/protocol/term.h"
#include "rendezvous/transport/limits.h"
#include "rendezvous/transport/service_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::transport;
using namespace elastic::protocol;
using coordinator::testing::job_terms;
using transport::testing::Served;

TEST_CASE("one service serves jobs side by side, and none sees another") {
  Served served;
  const JobTerms terms = job_terms(2, 2, 0);
  const ConnectionId a1 = served.join("a", 1, terms);
  const ConnectionId b1 = served.join("b", 1, terms);  // an agent with the same number
  CHECK(served.at(a1).heard.empty());
  const ConnectionId a2 = served.join("a", 2, terms);
  REQUIRE(served.at(a2).last<PrepareRound>() != nullptr);
  CHECK(served.at(a1).last<PrepareRound>() != nullptr);
  CHECK(served.at(b1).heard.empty());
  CHECK(served.service.jobs() == 2);
  CHECK(served.service.find("a")->incarnation() != served.service.find("b")->incarnation());
  const ConnectionId b2 = served.join("b", 2, terms);
  for (const ConnectionId id : {a1, b1}) served.say(id, StoreIsOpen{0, {"h", 1}});
  served.gone(a2);
  CHECK(served.at(a1).last<StopWorkers>() != nullptr);
  CHECK(served.at(b1).last<StopWorkers>() == nullptr);
  CHECK(served.service.find("b")->state() == Coordinator::State::kRunning);
  served.say(b1, WorkersSucceeded{0});
  served.say(b2, WorkersSucceeded{0});
  CHECK(served.at(b1).last<EndJob>() != nullptr);
  CHECK(served.at(a1).last<EndJob>() == nullptr);
}

TEST_CASE("a node that is turned away is told why, and its connection is closed") {
  Served served;
  const std::string job(200, 'j');  // too long to be stored inside the string object
  served.join(job, 1, job_terms(2, 2));
  const ConnectionId other = served.join(job, 2, job_terms(3, 3));
  REQUIRE(served.at(other).last<Rejected>() != nullptr);
  CHECK(served.at(other).last<Rejected>()->why == Rejected::Why::kTermsDiffer);
  CHECK(served.at(other).closed);
  CHECK(served.service.connections() == 1);
}

TEST_CASE("keep-alives are answered for nodes that are in the job, and for nobody else: the answer is a lease") {
  Served served;
  NodeJoins first = served.joiner(1, job_terms(2, 2));
  first.node_rank = 0;
  const ConnectionId member = served.greet({"a", 1});
  served.say(member, first);
  served.keep_alive(member);
  CHECK(served.at(member).kept == 1);
  NodeJoins second = served.joiner(2, job_terms(2, 2));
  second.node_rank = 0;
  const ConnectionId held = served.greet({"a", 2});
  served.say(held, second);
  CHECK(served.at(member).last<AreYouThere>() != nullptr);
  served.keep_alive(held);
  CHECK(served.at(held).kept == 0);
  served.time(1000);  // the first node does not answer, and is replaced
  CHECK(served.at(member).closed);
  served.keep_alive(held);
  CHECK(served.at(held).kept > 0);
}

TEST_CASE("when a job has ended the connections that had not joined it are closed, to begin anew") {
  Served served;
  const ConnectionId member = served.join("a", 1, job_terms(1, 1));
  const ConnectionId late = served.greet({"a", 2});
  CHECK(served.at(late).welcome);
  served.say(member, StoreIsOpen{0, {"h", 1}});
  served.say(member, WorkersSucceeded{0});
  CHECK(!served.at(late).closed);
  served.say(member, JobResultHeard{});
  CHECK(served.at(member).last<Dismiss>() != nullptr);
  CHECK(served.at(member).closed);
  CHECK(served.at(late).closed);
  CHECK(served.service.jobs() == 0);
  CHECK(served.service.connections() == 0);
  CHECK(!served.service.next_deadline_ms());
}

TEST_CASE("an agent that missed the end hears the job result, and a fresh one of that name begins a job") {
  Served served;
  served.whole_job("a");
  const ConnectionId missed = served.greet({"a", 7, 1, 1});
  REQUIRE(served.at(missed).last<EndJob>() != nullptr);
  CHECK(served.at(missed).last<Dismiss>() != nullptr);
  CHECK(served.at(missed).closed);
  CHECK(served.service.jobs() == 0);
  const ConnectionId other = served.greet({"b", 7, 1, 1});  // this incarnation is of another job
  CHECK(served.at(other).heard.empty());
  const ConnectionId fresh = served.join("a", 1, job_terms(1, 1));
  CHECK(served.at(fresh).last<PrepareRound>() != nullptr);
  CHECK(served.service.find("a")->incarnation() != 1);
}

TEST_CASE("a process that only waits for its connections to close begins no job, and one that serves others does") {
  Served served;
  const ConnectionId other = served.join("b", 1, job_terms(1, 1));
  served.whole_job("a");
  served.carry(served.service.on_event(AgentEnded{}, served.now_ms));
  CHECK(served.at(served.greet({"a", 9})).welcome);
  served.say(other, StoreIsOpen{0, {"h", 1}});
  served.say(other, WorkersSucceeded{0});
  served.say(other, JobResultHeard{});
  served.gone(served.connections);  // the one that had not joined "a"
  REQUIRE(served.service.jobs() == 0);
  const ConnectionId late = served.greet({"a", 10});
  CHECK(served.at(late).closed);
  CHECK(served.at(late).error.contains("this process is ending"));
  REQUIRE(served.at(late).redirect);
  CHECK(served.at(late).redirect->knows_nothing);
  CHECK_FALSE(served.at(late).redirect->retry_ms);  // this process will not be here
  CHECK(served.service.jobs() == 0);
}

TEST_CASE("an agent that has met a later coordinator hears the job result of the one that gives way to it at the end") {
  Served served;
  NodeJoins knows = served.joiner(1, job_terms(1, 2));
  knows.facts = {.incarnation = 7, .term = 1, .round = 3, .job_result = JobResult{.round = 3}};
  const ConnectionId first = served.greet({"a", 1, 7, 1});
  served.say(first, knows);
  REQUIRE(served.at(first).last<EndJob>() != nullptr);
  REQUIRE(served.service.jobs() == 1);  // it waits for others
  const ConnectionId late = served.greet({"a", 2, 7, term_after(5, 5)});
  CHECK(served.at(late).last<EndJob>() != nullptr);
  CHECK(served.at(late).last<Dismiss>() != nullptr);
  CHECK(served.at(late).closed);
}

TEST_CASE("a job that is started again is born later, also if the clock was set back meanwhile") {
  std::int64_t wall_ms = 5000;
  Served served({.wall_ms = [&] { return wall_ms; }});
  const auto born = [&] {
    const protocol::Fence fence = served.at(served.whole_job("a")).last<PrepareRound>()->fence;
    CHECK(fence.term == 1);
    return fence.birth_ms;
  };
  CHECK(born() == 5000);
  CHECK(born() == 5001);  // in the same millisecond
  wall_ms = 9000;
  CHECK(born() == 9000);
  wall_ms = 1000;
  CHECK(born() == 9001);
}

TEST_CASE("an agent that missed the end hears what the others heard of the first failure") {
  Served served;
  const ConnectionId id = served.join("a", 1, job_terms(1, 1));
  served.say(id, StoreIsOpen{0, {"h", 1}});
  served.say(id, WorkerFailed{0, coordinator::testing::failure(0, 5)});
  served.say(id, NodeStopped{0, {coordinator::testing::failure(0, 5)}});
  served.say(id, JobResultHeard{"Traceback"});
  CHECK(served.at(id).last<Dismiss>()->details == "Traceback");
  const ConnectionId missed = served.greet({"a", 7, 1, 1});
  REQUIRE(served.at(missed).last<Dismiss>() != nullptr);
  CHECK(served.at(missed).last<Dismiss>()->details == "Traceback");
}

TEST_CASE("of jobs that have ended so many are remembered, the latest") {
  Served served;
  for (std::size_t i = 0; i <= limits::kEndedJobs; ++i) served.whole_job("job" + std::to_string(i));
  CHECK(served.at(served.greet({"job0", 7, 1, 1})).heard.empty());
  CHECK(served.at(served.greet({"job1", 7, 3, 1})).last<EndJob>() != nullptr);  // each job draws two random numbers
}

TEST_CASE("a job that nobody is in and that never ran is forgotten, and the next may have other terms") {
  Served served;
  const ConnectionId first = served.join("a", 1, job_terms(2, 2));
  const ConnectionId second = served.greet({"a", 2});
  served.gone(first);
  CHECK(served.service.jobs() == 0);
  CHECK(served.at(second).closed);  // it was welcomed by the ended job, and connects again
  const ConnectionId third = served.greet({"a", 2});
  CHECK(served.service.jobs() == 1);
  served.gone(third);  // it has never joined
  CHECK(served.service.jobs() == 0);
  CHECK(!served.service.next_deadline_ms());
  const ConnectionId again = served.join("a", 3, job_terms(1, 1));
  CHECK(served.at(again).last<PrepareRound>() != nullptr);
}

TEST_CASE("a job without a name is forgotten like any other") {
  Served served;
  const ConnectionId node = served.join("", 1, job_terms(2, 2));
  const ConnectionId greeted = served.greet({"", 2});
  const ConnectionId stranger = served.open();
  CHECK(served.service.jobs() == 1);
  served.gone(node);
  CHECK(served.service.jobs() == 0);
  CHECK(served.at(greeted).closed);
  CHECK(std::ranges::find(served.closed, stranger) == served.closed.end());
}

TEST_CASE("a job that has run is kept while its nodes are away") {
  Served served;
  const ConnectionId node = served.join("a", 1, job_terms(1, 1));
  served.gone(node);
  CHECK(served.service.jobs() == 1);
  CHECK(served.service.next_deadline_ms().has_value());
}

TEST_CASE("a service with as many jobs as it serves refuses another, and says so") {
  Served served;
  for (std::size_t i = 0; i < limits::kJobsServed; ++i) served.join("job" + std::to_string(i), 1, job_terms(2, 2));
  CHECK(served.service.jobs() == limits::kJobsServed);
  const ConnectionId more = served.greet({"one more", 1});
  CHECK(served.at(more).error.find("1024 jobs") != std::string::npos);
  CHECK(served.at(more).closed);
  CHECK(served.at(served.join("job0", 2, job_terms(2, 2))).last<PrepareRound>() != nullptr);
}

TEST_CASE("a service for one job alone turns other jobs' agents away by its job's name, and knows nothing of them") {
  Served served({.only_job = "slurm-7.0"});
  const ConnectionId other = served.greet({"slurm-8.0", 1});
  CHECK(served.at(other).error.find("coordinator serves job slurm-7.0 and no other") != std::string::npos);
  CHECK(served.at(other).closed);
  CHECK(served.service.jobs() == 0);
  CHECK(served.at(served.join("slurm-7.0", 2, job_terms(1, 1))).last<PrepareRound>() != nullptr);
}

TEST_CASE("connections are bounded, and those that say nothing are closed after the greeting time") {
  Served served;
  for (std::size_t i = 0; i < limits::kAgentConnections; ++i) served.open();
  CHECK(served.closed.empty());
  const ConnectionId more = served.open();
  CHECK(served.closed == std::vector<ConnectionId>{more});
  CHECK(served.service.next_deadline_ms() == 5000);
  served.time(4999);
  CHECK(served.closed.size() == 1);
  served.time(5000);
  CHECK(served.service.connections() == 0);
}

TEST_CASE("an agent that has introduced itself is not closed for being slow, and is watched once it has joined") {
  Served served;
  const ConnectionId id = served.join("a", 1, job_terms(2, 2));
  served.time(4999);
  served.keep_alive(id);
  served.time(6000);
  CHECK(!served.at(id).closed);
  REQUIRE(served.service.next_deadline_ms() == 9999);
  served.time(9999);
  CHECK(served.at(id).closed);
}

TEST_CASE("strangers and agents with another secret are turned away, and touch no job") {
  Served served({.secret = "s"});
  const ConnectionId stranger = served.open();
  const std::string_view http = "GET / HTTP/1.1\r\n\r\n";
  served.read(stranger, ByteString(http.begin(), http.end()));
  CHECK(served.closed == std::vector<ConnectionId>{stranger});
  const ConnectionId wrong = served.greet({"a", 1}, "t");
  CHECK(served.at(wrong).error.find("another secret") != std::string::npos);
  CHECK(served.service.jobs() == 0);
  CHECK(served.at(served.greet({"a", 1}, "s")).welcome);
}

TEST_CASE("garbage in the middle of a session is the loss of its node") {
  Served served;
  const ConnectionId first = served.join("a", 1, job_terms(2, 2));
  const ConnectionId second = served.join("a", 2, job_terms(2, 2));
  served.say(first, StoreIsOpen{0, {"h", 1}});
  served.read(second, ByteString(100, 0xff));
  CHECK(served.at(second).closed);
  CHECK(served.at(first).last<StopWorkers>() != nullptr);
}

TEST_CASE("a death notice reaches the job that it names, once, over a connection of its own") {
  for (const bool right_secret : {true, false}) {
    Served served({.secret = "s"});
    const JobTerms terms = job_terms(1, 2);
    std::vector<ConnectionId> nodes;
    for (const AgentId agent : {1ULL, 2ULL}) {
      nodes.push_back(served.greet({"a", agent}, "s"));
      served.say(nodes.back(), served.joiner(agent, terms));
    }
    served.say(nodes[0], StoreIsOpen{0, {"h", 1}});
    served.gone(nodes[1]);
    served.say(nodes[0], NodeStopped{0, {}});
    const ConnectionId word = served.open();
    served.read(word, node_is_empty_frame({"a", 2, 1, 1}, 0, right_secret ? "s" : "t"));
    CHECK(served.closed.back() == word);
    CHECK(served.at(nodes[0]).last<PrepareRound>()->round == (right_secret ? 1 : 0));
  }
}

TEST_CASE("an agent that knows a later coordinator ends this one's part in the job, and is not taken in") {
  Served served;
  const ConnectionId first = served.join("a", 1, job_terms(1, 1));
  served.say(first, StoreIsOpen{0, {"h", 1}});
  const ConnectionId later = served.greet({"a", 2, 1, 5});
  CHECK(served.at(first).closed);
  CHECK(served.at(later).error.find("another coordinator has taken over") != std::string::npos);
  CHECK(served.at(later).closed);
  CHECK(served.service.jobs() == 0);
}

TEST_CASE(
    "a coordinator that meets a node of an earlier start has a higher term for all, and begins anew if none knows a "
    "round") {
  Served served;
  const ConnectionId fresh = served.greet({"a", 9});
  CHECK(served.at(fresh).session.welcome().incarnation == 1);
  const ConnectionId back = served.greet({"a", 1, 77, 4});
  CHECK(served.at(back).session.welcome().incarnation == 77);
  const Term taken_over = served.at(back).session.welcome().term;
  CHECK(taken_over > 4);
  served.now_ms += LeaseTimes{}.over_ms();  // every lease of another coordinator is over
  served.say(fresh, served.joiner(9, job_terms(1, 1)));
  served.time(served.now_ms + 250);  // there was no event for long: there may be more to read
  REQUIRE(served.at(fresh).last<PrepareRound>() != nullptr);
  CHECK(served.at(fresh).session.welcome().incarnation == 1);  // no node knew a round of the earlier start
  CHECK(served.at(fresh).session.welcome().term == taken_over);
}

TEST_CASE("what happens to a coordinator is told to whoever records it, with its job and the time") {
  Served served;
  std::vector<std::string> lines;
  served.service.recorder = [&](const std::string& job, const Event& event, std::int64_t now_ms) {
    lines.push_back(job + " " + std::to_string(event.index()) + " " + std::to_string(now_ms));
  };
  served.now_ms = 70;
  const ConnectionId id = served.join("a", 1, job_terms(2, 2));
  served.keep_alive(id);
  served.gone(id);
  CHECK(lines == std::vector<std::string>{"a 0 70", "a 1 70", "a 2 70"});
}

TEST_CASE("a node that gives no address is known by where it comes from, one that gives one by that") {
  Served served;
  served.from = "10.0.0.7";
  NodeJoins nameless = served.joiner(1, job_terms(1, 1));
  nameless.address.clear();
  const ConnectionId first = served.greet({"a", 1});
  served.say(first, nameless);
  nameless.terms.max_nodes = 2;
  served.say(served.greet({"a", 2}), nameless);
  CHECK(served.logs.back().starts_with("10.0.0.7 was rejected"));
  served.join("a", 3, job_terms(1, 2));
  CHECK(served.logs.back().starts_with("node3 was rejected"));
}
