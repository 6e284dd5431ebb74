#include "src/job/coordinator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/mutant.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::job {

using namespace protocol;
using membership::FormingDecision;

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::vector<std::string> names_of(const std::vector<LostNode>& lost) {
  std::vector<std::string> names;
  for (const LostNode& node : lost) names.push_back(text(node));
  return names;
}

// The first few of what may be a thousand.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  if (names.size() <= kNamed) return join(names, "; ");
  return format("{}; and {} more", join({names.begin(), names.begin() + kNamed}, "; "), names.size() - kNamed);
}

// Adds what a node reports, and keeps the likeliest causes where that is too much to keep.
void keep(std::vector<WorkerFailure>& all, const std::vector<WorkerFailure>& more) {
  all.insert(all.end(), more.begin(), more.end());
  if (all.size() <= 2 * limits::kFailuresKept) return;
  order_by_cause(all);
  all.resize(limits::kFailuresKept);
}

}  // namespace

std::uint64_t membership_digest(Incarnation incarnation, RoundNumber round, const std::vector<AgentId>& agents) {
  // FNV-1a over the numbers: a digest against mix-ups, not against an enemy.
  std::uint64_t digest = 14695981039346656037ULL;
  const auto add = [&](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      digest = (digest ^ (number >> (8 * byte) & 0xff)) * 1099511628211ULL;
    }
  };
  add(incarnation);
  add(round);
  for (const AgentId agent : agents) add(agent);
  return digest;
}

Coordinator::Coordinator(Birth birth, std::unique_ptr<CheckPlan> check)
    : birth_(birth),
      term_(birth.term),
      incarnation_(birth.incarnation),
      check_(std::move(check)),
      now_ms_(birth.now_ms),
      forming_since_ms_(birth.now_ms),
      silence_check_ms_(kNever) {}

Effects Coordinator::on_event(const Event& event, std::int64_t now_ms) {
  Effects out;
  now_ms_ = std::max(now_ms_, now_ms);
  if (state_ == State::kEnded) return out;
  std::visit([&](const auto& known) { take(known, out); }, event);
  const bool changes_nothing = std::holds_alternative<Heard>(event) && held_.empty();
  if (!changes_nothing) decide(out);
  return out;
}

std::optional<std::int64_t> Coordinator::next_deadline_ms() const {
  if (state_ == State::kEnded) return {};
  std::int64_t next = std::min(silence_check_ms_, look_again_ms_.value_or(kNever));
  if (!leases_.empty()) next = std::min(next, leases_.begin()->first);
  for (const Held& held : held_) next = std::min(next, held.until_ms);
  if (next == kNever) return {};
  return next;
}

std::optional<RoundNumber> Coordinator::round() const { return round_; }

// --- Events. ---------------------------------------------------------------------------------------

void Coordinator::take(const Said& event, Effects& out) {
  Node* node = roster_.of_session(event.from);
  if (node == nullptr) {
    // Whoever is not known has to join first; what a session says after it was dropped is not heard.
    if (const auto* joins = std::get_if<NodeJoins>(&event.message)) join(event.from, *joins, out);
    return;
  }
  node->is_heard(now_ms_);
  std::visit([&](const auto& known) { said(*node, known, out); }, event.message);
}

void Coordinator::take(const Heard& event, Effects&) {
  if (Node* node = roster_.of_session(event.from)) node->is_heard(now_ms_);
}

void Coordinator::take(const SessionEnded& event, Effects& out) {
  std::erase_if(held_, [&](const Held& held) { return held.session == event.from; });
  if (Node* node = roster_.of_session(event.from)) lose(*node, event.how, out);
}

void Coordinator::take(const NodeEmptied& event, Effects& out) {
  Node* node = roster_.find(event.agent);
  if (node == nullptr || event.incarnation != incarnation_ || event.round != round_) return;
  if (node->session && node->standing() != Standing::kReady) {
    // It has overtaken the end of its agent's session.
    const std::string how = "its agent is not there any more, says its guardian";
    out.push_back(Drop{*node->session, how});
    lose(*node, how, out);
    node = roster_.find(event.agent);
  }
  if (node == nullptr || node->standing() != Standing::kLost) return;
  out.push_back(Note{format("no process of the round is left on {}, says its guardian", node->name())});
  forget(*node);
}

void Coordinator::take(const TimePassed&, Effects& out) {
  if (now_ms_ >= silence_check_ms_) look_for_silent(out);
}

void Coordinator::said(Node&, const NodeJoins&, Effects&) {}  // once is enough

