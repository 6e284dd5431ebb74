#include "cli/run/control_api.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rendezvous/protocol/proof.h"
#include "src/base/text.h"

using namespace elastic;
using coordinator::OperatorOrder;
using net::http::Method;
using net::http::Request;
using run::ControlApi;
using Kind = coordinator::OrderAnswered::Kind;

namespace {

constexpr const char* kHere = "127.0.0.1";
constexpr const char* kElsewhere = "10.0.0.9";

// A control API whose coordinator accepts everything, and remembers what was ordered.
struct Desk {
  explicit Desk(std::string secret = "")
      : desk(std::move(secret), [this] { return format("challenge{}", ++challenges); }) {
    desk.set_coordinator(
        [this](const std::string& wanted, OperatorOrder order) {
          ordered.emplace(wanted, std::move(order));
          return coordinator::OrderAnswered{kind, "it is done"};
        },
        [this](const std::string& wanted, ControlApi::Collected answered) {
          asked = wanted;
          collected = std::move(answered);
        });
  }
  net::http::Response ask(Request request, const char* from = kHere) {
    return std::get<net::http::Response>(desk.answer(request, {.from = from}, job, leads));
  }
  // The answer to a request for stacks, for which this text is collected.
  net::http::Response stacks(const Request& request, const std::string& text, const char* from = kElsewhere) {
    asked.reset();
    const auto reply = desk.answer(request, {.from = from}, job, leads);
    const auto* later = std::get_if<net::http::Later>(&reply);
    if (later == nullptr) return std::get<net::http::Response>(reply);
    net::http::Response answer = net::http::plain(200, "there is no answer");
    later->begin([&answer](net::http::Response given) { answer = std::move(given); });
    collected(kind, text);
    return answer;
  }
  // Sends an order as --drain and --stop do; returns its status.
  int order(const std::string& proof, const char* from = kHere, const std::string& query = "node=3") {
    ordered.reset();
    return ask(post("/drain", query, proof), from).status;
  }
  static Request post(const std::string& path, const std::string& query, const std::string& proof) {
    return {.method = Method::kPost, .path = path, .query = query, .target = path + "?" + query, .order = proof};
  }
  std::string challenge() { return std::string(trim(*ask({.path = "/challenge"}, kElsewhere).body)); }

  int challenges = 0;
  ControlApi::Job job;
  bool leads = true;
  Kind kind = Kind::kAccepted;
  std::optional<std::pair<std::string, OperatorOrder>> ordered;
  std::optional<std::string> asked;  // the job of which stacks were asked for
  ControlApi::Collected collected;
  ControlApi desk;
};

}  // namespace

TEST_CASE("an order reaches the coordinator as it was typed, with the address that it comes from") {
  Desk desk;
  const OperatorOrder drain{.node = "node a&b"};
  const std::string target = run::order_target(drain, "job 1");
  CHECK(target == "/drain?job=job%201&node=node%20a%26b");
  CHECK(desk.order("1", kHere, target.substr(target.find('?') + 1)) == 200);
  REQUIRE(desk.ordered);
  CHECK(desk.ordered->first == "job 1");
  CHECK(desk.ordered->second.kind == OperatorOrder::Kind::kDrain);
  CHECK(desk.ordered->second.node == "node a&b");
  CHECK(desk.ordered->second.from == kHere);
  const auto stopped = desk.ask(Desk::post(run::order_target({.kind = OperatorOrder::Kind::kStop}, ""), "", "1"));
  CHECK(stopped.status == 200);
  CHECK(*stopped.body == "it is done\n");
}

TEST_CASE("nothing but POST orders anything") {
  Desk desk;
  for (const Method method : {Method::kGet, Method::kHead}) {
    for (const char* path : {"/drain", "/stop"}) {
      const auto response =
          desk.ask({.method = method, .path = path, .query = "node=3", .target = "/drain?node=3", .order = "1"});
      CHECK(response.status == 405);
      CHECK(response.allow == "POST");
    }
  }
  CHECK(desk.ask({.method = Method::kPost, .path = "/challenge", .order = "1"}).status == 405);
  CHECK(!desk.ordered);
}

