#include "rendezvous/discovery/hosting.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace elastic::discovery;

namespace {

// A node of a cluster, job-0.train.example, with two interfaces.
HostingView node(std::string endpoint, std::vector<std::string> resolved = {}) {
  return {.endpoint_host = std::move(endpoint),
          .resolved = std::move(resolved),
          .resolve_error = {},
          .own_addresses = {"127.0.0.1", "::1", "10.0.0.5", "192.168.7.5", "fd00::5", "fe80::5"},
          .host_name = "job-0",
          .full_host_name = "job-0.train.example",
          .is_host = {},
          .node_rank = {}};
}

const EndpointOption kMasterAddr = {.name = "--master-addr", .takes_port = false};

HostingView with(HostingView view, std::optional<bool> is_host, std::optional<int> node_rank = {}) {
  view.is_host = is_host;
  view.node_rank = node_rank;
  return view;
}

HostingView of_rank(int rank, HostingView view) { return with(std::move(view), {}, rank); }

struct Row {
  HostingView view;
  Hosting hosting;
  std::string reason;
};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.view.endpoint_host);
    const HostingDecision decision = decide_hosting(row.view);
    CHECK(decision.hosting == row.hosting);
    CHECK(decision.reason == row.reason);
  }
}

}  // namespace

TEST_CASE("is_host decides, whatever else is true") {
  check({
      {with(node("elsewhere", {"10.0.0.9"}), true), Hosting::kHosts, "is_host=1 says so"},
      {with(node("elsewhere"), true, 3), Hosting::kHosts, "is_host=1 says so"},
      {with(node("localhost"), false), Hosting::kAsks, "is_host=0 says so"},
      {with(node("job-0", {"10.0.0.5"}), false, 0), Hosting::kAsks, "is_host=0 says so"},
  });
}