void Coordinator::said(Node& node, const StoreIsOpen& message, Effects& out) {
  if (!is_current(node, message.round) || state_ != State::kPreparing || node.place.node_rank != 0) return;
  store_ = message.endpoint;
  run_if_ready(out);
}

void Coordinator::said(Node& node, const WorkerFailed& message, Effects& out) {
  if (!is_current(node, message.round) || !is_in_round()) return;
  // Nothing is charged yet: the failure may be the consequence of a node's death that is not known here.
  stopping_.worker_failed = true;
  stop_round(out);
}

void Coordinator::said(Node& node, const WorkersSucceeded& message, Effects&) {
  if (!is_current(node, message.round) || node.standing() != Standing::kMember) return;
  roster_.move(node, Standing::kDone);
}

void Coordinator::said(Node& node, const NodeCannotRun& message, Effects& out) {
  if (!is_current(node, message.round)) return;
  std::string reason = terms_.max_nodes == 1 ? message.reason : format("{}: {}", node.name(), message.reason);
  // One that came back while the next round was forming, and cannot be rid of its workers.
  if (state_ == State::kForming) return end({.outcome = Verdict::Outcome::kFailed, .reason = std::move(reason)}, out);
  if (!is_in_round()) return;
  if (!stopping_.job_ends) {
    stopping_.job_ends = true;
    stopping_.fatal = std::move(reason);
  }
  stop_round(out);
}

void Coordinator::said(Node& node, const NodeStopped& message, Effects& out) {
  if (!is_current(node, message.round)) return;
  if (node.standing() == Standing::kMember || node.standing() == Standing::kDone) return;  // not told to
  take_failures(node, message.failures);
  has_stopped(node, out);
}

void Coordinator::take_failures(const Node& node, const std::vector<WorkerFailure>& failures) {
  std::vector<WorkerFailure> named = failures;
  for (WorkerFailure& failure : named) {
    failure.node_rank = node.place.node_rank;
    if (terms_.max_nodes > 1) failure.host = node.address;
    if (!failure.stopped_by_us) stopping_.worker_failed = true;
  }
  keep(stopping_.failures, named);
}

void Coordinator::said(Node& node, const NodeLeaves& message, Effects& out) {
  if (state_ == State::kEnding) return;
  if (message.signal == 0) {  // it has succeeded, and waited long enough
    if (node.standing() != Standing::kDone && node.standing() != Standing::kStopping) return;
    out.push_back(Note{format("{} leaves: its workers have succeeded", node.name())});
    out.push_back(Send{*node.session, Dismiss{}});
    return forget(node);
  }
  const std::string order = format("stopped by {}", signal_name(message.signal));
  if (node.hosts_coordinator) {
    // The job cannot outlive its coordinator, which goes with this node.
    stopping_.job_ends = true;
    stopping_.outcome = Verdict::Outcome::kStopped;
    stopping_.signal = message.signal;
    stopping_.fatal = order;
    if (is_in_round()) return stop_round(out);
    return end({.outcome = Verdict::Outcome::kStopped, .reason = order, .signal = message.signal}, out);
  }
  if (node.standing() == Standing::kLeaving) return;
  out.push_back(Note{format("{} was told to leave by {}", node.name(), signal_name(message.signal))});
  if (can_do_without(node)) {
    node.leave_signal = message.signal;
    return roster_.move(node, Standing::kLeaving);
  }
  stopping_.left.push_back(format("{} was told to leave by {}", node.name(), signal_name(message.signal)));
  node.leave_signal = message.signal;
  const bool has_nothing = node.standing() == Standing::kReady;
  roster_.move(node, Standing::kLeaving);
  if (has_nothing) return has_stopped(node, out);
  if (is_in_round()) stop_round(out);
}

void Coordinator::said(Node& node, const CheckDone& message, Effects& out) {
  if (!is_current(node, message.round) || state_ != State::kPreparing) return;
  if (message.phase != check_phase_ || check_phase_ >= check_phases_ || node.reported) return;
  node.reported = true;
  check_results_.back().at(static_cast<std::size_t>(node.place.node_rank)) = message.result;
  if (++reported_ == seats_.size()) end_check_phase(out);
}

void Coordinator::said(Node& node, const VerdictHeard&, Effects&) {
  if (state_ != State::kEnding || node.reported) return;
  node.reported = true;
  ++heard_verdict_;
}

// --- Rounds. ---------------------------------------------------------------------------------------