TEST_CASE("what a web page makes a browser of this host send is refused") {
  Desk desk;
  CHECK(desk.order("") == 403);  // a page cannot add the header without asking first, which nothing here answers
  CHECK(!desk.ordered);
  Request by_page = Desk::post("/stop", "", "1");
  by_page.origin = "http://rebound.example:29400";  // a page whose name leads to this host by now needs not ask
  CHECK(desk.ask(by_page).status == 403);
  CHECK(!desk.ordered);
}

TEST_CASE("without a token orders are taken from this host alone") {
  Desk desk;
  CHECK(desk.order("1", "::1") == 200);
  CHECK(desk.order("1", "::ffff:127.0.0.1") == 200);
  for (const char* from : {kElsewhere, "::ffff:10.0.0.9", ""}) {
    CHECK(desk.order("1", from) == 403);
    CHECK(!desk.ordered);
  }
}

TEST_CASE("with a token an order proves it, from wherever it comes, and nothing that was overheard orders again") {
  Desk desk("secret");
  const std::string target = "/drain?node=3";
  const std::string proof = protocol::order_proof("secret", desk.challenge(), target);
  for (const char* from : {kHere, kElsewhere}) {
    for (const std::string& wrong :
         {std::string("1"), proof.substr(1), proof + "0", std::string(64, '0'),
          protocol::order_proof("other", desk.challenge(), target), protocol::status_key("secret"),
          protocol::order_proof("secret", "challenge0", target),
          protocol::order_proof("secret", desk.challenge(), "/stop")}) {
      CHECK(desk.order(wrong, from) == 401);
      CHECK(!desk.ordered);
    }
  }
  CHECK(desk.order(proof, kElsewhere, "node=4") == 401);
  CHECK(desk.order(proof, kElsewhere) == 200);
  CHECK(desk.ordered);
  CHECK(desk.order(proof, kElsewhere) == 401);
  CHECK(!desk.ordered);
  CHECK(desk.order(protocol::order_proof("secret", desk.challenge(), target), kElsewhere) == 200);
}

TEST_CASE("an order that names no node, or that no coordinator here can carry out, is refused") {
  Desk desk;
  for (const std::string& query : {std::string(), std::string("node="), std::string("node=%20"),
                                   std::string("node=%zz"), "node=" + std::string(500, 'a')}) {
    CHECK(desk.order("1", kHere, query) == 400);
    CHECK(!desk.ordered);
  }
  desk.desk.set_coordinator({}, {});
  desk.desk.set_elsewhere([] { return std::string("host0:29400"); });
  const auto elsewhere = desk.ask(Desk::post("/stop", "", "1"));
  CHECK(elsewhere.status == 409);
  CHECK(elsewhere.body->contains("--status (this node looks for it at host0:29400)"));
}

TEST_CASE("the status of an answer says what became of the order") {
  for (const auto& [kind, status] : {std::pair{Kind::kAccepted, 200}, {Kind::kUnknown, 404}, {Kind::kRefused, 409}}) {
    Desk desk;
    desk.kind = kind;
    CHECK(desk.order("1") == status);
  }
}

namespace {

ControlApi::Job moved_to(const char* address) {
  return {.is = {.kind = status::Whereabouts::Kind::kElsewhere, .job = "night", .address = address, .port = 40123}};
}

}  // namespace

TEST_CASE("with a token an order is redirected to the coordinator that is elsewhere once it has proven the token") {
  Desk desk("secret");
  desk.job = moved_to("10.0.0.2");
  const std::string target = "/drain?node=3";
  CHECK(desk.ask(Desk::post("/drain", "node=3", "1"), kElsewhere).status == 401);
  const auto led =
      desk.ask(Desk::post("/drain", "node=3", protocol::order_proof("secret", desk.challenge(), target)), kElsewhere);
  CHECK(led.status == 307);
  CHECK(led.location == "http://10.0.0.2:40123/drain?node=3");
  CHECK(!desk.ordered);
}