TEST_CASE("what stands for every node itself is hosted by every node") {
  for (const char* host :
       {"localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(host);
    const HostingDecision decision = decide_hosting(of_rank(3, node(host)));
    CHECK(decision.hosting == Hosting::kHosts);
    CHECK(decision.reason == std::string(host) + " means each node itself");
  }
  for (const char* host : {"0.0.0.0", "::"}) {
    CAPTURE(host);
    const HostingDecision decision = decide_hosting(of_rank(3, node(host, {host})));
    CHECK(decision.hosting == Hosting::kHosts);
    CHECK(decision.reason == std::string(host) + " means all addresses of each node");
  }
}

TEST_CASE("a name that only begins like a loopback address is looked up like any other") {
  check({{node("127.example", {"10.0.0.9"}), Hosting::kAsks,
          "127.example is 10.0.0.9, which no interface of this node has"},
         {node("localhost.example", {"10.0.0.9"}), Hosting::kAsks,
          "localhost.example is 10.0.0.9, which no interface of this node has"}});
}

TEST_CASE("the node whose name the endpoint is hosts, whatever the name stands for") {
  check({
      {node("job-0"), Hosting::kHosts, "job-0 is this host's name"},
      {node("JOB-0", {"10.96.0.1"}), Hosting::kHosts, "JOB-0 is this host's name"},
      {node("job-0.train.example."), Hosting::kHosts, "job-0.train.example. is this host's name"},
  });
}

TEST_CASE("the node that has the endpoint's address hosts, on any interface and in either family") {
  check({
      {node("10.0.0.5", {"10.0.0.5"}), Hosting::kHosts, "10.0.0.5, an address of this node"},
      {node("fd00::5", {"fd00::5"}), Hosting::kHosts, "fd00::5, an address of this node"},
      {node("::ffff:10.0.0.5", {"::ffff:10.0.0.5"}), Hosting::kHosts, "::ffff:10.0.0.5, an address of this node"},
      {node("fe80::5%eth0", {"fe80::5%eth0"}), Hosting::kHosts, "fe80::5%eth0, an address of this node"},
      {node("head", {"192.168.7.5"}), Hosting::kHosts, "head is 192.168.7.5, an address of this node"},
      {node("head", {"fd00::5", "10.0.0.5"}), Hosting::kHosts, "head is fd00::5, an address of this node"},
      {node("head", {"127.0.1.1"}), Hosting::kHosts, "head is 127.0.1.1, an address of this node"},
  });
}

TEST_CASE("a name of several nodes, of which all but one give way, is hosted here") {
  HostingView view = node("head", {"10.0.0.4", "10.0.0.5"});
  view.gives_way = true;
  const std::string both = "head is 10.0.0.5, an address of this node, and also 10.0.0.4";
  check({{view, Hosting::kHosts, both + ": the job's coordinator is on the one that begins it first"}});
}

TEST_CASE("a name of several nodes is hosted here, with a word on who else may think so") {
  check({{node("head", {"10.0.0.4", "10.0.0.5"}), Hosting::kHosts,
          "head is 10.0.0.5, an address of this node, and also 10.0.0.4, which this node does not have: if that is "
          "another "
          "node, give one of them is_host=1 and the others is_host=0"}});
}

TEST_CASE("a node that is not the endpoint asks") {
  HostingView unknown = node("head");
  unknown.resolve_error = "no such name";
  check({
      {node("10.0.0.50", {"10.0.0.50"}), Hosting::kAsks, "10.0.0.50, which no interface of this node has"},
      {node("head", {"10.0.0.9", "fd00::9"}), Hosting::kAsks, "head is 10.0.0.9, which no interface of this node has"},
      {node("head"), Hosting::kAsks, "head does not resolve yet"},
      {unknown, Hosting::kAsks, "head does not resolve yet (no such name)"},
      {node(""), Hosting::kAsks, " does not resolve yet"},
  });
}

TEST_CASE("a service's name is hosted by the host that it begins with, on trial where it stands for an address") {
  check({
      {node("job-0.svc"), Hosting::kHosts, "job-0.svc does not resolve yet, and its first part is this host's name"},
      {node("Job-0.svc", {"10.96.0.1"}), Hosting::kOffers,
       "Job-0.svc is 10.96.0.1, which no interface of this node has, but its first part is this host's name"},
      {node("job-00.svc", {"10.96.0.1"}), Hosting::kAsks,
       "job-00.svc is 10.96.0.1, which no interface of this node has"},
      {node("svc.job-0", {"10.96.0.1"}), Hosting::kAsks, "svc.job-0 is 10.96.0.1, which no interface of this node has"},
  });
}

TEST_CASE("a host whose name has its domain is found by the short one too") {
  HostingView view = node("job-0", {"10.96.0.1"});
  view.host_name = view.full_host_name;
  CHECK(decide_hosting(view).hosting == Hosting::kOffers);
  view.resolved.clear();
  CHECK(decide_hosting(view).hosting == Hosting::kHosts);
}

TEST_CASE("an address is no name: 10.0.0.1 on a host called 10 is somebody else's") {
  HostingView view = node("10.0.0.1", {"10.0.0.1"});
  view.host_name = "10";
  view.full_host_name = "10.train.example";
  CHECK(decide_hosting(view).hosting == Hosting::kAsks);
}

TEST_CASE("node rank 0 offers what may be reached through addresses that no interface has, the other ranks ask") {
  check({
      {of_rank(0, node("train-svc", {"10.96.0.1"})), Hosting::kOffers,
       "train-svc is 10.96.0.1, which no interface of this node has, but this node claims node rank 0"},
      {of_rank(0, node("train-svc")), Hosting::kOffers,
       "train-svc does not resolve yet, but this node claims node rank 0"},
      {of_rank(0, node("203.0.113.1", {"203.0.113.1"})), Hosting::kOffers,
       "203.0.113.1, which no interface of this node has, but this node claims node rank 0"},
      {of_rank(1, node("train-svc", {"10.96.0.1"})), Hosting::kAsks,
       "train-svc is 10.96.0.1, which no interface of this node has"},
  });
}

TEST_CASE("who has the endpoint's address hosts whatever rank it claims, and node rank 0 elsewhere never takes over") {
  CHECK(decide_hosting(of_rank(3, node("head", {"10.0.0.5"}))).hosting == Hosting::kHosts);
  CHECK(decide_hosting(of_rank(0, node("head", {"10.0.0.9"}))).hosting != Hosting::kHosts);
}

TEST_CASE("a host without a name owns no endpoint without a host") {
  HostingView view = node("");
  view.host_name = view.full_host_name = "";
  CHECK(decide_hosting(view).hosting == Hosting::kAsks);
}

TEST_CASE("who hosts tells what the others must be given") {
  const auto said = [](const HostingView& view, const EndpointOption& option = {"--rdzv-endpoint"}) {
    const EndpointAdvice advice = advice_of_host(view, 29400, option);
    CHECK_FALSE(advice.is_mistake);
    return advice.text;
  };
  CHECK(said(node("10.0.0.5", {"10.0.0.5"})) ==
        "this node hosts at 10.0.0.5:29400; the others must be given the same --rdzv-endpoint");
  CHECK(said(node("fd00::5", {"fd00::5"})) ==
        "this node hosts at [fd00::5]:29400; the others must be given the same --rdzv-endpoint");
  CHECK(said(node("job-0", {"127.0.1.1", "10.0.0.5"}), kMasterAddr) ==
        "this node hosts at job-0 (10.0.0.5:29400); the others must be given the same --master-addr");
  CHECK(said(node("jobs", {"10.0.0.9", "10.0.0.5"})).starts_with("this node hosts at jobs (10.0.0.5:29400); "));
  // Its own name, as Debian writes it into /etc/hosts: others may know it by its address.
  CHECK(said(node("JOB-0.train.example.", {"127.0.1.1"})) ==
        "this node hosts at JOB-0.train.example.:29400; the others must be given the same --rdzv-endpoint");
  CHECK(said(node("job-0")) == "this node hosts at job-0:29400; the others must be given the same --rdzv-endpoint");
  CHECK(said(with(node("service", {"10.0.0.9"}), true)) ==
        "this node hosts at port 29400, though service is 10.0.0.9, which no interface of this node has: the others "
        "must come here by --rdzv-endpoint=service");
}

TEST_CASE("of an endpoint that a batch system has given there is something to say only where it leads elsewhere") {
  CHECK(advice_of_host(with(node("job-0", {"10.0.0.5"}), true), 29400, {}).text.empty());
  CHECK(advice_of_host(with(node("localhost", {"127.0.0.1"}), true), 29400, {}).text.empty());
  CHECK(advice_of_host(with(node("job-0.x", {"10.0.0.9"}), true), 29400, {}).text ==
        "this node hosts at port 29400, though job-0.x is 10.0.0.9, which no interface of this node has: the others "
        "must come here by job-0.x");
}

TEST_CASE("an endpoint that leads each node to itself is told with what to give instead") {
  const auto said = [](const HostingView& view, const EndpointOption& option = {"--rdzv-endpoint"}) {
    const EndpointAdvice advice = advice_of_host(view, 29500, option);
    CHECK(advice.is_mistake);
    return advice.text;
  };
  for (const std::optional<bool> is_host : {std::optional<bool>(), std::optional(true)}) {
    CHECK(said(with(node("localhost", {"::1", "127.0.0.1"}), is_host)) ==
          "localhost leads each node to itself: those on other hosts that were given it, too, never come here. Give "
          "all nodes --rdzv-endpoint=job-0.train.example:29500, or another name of this host");
  }
  CHECK(said(node("0.0.0.0", {"0.0.0.0"})).starts_with("0.0.0.0 leads each node to itself"));
  CHECK(said(node("127.0.0.1"), kMasterAddr).contains("--master-addr=job-0.train.example,"));
  CHECK(said(node("trainer", {"127.0.1.1"})).starts_with("trainer is 127.0.1.1, which leads each node to itself"));
  HostingView short_name = node("localhost");
  short_name.full_host_name.clear();
  CHECK(said(short_name).contains("--rdzv-endpoint=job-0:29500"));
}

TEST_CASE("who looks for the host elsewhere is told why it is not here, or that it is meant to be elsewhere") {
  CHECK(why_elsewhere(node("node9", {"10.0.0.9"})) == "node9 is 10.0.0.9, which no interface of this node has");
  CHECK(why_elsewhere(with(node("10.0.0.9", {"10.0.0.9"}), false)) == "10.0.0.9, which no interface of this node has");
  CHECK(why_elsewhere(with(node("10.0.0.9", {"10.0.0.9"}), true)) == "10.0.0.9, which no interface of this node has");
  CHECK(why_elsewhere(with(node("job-0", {"10.0.0.5"}), false)) ==
        "job-0 is this host's name, and another node is to host");
  CHECK(why_elsewhere(node("job-0", {"10.0.0.5"})).empty());
  CHECK(why_elsewhere(node("node9")).empty());  // that it does not resolve is told by itself
}