void Coordinator::decide(Effects& out) {
  look_again_ms_.reset();
  while (!leases_.empty() && leases_.begin()->first <= now_ms_) {
    Node& node = *roster_.find(leases_.begin()->second);
    out.push_back(Note{format("the lease of {} is over", node.name())});
    forget(node);
  }
  settle_held(out);
  switch (state_) {
    case State::kForming:
      return form_if_due(out);
    case State::kRebuilding:
      return finish_rebuilding(out);
    case State::kPreparing:
    case State::kEnded:
      return;
    case State::kRunning:
      if (roster_.count(Standing::kMember) == 0) return end({.outcome = Verdict::Outcome::kSucceeded}, out);
      return scale_up_if_due(out);
    case State::kStopping:
      if (not_yet_stopped() == 0 || (mutant::is('g') && !stopping_.failures.empty())) conclude_round(out);
      if (state_ == State::kForming) form_if_due(out);
      return;
    case State::kEnding:
      return dismiss_if_all_heard(out);
  }
}

void Coordinator::form_if_due(Effects& out) {
  if (!has_terms_) return;
  if (!round_ && roster_.size() == 0 && held_.empty()) {
    // Everybody has gone before there was a round: who comes next may bring other terms.
    state_ = State::kEnded;
    return;
  }
  membership::FormingRules rules = forming_rules_;
  rules.max_nodes = membership::size_limit(scale_up_, first_size_, forming_rules_);
  const int ready = static_cast<int>(roster_.count(Standing::kReady));
  const int awaited = static_cast<int>(not_yet_stopped() + roster_.count(Standing::kLost));
  const bool enough = membership::round_size(ready, rules) > 0;
  if (enough && !enough_since_ms_) enough_since_ms_ = now_ms_;
  if (!enough) enough_since_ms_.reset();
  if (!enough && awaited == 0) was_below_min_ = true;
  if (roster_.size() == 0 && !stopping_.left.empty()) {
    // Every node was told to go, each by its own user: nobody is left to be told.
    return end({.outcome = Verdict::Outcome::kStopped, .reason = some_of(stopping_.left)}, out);
  }
  const membership::FormingView view{
      .ready = ready,
      .awaited = awaited,
      .again = round_.has_value(),
      .previous_size = static_cast<int>(seats_.size()),
      .since_ms = forming_since_ms_,
      .enough_since_ms = enough_since_ms_,
      .last_join_ms = last_join_ms_,
      .was_below_min = was_below_min_,
  };
  const FormingDecision decision = membership::decide_forming(view, rules, now_ms_);
  switch (decision.kind) {
    case FormingDecision::Kind::kWait:
      return look_again(decision.look_again_ms);
    case FormingDecision::Kind::kForm:
      return form(decision.size, out);
    case FormingDecision::Kind::kGiveUp: {
      std::string reason = decision.reason;
      if (!again_because_.empty()) reason = format("{}; {}", again_because_, reason);
      return end({.outcome = Verdict::Outcome::kFailed, .reason = std::move(reason)}, out);
    }
  }
}

void Coordinator::form(int size, Effects& out) {
  std::vector<Node*> ready;
  std::vector<membership::Candidate> candidates;
  std::set<AgentId> here;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() != Standing::kReady) continue;
    ready.push_back(&node);
    candidates.push_back({node.claimed_rank, node.seat, node.address, node.arrival});
    here.insert(agent);
  }
  std::vector<membership::VacantSeat> vacant;
  for (const Seat& seat : seats_) {
    if (!here.contains(seat.agent)) vacant.push_back({seat.seat, seat.address});
  }
  std::vector<Node*> chosen;
  std::vector<membership::Candidate> chosen_candidates;
  for (const std::size_t index : membership::choose_members(candidates, size)) {
    chosen.push_back(ready[index]);
    chosen_candidates.push_back(candidates[index]);
    if (!mutant::is('d') || !round_ || candidates[index].seat) continue;
    chosen.push_back(ready[index]);
    chosen_candidates.push_back(candidates[index]);
  }
  for (Node* node : ready) node->seat.reset();
  std::vector<membership::NodeShape> shapes;
  std::vector<Node*> members;
  for (const membership::Seated& seated : membership::seat_members(chosen_candidates, vacant)) {
    members.push_back(chosen[seated.candidate]);
    members.back()->seat = seated.seat;
    shapes.push_back(members.back()->shape);
  }
  const std::vector<NodePlace> places = membership::assign_places(shapes);

  round_ = round_ ? *round_ + 1 : 0;
  if (first_size_ == 0) first_size_ = size;
  std::vector<AgentId> agents;
  seats_.clear();
  for (const Node* node : members) {
    agents.push_back(node->agent);
    seats_.push_back({node->agent, *node->seat, node->address});
  }
  membership_ = membership_digest(incarnation_, *round_, agents);
  state_ = State::kPreparing;
  stopping_ = {};
  store_.reset();
  check_phase_ = 0;
  check_results_.clear();
  out.push_back(Note{format("round {} is formed of {} nodes, world size {}{}", *round_, size, places.front().world_size,
                            again_because_.empty() ? "" : format(", because {}", again_because_))});
  for (std::size_t i = 0; i < members.size(); ++i) {
    Node& node = *members[i];
    node.place = places[i];
    node.reported = false;
    roster_.move(node, Standing::kMember);
    out.push_back(Send{*node.session, PrepareRound{.round = *round_,
                                                   .restart_count = budget_.used(),
                                                   .max_restarts = budget_.limit(),
                                                   .place = node.place,
                                                   .reason = again_because_,
                                                   .losses = losses_.losses(),
                                                   .membership = membership_,
                                                   .charged = charged_}});
  }
  check_phases_ = static_cast<std::uint32_t>(check_->phases(nodes_to_check()));
  if (check_phases_ > 0) begin_check_phase(out);
}

