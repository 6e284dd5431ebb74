#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rendezvous/coordinator/coordinator_events.h"
#include "src/net/http/reader.h"
#include "src/net/http/response.h"

namespace elastic::run {

// Where operators' orders are taken by HTTP, and what a request for one has to be; docs/status.md describes them.
inline constexpr std::string_view kChallengePath = "/challenge";
inline constexpr std::string_view kDrainPath = "/drain";
inline constexpr std::string_view kStopPath = "/stop";
// The target of a request for an order. `job` may be empty: the only one.
std::string order_target(const coordinator::OperatorOrder& order, const std::string& job);

// Takes operators' orders by HTTP: says who may order, and hands what they order to the coordinator of this process.
// If the job has a secret, an order has to prove it for the challenge of the moment, which each order uses up: an order
// that was overheard cannot be sent again. Without a secret orders are taken from this host. What a web page makes a
// browser send is refused.
class OrderDesk {
 public:
  // Carries out an order in a job; an empty name is that of the only one.
  using CarryOut = std::function<coordinator::OrderAnswered(const std::string& job, coordinator::OperatorOrder order)>;

  // `challenge` returns a text that nobody can guess, another one each time.
  OrderDesk(std::string secret, std::function<std::string()> challenge);

  // What carries orders out; empty: the coordinator is in another process, which `elsewhere` names as a clause.
  void set_coordinator(CarryOut carry_out) { carry_out_ = std::move(carry_out); }
  void set_elsewhere(std::function<std::string()> elsewhere) { elsewhere_ = std::move(elsewhere); }

  static bool serves(std::string_view path);
  // `peer_address` is the client's; empty: not known.
  net::http::Response answer(const net::http::Request& request, const std::string& peer_address);

 private:
  std::string secret_;
  std::function<std::string()> new_challenge_;
  std::string challenge_;
  CarryOut carry_out_;
  std::function<std::string()> elsewhere_;
};

}  // namespace elastic::run
