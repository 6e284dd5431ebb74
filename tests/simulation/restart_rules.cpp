#include "tests/simulation/restart_rules.h"

#include <algorithm>

#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;
using coordinator::CarriedState;
using coordinator::HangCharges;
using membership::Standing;

namespace {

// The gaps between steps from which a limit follows that is good enough, and the step before the first of them.
constexpr std::uint64_t kStepsToRestart = 17;
// From the first signal until no process is waited for: SIGABRT, SIGTERM, SIGKILL, the naming of what is left, and what
// else a node reads of them.
constexpr Ms kAwaitedMs = 3'000 + 5'000 + 5'000 + 2'000;
constexpr int kSoftCharges = 2;

HangCharges::Record charges_of(const CarriedState& state) {
  const auto more = coordinator::decode_more(state.more);
  return more && more->hang ? more->hang->charges : HangCharges::Record{};
}

const HangCharges::Charge* find(const HangCharges::Record& record, const std::string& node) {
  const auto found = std::ranges::find(record.charges, node, &HangCharges::Charge::node);
  return found == record.charges.end() ? nullptr : &*found;
}

int least_of(const JobTerms& terms) {
  return (terms.min_nodes + terms.node_unit - 1) / terms.node_unit * terms.node_unit;
}

}  // namespace

bool RestartRules::are_on() const { return simulation_.setup().hangs && simulation_.setup().hangs->restarts; }

RestartRules::Key RestartRules::key_of(const Node& node, const Stamp& stamp, const Server& server) const {
  return {node.setup().job, stamp.incarnation, stamp.term, server.start_number()};
}

// --- The verdict. ----------------------------------------------------------------------------------

void RestartRules::told(const Node& node, const Stamp& stamp, const HangTold& message, const HangSaid& said,
                        const Server& server) {
  if (!are_on()) return;
  const Job job{node.setup().job, stamp.incarnation};
  Start& start = starts_[key_of(node, stamp, server)];
  if (start.stopped.contains(message.round))
    simulation_.invariants().broken("no verdict while a round is stopped", format("round {}", message.round));
  if (!SuccessionRules::may_act(job.first, job.second, server))
    simulation_.invariants().broken("who judges a hang may act", format("server {}", server.number()));
  if (!said.restarts() && !said.is_fatal()) return;
  check_grounds(node, said);
  const Prepared& round = rounds_[job][message.round];
  Decided decided = expected(node, said, round, server);
  decided.round = message.round;
  const bool leaves_out = said.action.find(", without ") != std::string::npos;
  const bool must_leave_out = !decided.ends_job && !decided.out.empty();
  if (decided.ends_job != said.is_fatal() || leaves_out != must_leave_out)
    simulation_.invariants().broken(
        "what follows from a hang follows from the table",
        format("round {}, {}, {}: \"{}\"; it should {}", message.round, said.fault, said.cause, said.action,
               decided.ends_job       ? "end the job"
               : !decided.out.empty() ? "leave out " + *decided.out.begin()
                                      : "leave out nobody"));
  HangCounts& counts = simulation_.hangs().counts();
  ++(decided.ends_job ? counts.fatal() : counts.restarts());
  counts.out() += decided.out.size();
  start.decided.push_back(std::move(decided));
  simulation_.timeline().after(1, [this, &server, job, start_number = server.start_number(), number = message.round] {
    const coordinator::Coordinator* const coordinator = server.find(job.first);
    if (!server.is_up() || server.start_number() != start_number || coordinator == nullptr) return;
    const bool goes_on = coordinator->incarnation() == job.second && coordinator->round() == number &&
                         coordinator->state() == coordinator::Coordinator::State::kRunning;
    if (goes_on) simulation_.invariants().broken("a verdict ends its round", format("round {} goes on", number));
  });
}

// Only on good grounds.
void RestartRules::check_grounds(const Node& node, const HangSaid& said) {
  const JobRules& rules = node.setup().rules;
  if (rules.hang_timeout_ms || rules.hang_first_timeout_ms || beats_[node.setup().job] >= kStepsToRestart) return;
  simulation_.invariants().broken("a limit that is learned of few steps ends no round",
                                  format("{} steps: \"{}\"", beats_[node.setup().job], said.action));
}

