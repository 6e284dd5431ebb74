#include "cli/run/control_api.h"

#include <memory>
#include <utility>

#include "rendezvous/protocol/proof.h"
#include "src/base/address.h"
#include "src/base/text.h"
#include "src/net/http/query.h"
#include "src/status/status_json.h"

namespace elastic::run {

using coordinator::OperatorOrder;
using coordinator::OrderAnswered;
using net::http::plain;
using net::http::Response;

namespace {

constexpr std::size_t kMostNode = 400;  // bytes of a node's name; a longer one is nobody's

int status_of(OrderAnswered::Kind kind) {
  switch (kind) {
    case OrderAnswered::Kind::kAccepted: return 200;
    case OrderAnswered::Kind::kUnknown: return 404;
    case OrderAnswered::Kind::kRefused: return 409;
  }
  return 503;
}

Response wrong_method(std::string_view allowed, std::string_view line) {
  Response response = plain(405, line);
  response.allow = allowed;
  return response;
}

// The option that names the endpoint, for the sender of the request.
std::string_view option_of(const net::http::Request& request) {
  return request.path == kStacksPath ? "--stacks" : "--status";
}

std::string not_here(const net::http::Request& request, const std::string& where) {
  return format("the job's coordinator is not in this process; name its endpoint with {}{}", option_of(request),
                where.empty() ? "" : format(" (this node looks for it at {})", where));
}

}  // namespace

std::string order_target(const OperatorOrder& order, const std::string& job) {
  const bool drains = order.kind == OperatorOrder::Kind::kDrain;
  std::string query = job.empty() ? "" : format("job={}", net::http::percent_encoded(job));
  if (drains) query += format("{}node={}", query.empty() ? "" : "&", net::http::percent_encoded(order.node));
  return format("{}{}{}", drains ? kDrainPath : kStopPath, query.empty() ? "" : "?", query);
}

std::string stacks_target(const std::string& job) {
  return format("{}{}", kStacksPath, job.empty() ? "" : format("?job={}", net::http::percent_encoded(job)));
}

ControlApi::ControlApi(std::string secret, std::function<std::string()> challenge)
    : secret_(std::move(secret)), new_challenge_(std::move(challenge)), challenge_(new_challenge_()) {}

bool ControlApi::serves(std::string_view path) {
  return path == kChallengePath || path == kDrainPath || path == kStopPath || path == kStacksPath;
}

std::optional<Response> ControlApi::lead(const net::http::Request& request, const std::string& wanted,
                                         const status::Caller& caller, const Job& job, bool leads) const {
  switch (status::lead_of(job.is, wanted, job.has_others)) {
    case status::Lead::kNotYet: return plain(503, status::not_yet(job.is));
    case status::Lead::kRedirect: {
      const std::string place = status::place_for(job.is, caller);
      if (!leads) return plain(409, not_here(request, place));
      if (secret_.empty() && !is_loopback(status::address_for(job.is, caller))) {
        return plain(409, format("the job's coordinator is at {} now, and takes orders from its own host only, since "
                                 "the job has no token; run the command there with {}={}:{}, or give the job a "
                                 "token (ELASTIC_RUN_TOKEN, or token_file in --rdzv-conf)",
                                 place, option_of(request), kLoopback, job.is.port));
      }
      return net::http::redirect(status::url_of(place, request.target),
                                 format("the job's coordinator is at {}", place));
    }
    case status::Lead::kServe: break;
  }
  // The only job that is here need not be the one that is meant.
  if (wanted.empty() && job.is.kind != status::Whereabouts::Kind::kHere) {
    return plain(404, format("the coordinator of job {} is not here any more, and those of others are; name the job "
                             "with --rdzv-id",
                             printable(job.is.job)));
  }
  return {};
}

net::http::Reply ControlApi::answer(const net::http::Request& request, const status::Caller& caller, const Job& job,
                                    bool leads) {
  using Method = net::http::Method;
  if (request.path == kChallengePath) {
    if (request.method == Method::kPost) return wrong_method("GET, HEAD", "a challenge is read with GET");
    return plain(200, challenge_);
  }
  if (request.method != Method::kPost) {
    return wrong_method("POST",
                        request.path == kStacksPath
                            ? "stacks are asked for with POST; elastic-run --stacks=HOST:PORT does so"
                            : "an order is sent with POST; elastic-run --drain=NODE --status=HOST:PORT does so");
  }
  if (auto refused = refuse(request, caller)) return *std::move(refused);
  const std::string wanted = net::http::query_value(request.query, "job").value_or("");
  if (auto led = lead(request, wanted, caller, job, leads)) return *std::move(led);
  if (!carry_out_) return plain(409, not_here(request, printable(elsewhere_ ? elsewhere_() : "")));
  return carry_out(request, wanted, caller.from);
}

std::optional<Response> ControlApi::refuse(const net::http::Request& request, const status::Caller& caller) {
  if (!request.origin.empty() || request.order.empty()) {
    return plain(403,
                 "an order needs the header Elastic-Run-Order, and no web page may send one; use elastic-run "
                 "--drain=NODE or --stop with --status=HOST:PORT, or --stacks=HOST:PORT");
  }
  if (secret_.empty() && !is_loopback(caller.from)) {
    return plain(403, format("the job has no token, so that orders are taken from this host only; run the command here "
                             "with {}=127.0.0.1:PORT, or give the job a token (ELASTIC_RUN_TOKEN, or token_file in "
                             "--rdzv-conf)",
                             option_of(request)));
  }
  if (secret_.empty()) return {};
  if (!protocol::proves_order(request.order, secret_, challenge_, request.target)) {
    return plain(401,
                 "the order does not prove the job's token; set ELASTIC_RUN_TOKEN, or give "
                 "--rdzv-conf=token_file=FILE, as the job's nodes do");
  }
  challenge_ = new_challenge_();
  return {};
}

net::http::Reply ControlApi::carry_out(const net::http::Request& request, const std::string& wanted,
                                       const std::string& from) {
  if (request.path == kStacksPath) {
    return net::http::Later{[collect = collect_stacks_, wanted](std::function<void(Response)> answered) {
      collect(wanted, [answered = std::move(answered)](OrderAnswered::Kind kind, const std::string& text) {
        if (kind != OrderAnswered::Kind::kAccepted) return answered(plain(status_of(kind), text));
        answered({.content_type = status::kJsonType, .body = std::make_shared<const std::string>(text)});
      });
    }};
  }
  OperatorOrder order{.kind = request.path == kStopPath ? OperatorOrder::Kind::kStop : OperatorOrder::Kind::kDrain,
                      .from = from};
  const auto node = net::http::query_value(request.query, "node");
  if (order.kind == OperatorOrder::Kind::kDrain) {
    if (!node || trim(*node).empty() || node->size() > kMostNode) {
      return plain(400, "the query has to name the node: /drain?node=NODE, with its rank, name or address");
    }
    order.node = *node;
  }
  const OrderAnswered answered = carry_out_(wanted, std::move(order));
  return plain(status_of(answered.kind), answered.text);
}

}  // namespace elastic::run