std::vector<CheckNode> Coordinator::nodes_to_check() const {
  std::vector<CheckNode> nodes;
  for (const Seat& seat : seats_) {
    const Node& node = roster_.nodes().at(seat.agent);
    nodes.push_back({node.address, node.shape.local_world_size, node.passed_check});
  }
  return nodes;
}

void Coordinator::begin_check_phase(Effects& out) {
  std::vector<std::string> orders = check_->orders(check_phase_, nodes_to_check(), check_results_);
  ELASTIC_CHECK(orders.size() == seats_.size());
  check_results_.emplace_back(seats_.size());
  reported_ = 0;
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    Node& node = *roster_.find(seats_[rank].agent);
    node.reported = false;
    out.push_back(Send{*node.session, RunCheck{*round_, check_phase_, std::move(orders[rank])}});
  }
}

void Coordinator::end_check_phase(Effects& out) {
  ++check_phase_;
  if (check_phase_ < check_phases_) return begin_check_phase(out);
  const std::vector<CheckPlan::Unfit> unfit = check_->unfit(nodes_to_check(), check_results_);
  for (const Seat& seat : seats_) roster_.find(seat.agent)->passed_check = true;
  if (unfit.empty()) return run_if_ready(out);
  for (const CheckPlan::Unfit& found : unfit) {
    Node& node = *roster_.find(seats_.at(static_cast<std::size_t>(found.node_rank)).agent);
    node.passed_check = false;
    if (excluded_.size() < limits::kNodesPerJob) excluded_.insert(node.identity());
    out.push_back(Note{format("{} is left out: {}", node.name(), found.why)});
    stopping_.other = format("{} is unfit: {}", node.name(), found.why);
  }
  stop_round(out);
}

// Nodes that the check has found unfit, once they have stopped.
void Coordinator::turn_away_excluded(Effects& out) {
  if (excluded_.empty()) return;
  std::vector<Node*> unfit;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() == Standing::kReady && excluded_.contains(node.identity())) unfit.push_back(&node);
  }
  for (Node* node : unfit) {
    out.push_back(Send{*node->session, Rejected{Rejected::Why::kExcluded, "the check before training has found it unfit", {}}});
    forget(*node);
  }
}

void Coordinator::run_if_ready(Effects& out) {
  if (state_ != State::kPreparing || !store_) return;
  if (check_phase_ < check_phases_) return;
  state_ = State::kRunning;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() == Standing::kMember) out.push_back(Send{*node.session, RunWorkers{*round_, *store_}});
  }
}

void Coordinator::scale_up_if_due(Effects& out) {
  const int standby = static_cast<int>(roster_.count(Standing::kReady));
  if (standby == 0) return;
  // Once a node is done the job is about to be: nothing is begun anew for the sake of newcomers.
  if (roster_.count(Standing::kMember) < seats_.size()) return;
  const int size = static_cast<int>(in_round());
  membership::FormingRules rules = forming_rules_;
  rules.max_nodes = membership::size_limit(scale_up_, first_size_, forming_rules_);
  const auto decision = membership::decide_scale_up(size, standby, last_join_ms_, rules, scale_up_, now_ms_);
  if (!decision.grow_now) return look_again(decision.look_again_ms);
  stopping_.other = format("{} more {}", standby, standby == 1 ? "node has joined" : "nodes have joined");
  stop_round(out);
}

