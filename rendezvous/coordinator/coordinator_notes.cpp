#include "rendezvous/coordinator/coordinator_notes.h"

#include <optional>

#include "src/base/text.h"

namespace elastic::coordinator {
namespace {

using Outcome = protocol::Verdict::Outcome;

Json about(std::optional<int> node_rank, const std::string& host) {
  return Json::object()
      .set("of_node", node_rank ? Json(*node_rank) : Json())
      .set("of_host", host.empty() ? Json() : Json(host));
}

Json about(const membership::Node& node) {
  return about(node.seat ? std::optional(node.place.node_rank) : std::nullopt, node.address);
}

const char* outcome_name(Outcome outcome) {
  if (outcome == Outcome::kSucceeded) return "succeeded";
  return outcome == Outcome::kFailed ? "failed" : "stopped";
}

}  // namespace

Note node_is_lost(const membership::Node& node, const std::string& how) {
  return {format("{} is lost: {}", node.name(), how), kNodeLost, about(node).set("reason", how)};
}

Note node_is_missed(int node_rank, const std::string& how) {
  return {format("node {} is lost: {}", node_rank, how), kNodeLost, about(node_rank, "").set("reason", how)};
}

Note node_is_unfit(const membership::Node& node, std::string text, const std::string& why) {
  return {std::move(text), kNodeUnfit, about(node).set("reason", why)};
}

Note node_is_kept_out(const std::string& name, const std::string& host, std::int64_t for_ms) {
  const std::string why = "it was lost too often";
  return {format("{} is kept out for {} s: {}", name, for_ms / 1000, why), kNodeKeptOut,
          about({}, host).set("reason", why).set("milliseconds", for_ms)};
}

Note job_has_ended(const protocol::Verdict& verdict) {
  const char* const how = verdict.outcome == Outcome::kStopped ? "been stopped" : outcome_name(verdict.outcome);
  return {format("the job has {}{}", how, verdict.reason.empty() ? "" : format(": {}", verdict.reason)), kJobEnds,
          Json::object()
              .set("outcome", outcome_name(verdict.outcome))
              .set("round", std::int64_t{verdict.round})
              .set("restarts_used", verdict.restarts_used)
              .set("reason", verdict.reason.empty() && !verdict.failures.empty() ? verdict.failures.front().text()
                                                                                 : verdict.reason)};
}

}  // namespace elastic::coordinator
