#include "tests/simulation/describe.h"

#include "src/base/overloaded.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::simulation {

using namespace protocol;

namespace {

const char* name(AgentFacts::Activity activity) {
  const char* const names[] = {"idle", "preparing", "running", "succeeded", "stopping"};
  return names[static_cast<std::size_t>(activity)];
}

std::string facts_text(const AgentFacts& facts) {
  if (facts.incarnation == 0) return "knows of no round";
  return format("incarnation {:x}, term {}, round {} as node {} of {}, {}, membership {:x}, {} restarts{}{}{}",
                facts.incarnation, facts.term, facts.round, facts.place.node_rank, facts.place.node_count,
                name(facts.activity), facts.membership, facts.restart_count,
                facts.failures.empty() ? "" : format(", {} failures", facts.failures.size()),
                facts.false_alarm ? format(", a false alarm of rank {}", *facts.false_alarm) : "",
                facts.job_result ? format(", verdict: {}", simulation::text(*facts.job_result)) : "");
}

std::string life(const agent::Event& event) {
  return std::visit(
      Overloaded{
          [](const agent::Begin&) { return std::string("begin"); },
          [](const agent::WorkerExited& e) { return format("worker {} {}", e.local_rank, e.exit.text()); },
          [](const agent::AllGone&) { return std::string("all workers are gone"); },
          [](const agent::TimerFired&) { return std::string("the timer"); },
          [](const agent::SignalReceived& e) { return signal_name(e.signal); },
          [](const agent::GuardianLost&) { return std::string("the guardian is lost"); },
          [](const agent::NodeChecked& e) { return format("checked, phase {}: {}", e.phase, e.result); },
          [](const agent::CrashFound& e) {
            return e.crash ? format("found crash {}", e.crash->digest) : "found no crash";
          },
          [](const agent::ProgressMade&) { return std::string("its workers make progress"); },
          [](const agent::DetailsGathered& e) { return format("has gathered: {}", e.text); },
          [](const agent::StoreOpened& e) { return format("its store is at port {}", e.endpoint.port); },
          [](const auto&) { return std::string(); },
      },
      event);
}

}  // namespace

std::string text(const JobResult& job_result) {
  const char* const outcomes[] = {"succeeded", "failed", "stopped"};
  std::string reason = job_result.reason;
  if (reason.empty() && !job_result.failures.empty()) reason = job_result.failures.front().text();
  return format("{} in round {} after {} restarts{}", outcomes[static_cast<std::size_t>(job_result.outcome)],
                job_result.round, job_result.restarts_used, reason.empty() ? "" : format(": {}", reason));
}

std::string text(const agent::AgentEvent& event) {
  return std::visit(Overloaded{
                        [](const agent::Event& e) { return life(e); },
                        [](const agent::LinkConnected&) { return std::string("connected"); },
                        [](const agent::LinkBroken& e) { return format("no connection: {}", e.why); },
                        [](const auto&) { return std::string(); },
                    },
                    event);
}

std::string text(const agent::Effect& effect) {
  return std::visit(Overloaded{
                        [](const agent::StartWorkers& e) {
                          return format("starts the workers of round {}, ranks from {} of {}, membership {:x}",
                                        e.round.round, e.round.place.base_rank, e.round.place.world_size,
                                        e.round.membership);
                        },
                        [](const agent::SignalWorkers& e) {
                          return format("{} to {}{}", signal_name(e.signal),
                                        e.only ? format("local rank {}", *e.only) : std::string("the workers"),
                                        e.spared ? format(" but local rank {}", *e.spared) : std::string());
                        },
                        [](const agent::Warn& e) { return format("warns: {}", e.text); },
                        [](const agent::FindCrash&) { return std::string("looks for a crash"); },
                        [](const agent::GatherDetails&) { return std::string("gathers details"); },
                        [](const auto&) { return std::string(); },
                    },
                    effect);
}