TEST_CASE(
    "without a token an order is redirected to a coordinator on this host, and is told where one on another host is") {
  Desk desk;
  desk.job = moved_to("10.0.0.2");
  const auto refused = desk.ask(Desk::post("/stop", "", "1"));
  CHECK(refused.status == 409);
  CHECK(refused.body->contains("the job's coordinator is at 10.0.0.2:40123 now"));
  CHECK(refused.body->contains("run the command there with --status=127.0.0.1:40123, or give the job a token"));
  desk.job.is.is_on_this_host = true;
  CHECK(desk.ask(Desk::post("/stop", "", "1")).location == "http://127.0.0.1:40123/stop?");
  CHECK(desk.order("1", kElsewhere) == 403);
  CHECK(!desk.ordered);
}

TEST_CASE("a port of the node alone redirects no order, and says where the coordinator is") {
  Desk desk;
  desk.job = moved_to("10.0.0.2");
  desk.leads = false;
  const auto refused = desk.ask(Desk::post("/stop", "", "1"));
  CHECK(refused.status == 409);
  CHECK(refused.body->contains("--status (this node looks for it at 10.0.0.2:40123)"));
}

TEST_CASE("no order is taken for another job than the one that is meant while its coordinator is elsewhere") {
  Desk desk;
  desk.job = moved_to("10.0.0.2");
  desk.job.has_others = true;
  CHECK(desk.order("1") == 404);
  CHECK(!desk.ordered);
  CHECK(desk.order("1", kHere, "job=day&node=3") == 200);
  CHECK(desk.ordered);
  CHECK(desk.order("1", kHere, "job=night&node=3") == 409);
  desk.job.is.kind = status::Whereabouts::Kind::kUnknown;
  CHECK(desk.order("1", kHere, "job=night&node=3") == 503);
  CHECK(!desk.ordered);
}

TEST_CASE("stacks are told to who proves the job's token, and without a token on this host alone") {
  Desk none;
  Request wanted = Desk::post("/stacks", "job=night", "1");
  CHECK(none.stacks(wanted, "{}", kElsewhere).status == 403);
  CHECK(!none.asked);
  CHECK(none.stacks(wanted, "{}", kHere).status == 200);
  CHECK(none.asked == "night");
  Desk desk("secret");
  wanted.target = run::stacks_target("night");
  CHECK(wanted.target == "/stacks?job=night");
  CHECK(desk.stacks(wanted, "{}").status == 401);
  wanted.order = protocol::order_proof("secret", desk.challenge(), "/stop");
  CHECK(desk.stacks(wanted, "{}").status == 401);
  CHECK(!desk.asked);
  wanted.order = protocol::order_proof("secret", desk.challenge(), wanted.target);
  const auto told = desk.stacks(wanted, "{\"groups\":[]}");
  CHECK(told.status == 200);
  CHECK(told.content_type == "application/json");
  CHECK(*told.body == "{\"groups\":[]}");
  CHECK(desk.stacks(wanted, "{}").status == 401);  // it was overheard
}

TEST_CASE("nothing but a POST of elastic-run gets stacks, and why there are none is told") {
  Desk desk;
  for (const Method method : {Method::kGet, Method::kHead}) {
    CHECK(desk.stacks({.method = method, .path = "/stacks", .target = "/stacks", .order = "1"}, "{}").status == 405);
  }
  Request by_page = Desk::post("/stacks", "", "1");
  by_page.origin = "http://rebound.example:29400";
  CHECK(desk.stacks(by_page, "{}", kHere).status == 403);
  CHECK(desk.stacks(Desk::post("/stacks", "", ""), "{}", kHere).status == 403);
  CHECK(!desk.asked);
  desk.kind = Kind::kUnknown;
  const auto unknown = desk.stacks(Desk::post("/stacks", "", "1"), "the job has ended", kHere);
  CHECK(unknown.status == 404);
  CHECK(*unknown.body == "the job has ended\n");
  desk.desk.set_coordinator({}, {});
  const auto elsewhere = desk.stacks(Desk::post("/stacks", "", "1"), "{}", kHere);
  CHECK(elsewhere.status == 409);
  CHECK(elsewhere.body->contains("name its endpoint with --stacks"));
}
