#include "rendezvous/coordinator/coordinator_notes.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/coordinator/coordinator_refusals.h"
#include "src/base/text.h"

namespace elastic::coordinator {
namespace {

Json about(std::optional<int> node_rank, const std::string& host) {
  return Json::object()
      .set("of_node", node_rank ? Json(*node_rank) : Json())
      .set("of_host", host.empty() ? Json() : Json(host));
}

Json about(const membership::Node& node) {
  return about(node.slot ? std::optional(node.place.node_rank) : std::nullopt, node.address);
}

// The value that the nodes were given: that no other node can be reached was found out later.
std::string_view name_of(protocol::JobRules::Failover value) {
  return value == protocol::JobRules::Failover::kOff ? "off" : "majority";
}

std::string_view name_of(protocol::JobRules::OnLeave value) {
  using OnLeave = protocol::JobRules::OnLeave;
  return value == OnLeave::kEnd ? "end" : value == OnLeave::kWait ? "wait" : "handover";
}

std::string_view name_of(protocol::JobRules::Evidence value) {
  return value == protocol::JobRules::Evidence::kNone ? "none" : "refusal";
}

}  // namespace

Note node_is_lost(const membership::Node& node, const std::string& how) {
  return {format("{} was lost: {}", node.name(), how), kNodeLost, about(node).set("reason", how)};
}

Note node_is_missed(int node_rank, const std::string& how) {
  return {format("node {} was lost: {}", node_rank, how), kNodeLost, about(node_rank, "").set("reason", how)};
}

Note node_is_unhealthy(const membership::Node& node, std::string text, const std::string& why) {
  return {std::move(text), kNodeUnhealthy, about(node).set("reason", why)};
}

Note node_is_quarantined(const membership::Node& node, std::int64_t for_ms) {
  return {format("{} is kept out for {} s: {}", node.name(), for_ms / 1000, kLostTooOften), kNodeQuarantined,
          about({}, node.address).set("reason", kLostTooOften).set("milliseconds", for_ms)};
}

Note operator_has_ordered(const OperatorOrder& order, const OrderAnswered& answer) {
  const bool drains = order.kind == OperatorOrder::Kind::kDrain;
  const bool is_accepted = answer.kind == OrderAnswered::Kind::kAccepted;
  return {
      format("an operator{} has ordered {}: {}{}", order.from.empty() ? "" : format(" at {}", printable(order.from)),
             drains ? format("node {} to leave", printable(order.node)) : "the job to stop",
             is_accepted ? "" : "refused: ", answer.text),
      kOperatorOrder,
      Json::object()
          .set("order", drains ? "drain" : "stop")
          .set("wanted", drains ? Json(order.node) : Json())
          .set("from", order.from.empty() ? Json() : Json(order.from))
          .set("accepted", is_accepted)};
}

Note job_has_ended(const protocol::JobResult& job_result) {
  const std::string_view how = job_result.outcome == Outcome::kStopped ? "been stopped" : name_of(job_result.outcome);
  return {
      format("the job has {}{}", how, job_result.reason.empty() ? "" : format(": {}", job_result.reason)), kJobEnds,
      Json::object()
          .set("outcome", name_of(job_result.outcome))
          .set("round", std::int64_t{job_result.round})
          .set("restarts_used", job_result.restarts_used)
          .set("reason", job_result.reason.empty() && !job_result.failures.empty() ? job_result.failures.front().text()
                                                                                   : job_result.reason)};
}

namespace {

// The value of --hang.
std::string_view hang_of(const protocol::JobRules& rules) {
  if (rules.restarts_hangs()) return "restart";
  return names_of(rules.hang)[static_cast<std::size_t>(rules.hang)];
}

std::string span_text(const std::optional<std::int64_t>& ms) { return ms ? format("{} s", *ms / 1000) : "none"; }

// The flags about hangs in which a node differs from the job's first one.
std::vector<std::string> hang_flags_that_differ(const protocol::JobRules& its, const protocol::JobRules& ours) {
  std::vector<std::string> out;
  if (hang_of(its) != hang_of(ours)) out.push_back(format("--hang={}, not {}", hang_of(ours), hang_of(its)));
  // If one of them looks for no hangs, the times mean nothing.
  if (!out.empty() || ours.hang == protocol::JobRules::Hang::kOff) return out;
  const auto compare = [&](const char* flag, const auto& mine, const auto& first) {
    if (mine != first) out.push_back(format("{} {}, not {}", flag, span_text(first), span_text(mine)));
  };
  compare("--hang-timeout", its.hang_timeout_ms, ours.hang_timeout_ms);
  compare("--hang-first-timeout", its.hang_first_timeout_ms, ours.hang_first_timeout_ms);
  if (its.hang_sections != ours.hang_sections) {
    out.push_back(format("limits of --progress-sections {}, not {}", hang::text_of(ours.hang_sections),
                         hang::text_of(its.hang_sections)));
  }
  if (ours.restarts_hangs() && its.hang_restarts != ours.hang_restarts)
    out.push_back(format("hang_restarts={}, not {}", *ours.hang_restarts, *its.hang_restarts));
  return out;
}

}  // namespace

std::optional<Note> hang_rules_that_differ(const protocol::NodeJoins& node, const protocol::JobRules& rules) {
  const std::vector<std::string> differences = hang_flags_that_differ(node.rules, rules);
  if (differences.empty()) return {};
  return Note{format("{} was started with other flags about hangs than the job's first node, whose values hold: {}",
                     printable(node.address), elastic::join(differences, "; ")),
              kRulesDiffer};
}

std::optional<Note> rules_that_differ(const protocol::NodeJoins& node, const protocol::JobRules& rules) {
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view key, auto its, auto ours) {
    if (name_of(its) != name_of(ours)) differences.push_back(format("{}={}, not {}", key, name_of(ours), name_of(its)));
  };
  compare("failover", node.rules.failover, rules.failover);
  compare("failover_evidence", node.rules.failover_evidence, rules.failover_evidence);
  compare("on_leave", node.rules.on_leave, rules.on_leave);
  if (differences.empty()) return {};
  return Note{format("{} was started with other values of --rdzv-conf than the job's first node, whose values hold: {}",
                     printable(node.address), elastic::join(differences, "; ")),
              kRulesDiffer};
}

}  // namespace elastic::coordinator
