#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cli/run/control_api.h"
#include "health/report/health_report.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/base/result.h"
#include "src/net/http_server.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"
#include "src/status/lead.h"
#include "src/status/snapshot.h"
#include "src/status/viewer.h"

namespace elastic::run {

// Serves /healthz, /readyz, /status and /metrics of this process by HTTP, and takes operators' orders (ControlApi): on
// connections that the coordinator's port has accepted, and on a port of its own. A page is made anew at most every 100
// ms, and so seldom that making it takes at most a twentieth of the time; requests in between get the same text.
class StatusHost {
 public:
  // Clients that prove the job's `secret`, or without one those of this host, may see names and texts, and order;
  // others see counts and states. `is_open`: all may see all.
  StatusHost(net::Loop& loop, const std::string& secret, bool is_open);

  // Sets the function that describes this node, before the first request is answered. What it uses must live until it
  // is replaced.
  void set_node(std::function<status::Node()> node) { node_ = std::move(node); }
  // Sets the function that says where the coordinator of this node's job is, in the same way.
  void set_whereabouts(std::function<status::Whereabouts()> whereabouts) { whereabouts_ = std::move(whereabouts); }
  // The coordinator in this process, which must live until it is replaced; null: it is in another process.
  void set_coordinator(transport::CoordinatorServer* coordinator);
  void checked(const std::string& job, const health::HealthReport& report);

  // Serves also a port of all addresses; 0: a free one. Returns the port. Fails where it cannot be opened, and names
  // the process that has it, if that is known.
  Result<std::uint16_t> listen(std::uint16_t port);
  // Serves a connection that the coordinator's port, or this node's peer port, has accepted, and of which these bytes
  // have been read. Requests there for a coordinator that is elsewhere are led to it.
  void adopt(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes);

 private:
  struct Made {
    net::http::Response response;
    std::int64_t until_ms = 0;
  };
  struct Checks {
    std::int64_t count = 0;
    status::Check last;
  };
  net::http::Reply answer(const net::http::Request& request, const status::Caller& caller, bool leads);
  // The answer to a request for a page of a coordinator that is elsewhere; not set: the page is here.
  std::optional<net::http::Response> lead(const net::http::Request& request, const status::Caller& caller) const;
  ControlApi::Job job() const;
  net::http::Response page(status::Page page, status::View view) const;
  status::Snapshot snapshot(status::View view) const;
  status::Snapshot full_snapshot() const;

  net::Loop& loop_;
  status::AccessRules access_;
  std::int64_t began_ms_;
  std::function<status::Node()> node_;
  std::function<status::Whereabouts()> whereabouts_;
  transport::CoordinatorServer* coordinator_ = nullptr;
  ControlApi desk_;
  std::map<std::string, Checks> checks_;  // by job
  std::map<std::pair<status::Page, status::View>, Made> made_;
  net::HttpServer server_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace elastic::run
