#include "rendezvous/coordinator/recording_messages.h"

#include <optional>
#include <vector>

#include "rendezvous/protocol/term.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

namespace {

constexpr std::size_t kTextBytes = 1000;
constexpr std::size_t kFailuresNamed = 4;

std::string shown(const std::string& text) { return printable(text, kTextBytes); }

std::string phrase(const WorkerFailure& failure) {
  const std::string at = failure.host.empty() ? "" : format(" on {}", shown(failure.host));
  return format("{}{}{}", failure.text(), at, failure.stopped_by_us ? ", after it was told to stop" : "");
}

std::string phrase(const std::vector<WorkerFailure>& failures) {
  std::vector<std::string> texts;
  for (const WorkerFailure& failure : failures) {
    if (texts.size() == kFailuresNamed) {
      texts.push_back(format("and {} more", failures.size() - kFailuresNamed));
      break;
    }
    texts.push_back(phrase(failure));
  }
  return join(texts, "; ");
}

std::string phrase(const JobTerms& terms) {
  return format("--nnodes={}:{} --node_unit={} --max-restarts={}", terms.min_nodes, terms.max_nodes, terms.node_unit,
                terms.max_restarts);
}

// The details are lines of a worker's stderr: too many to be shown, so that only their size is.
std::string with_details(const std::string& details) {
  return details.empty() ? "" : format(", with {} bytes of what is known of the first failure", details.size());
}

const char* phrase(AgentFacts::Activity activity) {
  switch (activity) {
    case AgentFacts::Activity::kIdle: return "it has no processes";
    case AgentFacts::Activity::kPreparing: return "it is preparing";
    case AgentFacts::Activity::kRunning: return "its workers run";
    case AgentFacts::Activity::kSucceeded: return "its workers have succeeded";
    case AgentFacts::Activity::kStopping: return "its workers are being stopped";
  }
  return "";
}

std::string phrase_of_false_alarm(std::optional<int> rank) {
  return rank ? format("; rank {}, for whose error file it was stopped, has not failed", *rank) : "";
}

std::string phrase(const std::optional<TrainingPorts>& ports) {
  if (!ports) return "";
  std::vector<std::string> in_use;
  for (const PortRange& range : ports->in_use) in_use.push_back(format("{}-{}", range.first, range.last));
  return format("; of HCCL's ports from {} on {} in use", ports->start,
                in_use.empty() ? "none is" : join(in_use, ", ") + " are");
}

std::string phrase(const AgentFacts& facts) {
  if (facts.incarnation == 0) return "";
  std::string text = format("; it was in round {} of incarnation {:x} as node {} of {}, by term {}, and {}",
                            facts.round, facts.incarnation, facts.place.node_rank, facts.place.node_count,
                            text_of_term(facts.term), phrase(facts.activity));
  if (!facts.failures.empty()) text += format("; {}", phrase(facts.failures));
  text += phrase_of_false_alarm(facts.false_alarm);
  if (facts.verdict) text += format("; it knows the verdict: {}", in_words(*facts.verdict));
  return text;
}

const char* phrase(Crash::Kind kind) {
  switch (kind) {
    case Crash::Kind::kImport: return "could not import, digest";
    case Crash::Kind::kSyntax: return "could not be parsed, digest";
    case Crash::Kind::kMissingFile: return "missed a file, digest";
  }
  return "";
}

std::string clause(const NodeJoins& message) {
  const std::string claim = message.node_rank ? format(", as node {}", *message.node_rank) : "";
  return format("joins with {} of role {}{}{}, under {} (agent {:x}){}{}", counted(message.local_world_size, "worker"),
                shown(message.role), claim, message.hosts_coordinator ? ", beside the coordinator" : "",
                phrase(message.terms), message.agent, phrase(message.facts), phrase(message.training_ports));
}
std::string clause(const StoreIsOpen& message) {
  return format("has opened the store of round {} at {}:{}", message.round, shown(message.endpoint.address),
                message.endpoint.port);
}
std::string clause(const WorkerFailed& message) {
  if (message.is_uncertain) {
    return format("says that in round {} rank {} has written an error file", message.round, message.failure.rank);
  }
  return format("says that in round {} {}", message.round, phrase(message.failure));
}
std::string clause(const WorkersSucceeded& message) {
  return format("says that its workers of round {} have succeeded", message.round);
}
std::string clause(const NodeCannotRun& message) {
  return format("cannot run round {}: {}", message.round, shown(message.reason));
}
std::string clause(const NodeStopped& message) {
  const std::string failures = message.failures.empty() ? "" : format(": {}", phrase(message.failures));
  const std::string crash =
      message.crash ? format("; it {} {:x}", phrase(message.crash->kind), message.crash->digest) : "";
  return format("has no process of round {} any more{}{}{}{}", message.round, failures, crash,
                phrase_of_false_alarm(message.false_alarm), phrase(message.training_ports));
}
std::string clause(const NodeLeaves& message) {
  if (message.signal == 0) return "leaves: its workers have succeeded, and its exit barrier has timed out";
  return message.ordered ? "leaves, as an operator has ordered"
                         : format("leaves: it received {}", signal_name(message.signal));
}
std::string clause(const CheckDone& message) {
  return format("has done phase {} of the check of round {}: {}", message.phase, message.round, shown(message.result));
}
std::string clause(const VerdictHeard& message) {
  return format("has heard the verdict{}", with_details(message.details));
}

std::string clause(const RoundHeard& message) { return format("has heard of round {}", message.round); }
std::string clause(const NodeProgress& message) {
  const ProgressOfRank& newest = message.newest;
  return format("makes progress in round {}: {}{}", message.round,
                newest.step ? format("step {}", *newest.step) : std::string("no step is known"),
                newest.rank ? format(", rank {}", *newest.rank) : std::string());
}

std::string clause(const NodeStacks& message) {
  return message.problem.empty() ? "tells what its workers are doing"
                                 : format("cannot tell what its workers are doing: {}", shown(message.problem));
}
std::string clause(const HangSigns& message) {
  std::vector<std::string> signs;
  if (message.facts.waits_for_disk) signs.emplace_back("a worker waits for a disk");
  if (message.facts.is_stopped) signs.emplace_back("a worker is stopped");
  if (message.facts.lacks_gpu) signs.emplace_back("a GPU is lost");
  if (message.facts.has_dump_key) signs.emplace_back("a collective has timed out");
  if (message.facts.misses_init_key) signs.emplace_back("a rank has not come to init_process_group");
  if (message.disks_move) signs.emplace_back("its workers read or write");
  return format("says of round {}: {}", message.round, signs.empty() ? "no sign of a hang" : join(signs, "; "));
}
std::string clause(const NodeEvidence& message) {
  return format("sends {} bytes of evidence in round {}, for collection {}", message.facts.size(), message.round,
                message.collection);
}

std::string phrase(const tuning::LoaderWord& word) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, const std::optional<tuning::ChosenValue>& value) {
    if (value) parts.push_back(format("{} {}", name, value->now));
  };
  if (word.values) {
    parts.push_back(format("values of version {}", word.values->version));
    add("num_workers", word.values->workers);
    add("batch_size", word.values->batch);
  }
  if (word.node) {
    const auto& free = word.node->free_bytes;
    parts.push_back(format("version {} is read, {} of memory are free", word.node->version,
                           free ? format("{} bytes", *free) : std::string("an unknown part")));
  }
  if (word.failed)
    parts.push_back(
        format("a rank has failed{}", word.failed->memory.empty() ? "" : format(" ({})", shown(word.failed->memory))));
  return join(parts, ", ");
}
std::string clause(const LoaderSays& message) {
  return format("says of the loaders in round {}: {}", message.round, phrase(message.word));
}