// The table of docs/hangs.md. A verdict blames one node at most here.
RestartRules::Decided RestartRules::expected(const Node& node, const HangSaid& said, const Prepared& round,
                                             const Server& server) {
  Decided decided;
  const bool is_soft = said.fault == "soft";
  const std::string blamed = said.culprits.empty() ? "" : said.culprits.front().node;
  const coordinator::Coordinator& coordinator = *server.find(node.setup().job);
  const auto after = coordinator.hang().hand_over(0, 0);
  const HangCharges::Charge* const charge = after ? find(after->charges, blamed) : nullptr;
  const std::string place = charge == nullptr ? "" : charge->place;
  const auto is_elsewhere = [&](const HangCharges::Charge& known) {
    return known.place == place && known.node != blamed;
  };
  const bool is_script = is_soft && !place.empty() && std::ranges::any_of(round.charges.charges, is_elsewhere);
  const bool is_spent = round.charges.used + 1 > node.setup().rules.hang_restarts.value_or(0);
  const int standbys = static_cast<int>(std::ranges::count_if(coordinator.roster().nodes(), [&](const auto& entry) {
    return entry.second.standing() == Standing::kReady && entry.second.address != blamed;
  }));
  const int left = round.nodes + standbys - 1;
  if (is_script || is_spent) {
    decided.ends_job = true;
  } else if (said.fault == "hard") {
    decided.ends_job = left <= 0;
    decided.out.insert(blamed);
  } else if (is_soft) {
    const HangCharges::Charge* const before = find(round.charges, blamed);
    const bool is_second = before != nullptr && before->times + 1 >= kSoftCharges;
    if ((standbys > 0 || is_second) && left >= least_of(node.setup().terms)) decided.out.insert(blamed);
  }
  return decided;
}

// --- Messages. -------------------------------------------------------------------------------------

void RestartRules::sent(const Node& node, const Stamp& stamp, const CoordinatorMessage& message, const Server& server) {
  if (!are_on()) return;
  const bool is_order = std::holds_alternative<StopWorkers>(message) || std::holds_alternative<EndJob>(message) ||
                        std::holds_alternative<Dismiss>(message) || std::holds_alternative<Rejected>(message) ||
                        std::holds_alternative<LeaveJob>(message) || std::holds_alternative<Resigned>(message);
  if (is_order) asked_.erase(node.index());
  std::visit([&](const auto& known) { on(node, stamp, known, server); }, message);
}

void RestartRules::on(const Node& node, const Stamp&, const CollectEvidence& message, const Server&) {
  asked_[node.index()] = {node.launch(), message.round};
}

void RestartRules::on(const Node& node, const Stamp& stamp, const StopWorkers& message, const Server& server) {
  starts_[key_of(node, stamp, server)].stopped.insert(message.round);
  if (!message.hangs) return;
  if (!was_decided({node.setup().job, stamp.incarnation}, message.round))
    simulation_.invariants().broken("a round is stopped for a hang after a verdict", format("round {}", message.round));
  starts_[key_of(node, stamp, server)].hung.insert(message.round);
  ends_[node.index()] = {node.launch(), message.round};
}

bool RestartRules::was_decided(const Job& job, RoundNumber round) const {
  return std::ranges::any_of(starts_, [&](const auto& start) {
    return std::get<0>(start.first) == job.first && std::get<1>(start.first) == job.second &&
           std::ranges::find(start.second.decided, round, &Decided::round) != start.second.decided.end();
  });
}

void RestartRules::on(const Node& node, const Stamp& stamp, const PrepareRound& message, const Server& server) {
  const auto state = coordinator::decode(message.carried.state);
  if (!state) return;
  const std::string& address = node.setup().address;
  const auto out_again = [&](const std::string& why) {
    simulation_.invariants().broken(
        "who is out is in no further round",
        format("node {} ({}) is in round {}: {}", node.index(), address, message.round, why));
  };
  if (std::ranges::find(state->excluded, address, &CarriedState::Excluded::name) != state->excluded.end())
    out_again("its coordinator knows that it is out");
  Start& start = starts_[key_of(node, stamp, server)];
  for (const Decided& decided : start.decided) {
    if (decided.round >= message.round) continue;
    if (decided.ends_job)
      simulation_.invariants().broken("a hang that ends the job ends it", format("round {} follows", message.round));
    if (decided.out.contains(address)) out_again(format("it was at fault in round {}", decided.round));
  }
  const auto stuck = start.stuck.find(address);
  if (stuck != start.stuck.end() && stuck->second < message.round) out_again("a worker did not end there");
  if (start.prepared == message.round) return;
  const Job job{node.setup().job, stamp.incarnation};
  const Prepared now{message.place.node_count, message.restart_count, charges_of(*state)};
  check_spent(job, start, now, message);
  start.prepared = message.round;
  rounds_[job][message.round] = now;
}