std::string text(const AgentMessage& message) {
  return std::visit(
      Overloaded{
          [](const NodeJoins& m) { return format("NodeJoins: agent {:x}, {}", m.agent, facts_text(m.facts)); },
          [](const CheckDone& m) { return format("CheckDone: round {}, phase {}, {}", m.round, m.phase, m.result); },
          [](const StoreIsOpen& m) { return format("StoreIsOpen: round {}", m.round); },
          [](const WorkerFailed& m) {
            if (m.is_uncertain) return format("WorkerFailed: round {}, perhaps rank {}", m.round, m.failure.rank);
            return format("WorkerFailed: round {}, {}", m.round, m.failure.text());
          },
          [](const WorkersSucceeded& m) { return format("WorkersSucceeded: round {}", m.round); },
          [](const NodeCannotRun& m) { return format("NodeCannotRun: round {}: {}", m.round, m.reason); },
          [](const NodeStopped& m) {
            return format("NodeStopped: round {}, {} failures{}", m.round, m.failures.size(),
                          m.false_alarm ? format(", a false alarm of rank {}", *m.false_alarm) : std::string());
          },
          [](const NodeLeaves& m) { return format("NodeLeaves: signal {}{}", m.signal, m.ordered ? ", ordered" : ""); },
          [](const JobResultHeard& m) { return format("VerdictHeard: {}", m.details); },
          [](const RoundHeard& m) { return format("RoundHeard: round {}", m.round); },
          [](const NodeProgress& m) { return format("NodeProgress: round {}, {} speakers", m.round, m.speakers); },
          [](const NodeStacks& m) { return format("NodeStacks: collection {}", m.collection); },
          [](const HangSigns& m) { return format("HangSigns: round {}{}", m.round, m.disks_move ? ", disks" : ""); },
          [](const NodeEvidence& m) {
            return format("NodeEvidence: round {}, collection {}, {} bytes", m.round, m.collection, m.facts.size());
          },
          [](const LoaderSays& m) { return format("LoaderSays: round {}", m.round); },
      },
      message);
}

std::string text(const CoordinatorMessage& message) {
  return std::visit(
      Overloaded{
          [](const PrepareRound& m) {
            return format(
                "PrepareRound: round {}, node {} of {}, ranks from {} of {}, {} of {} restarts, membership {:x}{}",
                m.round, m.place.node_rank, m.place.node_count, m.place.base_rank, m.place.world_size, m.restart_count,
                m.max_restarts, m.membership, m.reason.empty() ? "" : format(", because {}", m.reason));
          },
          [](const RunCheck& m) { return format("RunCheck: round {}, phase {}, {}", m.round, m.phase, m.order); },
          [](const RunWorkers& m) { return format("RunWorkers: round {}, store at port {}", m.round, m.store.port); },
          [](const StopWorkers& m) {
            return format("StopWorkers: round {}{}{}{}", m.round, m.hangs ? ", hangs" : "", m.aborts ? ", aborts" : "",
                          m.dumps ? ", dumps" : "");
          },
          [](const EndJob& m) { return format("EndJob: {}", text(m.job_result)); },
          [](const Dismiss& m) { return format("Dismiss: {}", m.details); },
          [](const AreYouThere&) { return std::string("AreYouThere"); },
          [](const LeaveJob&) { return std::string("LeaveJob"); },
          [](const StacksWanted& m) { return format("StacksWanted: collection {}", m.collection); },
          [](const NextRound& m) { return format("NextRound: round {}", m.next.number); },
          [](const CollectEvidence& m) {
            return format("CollectEvidence: round {}, collection {}", m.round, m.collection);
          },
          [](const HangTold& m) { return format("HangTold: round {}, {}", m.round, m.text); },
          [](const HangOver& m) {
            return format("HangOver: round {}{}", m.round, m.why == HangOver::Why::kWithdrawn ? ", withdrawn" : "");
          },
          [](const LoaderTold& m) { return format("LoaderTold: round {}, node {}", m.round, m.node_rank); },
          [](const KeepState& m) { return format("KeepState: round {}, number {}", m.round, m.transferred.number); },
          [](const Resigned& m) {
            return format("Resigned{}: {}", m.transfers_leadership ? " (hands over)" : "", m.why);
          },
          [](const Awaiting& m) {
            return format("Awaiting: {} of {}:{} for {} ms{} {}", m.here, m.least, m.most, m.for_ms,
                          m.left_ms ? format(", {} ms left", *m.left_ms) : "", m.what);
          },
          [](const Rejected& m) {
            return format("Rejected: {}{}", m.reason, m.retry_ms ? format(", again in {} ms", *m.retry_ms) : "");
          },
      },
      message);
}

}  // namespace elastic::simulation
