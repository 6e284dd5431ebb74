#include "cli/run/order_desk.h"

#include <utility>

#include "rendezvous/protocol/proof.h"
#include "src/base/address.h"
#include "src/base/text.h"
#include "src/net/http/query.h"

namespace elastic::run {

using coordinator::OperatorOrder;
using coordinator::OrderAnswered;
using net::http::plain;
using net::http::Response;

namespace {

constexpr const char* kNotHere = "the job's coordinator is not in this process; name its endpoint with --status";
constexpr std::size_t kMostNode = 400;  // bytes of a node's name; a longer one is nobody's

int status_of(OrderAnswered::Kind kind) {
  switch (kind) {
    case OrderAnswered::Kind::kAccepted: return 200;
    case OrderAnswered::Kind::kUnknown: return 404;
    case OrderAnswered::Kind::kRefused: return 409;
    case OrderAnswered::Kind::kNotNow: return 503;
  }
  return 503;
}

Response wrong_method(std::string_view allowed, std::string_view line) {
  Response response = plain(405, line);
  response.allow = allowed;
  return response;
}

}  // namespace

std::string order_target(const OperatorOrder& order, const std::string& job) {
  const bool drains = order.kind == OperatorOrder::Kind::kDrain;
  std::string query = job.empty() ? "" : format("job={}", net::http::percent_encoded(job));
  if (drains) query += format("{}node={}", query.empty() ? "" : "&", net::http::percent_encoded(order.node));
  return format("{}{}{}", drains ? kDrainPath : kStopPath, query.empty() ? "" : "?", query);
}

OrderDesk::OrderDesk(std::string secret, std::function<std::string()> challenge)
    : secret_(std::move(secret)), new_challenge_(std::move(challenge)), challenge_(new_challenge_()) {}

bool OrderDesk::serves(std::string_view path) {
  return path == kChallengePath || path == kDrainPath || path == kStopPath;
}

std::optional<Response> OrderDesk::lead(const net::http::Request& request, const std::string& wanted,
                                        const status::Caller& caller, const Job& job, bool leads) const {
  switch (status::lead_of(job.is, wanted, job.has_others)) {
    case status::Lead::kNotYet: return plain(503, status::not_yet(job.is));
    case status::Lead::kRedirect: {
      const std::string place = status::place_for(job.is, caller);
      if (!leads) return plain(409, format("{} (this node looks for it at {})", kNotHere, place));
      if (secret_.empty() && !is_loopback(status::address_for(job.is, caller))) {
        return plain(409, format("the job's coordinator is at {} now, and takes orders from its own host only, since "
                                 "the job has no token; run the command there with --status={}:{}, or give the job a "
                                 "token (ELASTIC_RUN_TOKEN, or token_file in --rdzv-conf)",
                                 place, kLoopback, job.is.port));
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

Response OrderDesk::answer(const net::http::Request& request, const status::Caller& caller, const Job& job,
                           bool leads) {
  using Method = net::http::Method;
  if (request.path == kChallengePath) {
    if (request.method == Method::kPost) return wrong_method("GET, HEAD", "a challenge is read with GET");
    return plain(200, challenge_);
  }
  if (request.method != Method::kPost) {
    return wrong_method("POST", "an order is sent with POST; elastic-run --drain=NODE --status=HOST:PORT does so");
  }
  if (!request.origin.empty() || request.order.empty()) {
    return plain(403,
                 "an order needs the header Elastic-Run-Order, and no web page may send one; use elastic-run "
                 "--drain=NODE or --stop with --status=HOST:PORT");
  }
  if (secret_.empty() && !is_loopback(caller.from)) {
    return plain(403,
                 "the job has no token, so that orders are taken from this host only; run the command here with "
                 "--status=127.0.0.1:PORT, or give the job a token (ELASTIC_RUN_TOKEN, or token_file in "
                 "--rdzv-conf)");
  }
  if (!secret_.empty()) {
    if (!protocol::proves_order(request.order, secret_, challenge_, request.target)) {
      return plain(401,
                   "the order does not prove the job's token; set ELASTIC_RUN_TOKEN, or give "
                   "--rdzv-conf=token_file=FILE, as the job's nodes do");
    }
    challenge_ = new_challenge_();
  }
  const std::string wanted = net::http::query_value(request.query, "job").value_or("");
  if (auto led = lead(request, wanted, caller, job, leads)) return *std::move(led);
  if (!carry_out_) {
    const std::string where = elsewhere_ ? elsewhere_() : "";
    return plain(409, format("{}{}", kNotHere,
                             where.empty() ? "" : format(" (this node looks for it at {})", printable(where))));
  }
  OperatorOrder order{.kind = request.path == kStopPath ? OperatorOrder::Kind::kStop : OperatorOrder::Kind::kDrain,
                      .from = caller.from};
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