void RestartRules::check_spent(const Job& job, const Start& start, const Prepared& now,
                               const PrepareRound& message) const {
  const auto wrong = [&](const std::string& text) {
    simulation_.invariants().broken("a hang is charged once, and costs no restart",
                                    format("round {}: {}", message.round, text));
  };
  const int limit = simulation_.setup().nodes.front().rules.hang_restarts.value_or(0);
  if (now.charges.used > limit)
    simulation_.invariants().broken("hangs stay within their budget", format("{} of {}", now.charges.used, limit));
  if (start.prepared) {
    const Prepared& before = rounds_.at(job).at(*start.prepared);
    const auto own = std::ranges::count(start.decided, *start.prepared, &Decided::round);
    if (now.charges.used != before.charges.used + own)
      wrong(format("{} hangs have been charged, {} before round {}, which hung {} times", now.charges.used,
                   before.charges.used, *start.prepared, own));
    if (own > 0 && (message.charged || now.restart_count != before.restart_count))
      wrong(format("it is restart {} after {}", now.restart_count, before.restart_count));
    return;
  }
  const auto ran = ran_.find(job);
  if (ran == ran_.end()) return;
  int most = rounds_.at(job).at(ran->second).charges.used;
  for (const auto& [key, other] : starts_) {
    if (std::get<0>(key) != job.first || std::get<1>(key) != job.second) continue;
    most += static_cast<int>(
        std::ranges::count_if(other.decided, [&](const Decided& decided) { return decided.round >= ran->second; }));
  }
  if (now.charges.used > most) wrong(format("{} hangs have been charged, {} at most", now.charges.used, most));
}

void RestartRules::on(const Node& node, const Stamp& stamp, const RunWorkers& message, const Server&) {
  ran_[{node.setup().job, stamp.incarnation}] = message.round;
}

void RestartRules::on(const Node& node, const Stamp& stamp, const EndJob& message, const Server& server) {
  const Verdict& verdict = message.verdict;
  const auto says = [&](const std::string& text) { return verdict.reason.find(text) != std::string::npos; };
  const bool is_for_hang = says("the script is at fault") || says("hang_restarts") || says("no node is left:");
  const bool may_end = std::ranges::any_of(starts_, [&](const auto& start) {
    return std::get<0>(start.first) == node.setup().job &&
           std::ranges::any_of(start.second.decided, &Decided::ends_job);
  });
  if (is_for_hang && !may_end)
    simulation_.invariants().broken("a job ends for a hang by the table only", verdict.reason);
  if (!says("survived SIGKILL")) return;
  for (const auto& [address, round] : starts_[key_of(node, stamp, server)].stuck) {
    if (round != verdict.round || !says(format("({})", address))) continue;
    simulation_.invariants().broken("a process that does not end costs its node, and not the job", verdict.reason);
  }
}

// For what reason: this coordinator has blamed it, or heard that it cannot end its workers; or one of the incarnation
// has, and this one was told which hosts are out.
void RestartRules::on(const Node& node, const Stamp& stamp, const Rejected& message, const Server& server) {
  if (message.why != Rejected::Why::kExcluded || message.reason.find("the job hung") == std::string::npos) return;
  const std::string& address = node.setup().address;
  const auto says = [&](const char* text) { return message.reason.find(text) != std::string::npos; };
  const auto blames = [&](const Start& start) {
    return std::ranges::any_of(start.decided, [&](const Decided& decided) { return decided.out.contains(address); });
  };
  const Job job{node.setup().job, stamp.incarnation};
  const auto stuck = may_be_stuck_.find(job);
  const bool is_stuck = stuck != may_be_stuck_.end() && stuck->second.contains(address);
  // A coordinator may have taken a later term since, above that of a candidate that was not elected.
  const auto was_blamed_by = [&](std::optional<std::uint64_t> start_number) {
    return std::ranges::any_of(starts_, [&](const auto& start) {
      const auto& [name, incarnation, term, number] = start.first;
      return name == job.first && incarnation == job.second && number == start_number.value_or(number) &&
             blames(start.second);
    });
  };
  const bool was_blamed = was_blamed_by({});
  const bool is_out = says("this node is at fault")    ? was_blamed_by(server.start_number())
                      : says("cannot end its workers") ? is_stuck
                                                       : is_stuck || was_blamed;
  if (!is_out)
    simulation_.invariants().broken("nobody else is out for a hang",
                                    format("node {} is turned away: {}", node.index(), message.reason));
}

// --- Events. ---------------------------------------------------------------------------------------

