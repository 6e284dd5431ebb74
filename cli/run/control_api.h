#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/coordinator/coordinator_events.h"
#include "src/net/http/reader.h"
#include "src/net/http/response.h"
#include "src/status/lead.h"

namespace elastic::run {

// Where operators' orders are taken by HTTP, and what a request for one has to be; docs/observing.md describes them.
inline constexpr std::string_view kChallengePath = "/challenge";
inline constexpr std::string_view kDrainPath = "/drain";
inline constexpr std::string_view kStopPath = "/stop";
// Where the stacks of a job's workers are asked for, as an order is given.
inline constexpr std::string_view kStacksPath = "/stacks";
// The target of a request for an order. `job` may be empty: the only one.
std::string order_target(const coordinator::OperatorOrder& order, const std::string& job);
std::string stacks_target(const std::string& job);

// Takes operators' orders by HTTP, and their requests for stacks: decides who may send them, and passes them to the
// coordinator of this process. If the job has a secret, an order has to prove it for the challenge of the moment, which
// each order uses up: an order that was overheard cannot be sent again. Without a secret orders are taken from this
// host. What a web page makes a browser send is refused.
class ControlApi {
 public:
  // Carries out an order in a job; an empty name is that of the only one.
  using CarryOut = std::function<coordinator::OrderAnswered(const std::string& job, coordinator::OperatorOrder order)>;
  // Collects the stacks of a job; `answered` gets them, as JSON, or why there are none, at once or later.
  using Collected = std::function<void(coordinator::OrderAnswered::Kind kind, const std::string& text)>;
  using CollectStacks = std::function<void(const std::string& job, Collected answered)>;

  // `challenge` returns a text that nobody can guess, another one each time.
  ControlApi(std::string secret, std::function<std::string()> challenge);

  // What carries orders out; empty: the coordinator is in another process, which `elsewhere` names as a clause.
  void set_coordinator(CarryOut carry_out, CollectStacks collect_stacks) {
    carry_out_ = std::move(carry_out);
    collect_stacks_ = std::move(collect_stacks);
  }
  void set_elsewhere(std::function<std::string()> elsewhere) { elsewhere_ = std::move(elsewhere); }

  // What the node knows of the coordinator of its job.
  struct Job {
    status::Whereabouts is;
    bool has_others = false;  // coordinators of other jobs are in this process
  };

  static bool serves(std::string_view path);
  // `leads`: requests at this port for a coordinator that is elsewhere are led there.
  net::http::Reply answer(const net::http::Request& request, const status::Caller& caller, const Job& job, bool leads);

 private:
  // Why the caller may not send it; not set: they may. The challenge is used up.
  std::optional<net::http::Response> refuse(const net::http::Request& request, const status::Caller& caller);
  net::http::Reply carry_out(const net::http::Request& request, const std::string& wanted, const std::string& from);
  // The answer to an order that is not for a coordinator in this process; not set: it is for one.
  std::optional<net::http::Response> lead(const net::http::Request& request, const std::string& wanted,
                                          const status::Caller& caller, const Job& job, bool leads) const;

  std::string secret_;
  std::function<std::string()> new_challenge_;
  std::string challenge_;
  CarryOut carry_out_;
  CollectStacks collect_stacks_;
  std::function<std::string()> elsewhere_;
};

}  // namespace elastic::run