std::string clause(const MessageReceived& event) {
  return std::visit([](const auto& message) { return clause(message); }, event.message);
}
std::string clause(const KeepAliveReceived&) { return "sends a keep-alive"; }
std::string clause(const PromiseReceived& event) {
  return format("supports this coordinator since {} ms{}", event.since_ms,
                event.testimony ? format(", and testifies of {}",
                                         counted(static_cast<int>(event.testimony->rounds.size()), "round"))
                                : "");
}
std::string clause(const SessionEnded& event) { return format("has lost its session: {}", shown(event.how)); }
std::string clause(const Introduced& event) {
  return format("an agent introduces itself that knows of incarnation {:x} and term {}", event.incarnation,
                text_of_term(event.term));
}
std::string clause(const OwnAgentEnded&) { return "the agent beside this coordinator has ended"; }
std::string clause(const OwnAgentElsewhere& event) {
  return format("the agent beside this coordinator has found another one, of term {}", text_of_term(event.term));
}
std::string clause(const HostLeaves& event) {
  return format("the process of this coordinator gets signal {}", event.signal);
}
std::string clause(const DoorTried& event) {
  return event.address.empty() ? format("the door of agent {:x} does not answer", event.agent)
                               : format("the door of agent {:x} answers at {}", event.agent, shown(event.address));
}
std::string clause(const CoordinatorAnnounced& event) {
  const std::string rounds = event.round ? format("its last round is {}", *event.round) : "it has formed no round";
  return format("the coordinator of incarnation {:x} is at {}, and {}", event.incarnation, shown(event.where), rounds);
}
std::string clause(const NodeEmptied& event) {
  return format("the guardian of agent {:x} says that no process of round {} of incarnation {:x} is left", event.agent,
                event.round, event.incarnation);
}
std::string clause(const OperatorOrder& event) {
  const std::string from = event.from.empty() ? "" : format(" at {}", shown(event.from));
  return event.kind == OperatorOrder::Kind::kStop
             ? format("an operator{} orders the job to stop", from)
             : format("an operator{} orders node {} to leave", from, shown(event.node));
}
std::string clause(const TimePassed&) { return "a deadline has passed"; }