void RestartRules::takes(const Server& server, const std::string& job, const coordinator::Event& event) {
  const auto* const said = std::get_if<coordinator::MessageReceived>(&event);
  if (said == nullptr || !are_on()) return;
  if (std::holds_alternative<NodeProgress>(said->message)) ++beats_[job];
  const auto* const cannot = std::get_if<NodeCannotRun>(&said->message);
  const coordinator::Coordinator* const coordinator = server.find(job);
  if (cannot == nullptr || coordinator == nullptr) return;
  const membership::Node* const node = coordinator->roster().of_session(said->from);
  if (node != nullptr && was_decided({job, coordinator->incarnation()}, cannot->round))
    may_be_stuck_[{job, coordinator->incarnation()}].insert(node->identity());
  const bool is_of_round = node != nullptr && coordinator->round() == cannot->round &&
                           coordinator->state() == coordinator::Coordinator::State::kStopping &&
                           (node->standing() == Standing::kStopping || node->standing() == Standing::kLeaving);
  const bool has_others = std::ranges::any_of(coordinator->roster().nodes(), [&](const auto& other) {
    return &other.second != node && other.second.session && other.second.unfit.empty();
  });
  const auto ends_job = [&](const auto& start) {
    const bool is_its = std::get<0>(start.first) == job && std::get<1>(start.first) == coordinator->incarnation();
    return is_its && std::ranges::any_of(start.second.decided, [&](const Decided& decided) {
             return decided.round == cannot->round && decided.ends_job;
           });
  };
  if (!is_of_round || !has_others || std::ranges::any_of(starts_, ends_job)) return;
  for (auto& [key, start] : starts_) {
    const bool is_its = std::get<0>(key) == job && std::get<1>(key) == coordinator->incarnation() &&
                        std::get<3>(key) == server.start_number();
    if (!is_its || !start.hung.contains(cannot->round)) continue;
    start.stuck[node->identity()] = cannot->round;
    ++simulation_.hangs().counts().stuck();
  }
}

void RestartRules::agent_acts(const Node& node, const agent::Effect& effect) {
  if (!are_on()) return;
  // It ends its workers for a reason of its own.
  if (std::holds_alternative<agent::Warn>(effect)) asked_.erase(node.index());
  if (std::holds_alternative<agent::SignalWorkers>(effect)) signals(node);
  if (std::holds_alternative<agent::AwaitAllGone>(effect)) awaits(node);
}

void RestartRules::signals(const Node& node) {
  const auto asked = asked_.find(node.index());
  if (asked == asked_.end() || asked->second.first != node.launch()) return;
  const auto index = simulation_.hangs().world_of(node);
  const bool is_of_round = index && simulation_.workers().world(*index).round == asked->second.second;
  if (!is_of_round || node.was_signalled() || node.lost_its_guardian() || node.agent()->lifecycle().has_verdict())
    return;
  for (const WorkerId id : simulation_.workers().world(*index).workers) {
    const Worker& worker = simulation_.workers().at(id);
    if (worker.node == node.index() && !worker.alive) return;
  }
  simulation_.invariants().broken("no worker gets a signal for a hang before there is a verdict",
                                  format("node {}, round {}", node.index(), asked->second.second));
}

// Nobody waits for a process that SIGKILL does not end.
void RestartRules::awaits(const Node& node) {
  const auto ends = ends_.find(node.index());
  if (ends == ends_.end() || ends->second.first != node.launch()) return;
  simulation_.timeline().after(kAwaitedMs, [this, &node, told = ends->second, pauses = node.pauses()] {
    if (!node.is_running() || node.launch() != told.first || node.pauses() != pauses) return;
    const AgentFacts facts = node.agent()->lifecycle().joins().facts;
    if (facts.round != told.second || facts.activity != AgentFacts::Activity::kStopping) return;
    simulation_.invariants().broken("nobody waits for a process that does not end",
                                    format("node {} still stops round {}", node.index(), told.second));
  });
}

// --- Take-over. ------------------------------------------------------------------------------------

std::string RestartRules::lost_between(const CarriedState& then, const CarriedState& now) {
  const auto more_then = coordinator::decode_more(then.more);
  const auto more_now = coordinator::decode_more(now.more);
  if (!more_then || !more_then->hang) return {};
  if (!more_now || !more_now->hang) return "nothing is known of hangs";
  const HangCharges::Record& charged = more_then->hang->charges;
  const HangCharges::Record& known = more_now->hang->charges;
  if (known.used < charged.used) return format("{} hangs became {}", charged.used, known.used);
  for (const HangCharges::Charge& charge : charged.charges) {
    const HangCharges::Charge* const kept = find(known, charge.node);
    if (kept == nullptr || kept->times < charge.times || (kept->place.empty() && !charge.place.empty()))
      return format("{} was blamed for hanging {} times", charge.node, charge.times);
  }
  const hang::LearnedLimits& learned = more_then->hang->record.learned;
  for (std::size_t i = 0; i < hang::kPhases; ++i) {
    const auto phase = static_cast<hang::Phase>(i);
    const auto& kept = more_now->hang->record.learned.of(phase);
    if (kept.gaps < learned.of(phase).gaps || kept.longest_ms < learned.of(phase).longest_ms)
      return format("{} gaps of a phase became {}", learned.of(phase).gaps, kept.gaps);
  }
  return {};
}

}  // namespace elastic::simulation