void Coordinator::stop_round(Effects& out) {
  if (state_ == State::kStopping) return;
  if (state_ == State::kRebuilding) {
    rebuild_->stops = true;  // who has not come back yet is told when it does
  } else {
    state_ = State::kStopping;
  }
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() == Standing::kMember || node.standing() == Standing::kDone) tell_to_stop(node, out);
  }
}

void Coordinator::tell_to_stop(Node& node, Effects& out) {
  roster_.move(node, Standing::kStopping);
  out.push_back(Send{*node.session, StopWorkers{*round_, RestartScope::kJob}});
}

void Coordinator::has_stopped(Node& node, Effects& out) {
  if (node.standing() != Standing::kLeaving) return roster_.move(node, Standing::kReady);
  Verdict verdict{.outcome = Verdict::Outcome::kStopped,
                  .reason = format("stopped by {}", signal_name(node.leave_signal)),
                  .round = round_.value_or(0),
                  .restarts_used = budget_.used(),
                  .signal = node.leave_signal};
  out.push_back(Send{*node.session, EndJob{std::move(verdict)}});
  out.push_back(Send{*node.session, Dismiss{}});
  forget(node);
}

// What the round has ended of is known now: each of its nodes has answered, or is lost.
void Coordinator::conclude_round(Effects& out) {
  Stopping ended = std::move(stopping_);
  stopping_ = {};
  order_by_cause(ended.failures);
  if (ended.failures.size() > limits::kFailuresKept) ended.failures.resize(limits::kFailuresKept);
  if (ended.job_ends) {
    return end({.outcome = ended.outcome,
                .reason = std::move(ended.fatal),
                .signal = ended.signal,
                .failures = std::move(ended.failures)},
               out);
  }
  charged_ = false;
  if (!ended.lost.empty()) {
    again_because_ = some_of(names_of(ended.lost));
    if (losses_.spent()) {
      return end({.outcome = Verdict::Outcome::kFailed,
                  .reason = format("{}; {} nodes have been lost in this job, more than it may lose (job_losses)",
                                   again_because_, losses_.losses()),
                  .failures = std::move(ended.failures)},
                 out);
    }
  } else if (!ended.left.empty()) {
    again_because_ = some_of(ended.left);
  } else if (!ended.other.empty()) {
    // Nothing had failed when we ordered the stop; what fails since then comes of it: nodes hear the order one
    // after the other, and workers whose peers are gone fail within milliseconds.
    again_because_ = ended.other;
  } else if (ended.worker_failed) {
    again_because_ = ended.failures.empty() ? "a worker failed" : ended.failures.front().text();
    charged_ = budget_.spend();
    const auto of_another_node = [&](const WorkerFailure& failure) { return failure.node_rank != ended.failures.front().node_rank; };
    if (mutant::is('b') && std::ranges::any_of(ended.failures, of_another_node)) (void)budget_.spend();
    if (!charged_) {
      return end({.outcome = Verdict::Outcome::kFailed, .failures = std::move(ended.failures)}, out);
    }
  } else {
    again_because_ = "the coordinator was lost while the round was beginning or ending";
  }
  stopping_.left = std::move(ended.left);
  state_ = State::kForming;
  forming_since_ms_ = now_ms_;
  enough_since_ms_.reset();
  was_below_min_ = false;
  turn_away_excluded(out);
}

void Coordinator::lose(Node& node, const std::string& how, Effects& out) {
  roster_.set_session(node, {});
  const Standing standing = node.standing();
  const bool only_waits = standing == Standing::kReady || state_ == State::kEnding;
  if (only_waits || can_do_without(node)) {
    out.push_back(Note{format("{} is gone: {}", node.name(), how)});
    if (state_ == State::kEnding && node.reported) --heard_verdict_;
    // It may come back for the verdict, which nobody could tell it when we are gone.
    if (standing != Standing::kReady && !(state_ == State::kEnding && node.reported)) wait_for_witnesses(now_ms_ + birth_.lease.over_ms());
    return forget(node);
  }
  out.push_back(Note{format("{} is lost: {}", node.name(), how)});
  if (standing != Standing::kLeaving) {
    stopping_.lost.push_back({node.place.node_rank, node.address, how});
    if (const auto until_ms = losses_.lose(node.identity(), now_ms_)) {
      out.push_back(Note{format("{} is kept out for {} s: it was lost too often", node.name(), (*until_ms - now_ms_) / 1000)});
    }
  }
  node.passed_check = false;
  node.lease_over_ms = node.last_heard_ms + birth_.lease.over_ms();
  roster_.move(node, Standing::kLost);
  leases_.emplace(node.lease_over_ms, node.agent);
  if (is_in_round()) stop_round(out);
}