std::string clause(const PrepareRound& message) {
  const NodePlace& place = message.place;
  return format("prepare round {} as node {} of {}, its first rank {} of {}; restart {} of {}{}{}", message.round,
                place.node_rank, place.node_count, place.base_rank, place.world_size, message.restart_count,
                message.max_restarts, message.reason.empty() ? "" : format(", because {}", shown(message.reason)),
                message.training_port == 0 ? "" : format(", HCCL's ports from {} on", message.training_port));
}
std::string clause(const RunWorkers& message) {
  return format("run the workers of round {}, with the store at {}:{}", message.round, shown(message.store.address),
                message.store.port);
}
std::string clause(const StopWorkers& message) {
  return format("stop the workers of round {}{}{}{}", message.round, message.hangs ? ", which hangs" : "",
                message.aborts ? ", by SIGABRT first" : "", message.dumps ? ", after their dumps" : "");
}
std::string clause(const EndJob& message) { return format("end: {}", in_words(message.verdict)); }
std::string clause(const RunCheck& message) {
  return format("do phase {} of the check of round {}: {}", message.phase, message.round, shown(message.order));
}
std::string clause(const Dismiss& message) { return format("end{}", with_details(message.details)); }
std::string clause(const AreYouThere&) { return "are you there?"; }
std::string clause(const LeaveJob&) { return "leave the job, as an operator has ordered"; }
std::string clause(const NextRound& message) { return format("round {} is prepared without it", message.next.number); }
std::string clause(const StacksWanted&) { return "tell what your workers are doing"; }
std::string clause(const CollectEvidence& message) {
  return format("send evidence: no progress in round {} for {} ms (collection {})", message.round, message.silent_ms,
                message.collection);
}
std::string clause(const HangTold& message) {
  return format("tell of round {}: {}{}", message.round, shown(message.text),
                message.is_stopped ? "; send your workers SIGCONT" : "");
}
std::string clause(const HangOver& message) {
  return format("round {} makes progress again after {} ms{}", message.round, message.after_ms,
                message.why == HangOver::Why::kWithdrawn ? ": it did not hang" : "");
}
std::string clause(const KeepState& message) {
  return format("keep {} bytes of state for the next coordinator of round {}", message.carried.state.size(),
                message.round);
}
std::string clause(const LoaderTold& message) {
  return format("node {} says of the loaders in round {}: {}", message.node_rank, message.round, phrase(message.word));
}
std::string clause(const Resigned& message) {
  return format("the coordinator {}: {}", message.hands_over ? "hands over" : "resigns", shown(message.why));
}
std::string clause(const Awaiting& message) {
  if (!message.what.empty()) return shown(message.what);
  const std::string left = message.left_ms ? format(", for another {} ms", *message.left_ms) : "";
  return format("{} nodes are present, {} to {} are wanted; waiting for {} ms{}", message.here, message.least,
                message.most, message.for_ms, left);
}
std::string clause(const Rejected& message) {
  const std::string again = message.retry_ms ? format(" (it may try again in {} ms)", *message.retry_ms) : "";
  return format("rejected: {}{}", shown(message.reason), again);
}

}  // namespace

std::string in_words(const Event& event) {
  return std::visit([](const auto& known) { return clause(known); }, event);
}

std::string in_words(const CoordinatorMessage& message) {
  return std::visit([](const auto& known) { return clause(known); }, message);
}

std::string in_words(Coordinator::State state) {
  switch (state) {
    case Coordinator::State::kForming: return "forming";
    case Coordinator::State::kRebuilding: return "rebuilding";
    case Coordinator::State::kPreparing: return "preparing";
    case Coordinator::State::kRunning: return "running";
    case Coordinator::State::kStopping: return "stopping";
    case Coordinator::State::kEnding: return "ending";
    case Coordinator::State::kEnded: return "ended";
  }
  return "";
}

std::string in_words(const Verdict& verdict) {
  const char* outcome = verdict.outcome == Outcome::kSucceeded ? "the job has succeeded"
                        : verdict.outcome == Outcome::kFailed  ? "the job has failed"
                                                               : "the job was stopped";
  std::string text =
      format("{} in round {}, after {}", outcome, verdict.round, counted(verdict.restarts_used, "restart"));
  if (!verdict.reason.empty()) text += format(": {}", shown(verdict.reason));
  if (!verdict.failures.empty()) text += format("; {}", phrase(verdict.failures));
  return text;
}

std::string time_in_words(std::int64_t ms) {
  const std::uint64_t size = ms < 0 ? 0 - static_cast<std::uint64_t>(ms) : static_cast<std::uint64_t>(ms);
  return format("{}{}.{:03} s", ms < 0 ? "-" : "+", size / 1000, size % 1000);
}

}  // namespace elastic::coordinator