void Coordinator::forget(Node& node) {
  leases_.erase({node.lease_over_ms, node.agent});
  roster_.erase(node.agent);
}

void Coordinator::look_for_silent(Effects& out) {
  const std::int64_t timeout_ms = birth_.lease.loss_timeout_ms;
  if (now_ms_ - silence_check_ms_ > birth_.lease.renewal_ms()) {
    // We have been asleep ourselves: what nodes have sent meanwhile is to be read first.
    silence_check_ms_ = now_ms_ + birth_.lease.renewal_ms();
    return;
  }
  silence_check_ms_ = kNever;
  std::vector<Node*> silent;
  for (auto& [agent, node] : roster_.nodes()) {
    if (!node.session || node.hosts_coordinator) continue;
    if (node.last_heard_ms + timeout_ms <= now_ms_) {
      silent.push_back(&node);
    } else {
      silence_check_ms_ = std::min(silence_check_ms_, node.last_heard_ms + timeout_ms);
    }
  }
  for (Node* node : silent) {
    const std::string how = format("nothing was heard of it for {} ms", now_ms_ - node->last_heard_ms);
    out.push_back(Drop{*node->session, how});
    lose(*node, how, out);
  }
}

// --- The end. --------------------------------------------------------------------------------------

void Coordinator::end(Verdict verdict, Effects& out) {
  verdict.round = round_.value_or(0);
  verdict.restarts_used = budget_.used();
  out.push_back(Note{format("the job has {}{}", verdict.outcome == Verdict::Outcome::kSucceeded ? "succeeded"
                                                : verdict.outcome == Verdict::Outcome::kFailed  ? "failed"
                                                                                                : "been stopped",
                            verdict.reason.empty() ? "" : format(": {}", verdict.reason))});
  state_ = State::kEnding;
  verdict_ = verdict;
  heard_verdict_ = 0;
  for (const Held& held : held_) {
    out.push_back(Send{held.session, Rejected{Rejected::Why::kJobEnding, "the job is ending", 1000}});
  }
  held_.clear();
  if (!leases_.empty()) wait_for_witnesses(leases_.rbegin()->first);
  while (!leases_.empty()) forget(*roster_.find(leases_.begin()->second));
  for (auto& [agent, node] : roster_.nodes()) {
    node.reported = false;
    out.push_back(Send{*node.session, EndJob{verdict}});
  }
  dismiss_if_all_heard(out);
}

// Nodes that have lost their session just now may yet ask how the job has ended: so long the end waits for them.
void Coordinator::wait_for_witnesses(std::int64_t until_ms) {
  ending_not_before_ms_ = std::max(ending_not_before_ms_, until_ms);
}

void Coordinator::dismiss_if_all_heard(Effects& out) {
  if (heard_verdict_ < roster_.size()) return;
  if (now_ms_ < ending_not_before_ms_) return look_again(ending_not_before_ms_);
  state_ = State::kEnded;
  for (auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, Dismiss{}});
}

// --- Small words. ----------------------------------------------------------------------------------

bool Coordinator::is_in_round() const {
  return state_ == State::kPreparing || state_ == State::kRunning || state_ == State::kStopping ||
         state_ == State::kRebuilding;
}

bool Coordinator::can_do_without(const Node& node) const {
  // What is done is done; only the node that serves the round's store is needed to the end.
  return node.standing() == Standing::kDone && state_ == State::kRunning && node.place.node_rank != 0;
}

bool Coordinator::is_current(const Node& node, RoundNumber round) const {
  return round_ == round && node.standing() != Standing::kReady && node.standing() != Standing::kLost;
}

std::size_t Coordinator::in_round() const {
  return roster_.count(Standing::kMember) + roster_.count(Standing::kDone);
}

std::size_t Coordinator::not_yet_stopped() const {
  return roster_.count(Standing::kStopping) + roster_.count(Standing::kLeaving);
}

void Coordinator::look_again(std::optional<std::int64_t> when_ms) {
  if (when_ms && (!look_again_ms_ || *when_ms < *look_again_ms_)) look_again_ms_ = when_ms;
}

}  // namespace elastic::job
