#include "rendezvous/agent/link.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/overloaded.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

namespace {

constexpr std::int64_t kFirstDelayMs = 50;

constexpr const char* kNotAnswered = "the connection attempt timed out";
constexpr const char* kSaysNothing = "it accepts the connection, but sends nothing";

// The kernel of the host of the coordinator that the agent has lost shows that its process is gone.
Link::Log coordinator_is_dead(const char* why) { return {format("the coordinator's process has ended: {}", why)}; }

}  // namespace

Link::Effects Link::begin(std::int64_t now_ms) {
  began_ms_ = now_ms;
  rest(0, now_ms);
  return on_time({}, now_ms);
}

Link::Effects Link::connected(const Connected& connection, std::int64_t now_ms) {
  Effects out;
  if (state_ != State::kConnecting) return out;
  state_ = State::kGreeting;
  is_same_place_ = connection.is_same_place;
  Introduction introduction{settings_.job, settings_.agent, own_incarnation_, term_};
  introduction.may_begin = connection.may_begin && !follower_.probes();
  session_.emplace(std::move(introduction), settings_.secret, connection.nonce);
  joined_ms_ = now_ms;
  greet_until_ms_ = std::max(greet_until_ms_, now_ms + follower_.greeting_ms(now_ms).value_or(0));
  out.push_back(Write{session_->begin()});
  out.push_back(Joining{});
  return out;
}

Link::Effects Link::broken(const std::string& why, bool has_refused, const Owner& owner, std::int64_t now_ms,
                           bool is_further) {
  Effects out;
  if (state_ == State::kOver || state_ == State::kResting) return out;
  has_connection_ = false;
  const bool was_attached = state_ == State::kAttached;
  if (was_attached) detach(why, out);
  if (!is_further || last_problem_.empty()) failed(why);
  if (has_refused && follower_.refused(node(owner, now_ms), now_ms)) {
    out.push_back(coordinator_is_dead("its host refuses connections to its port"));
  }
  try_again(has_refused, was_attached && has_lasted(now_ms), now_ms);
  Effects more = on_time(owner, now_ms);
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return out;
}

Link::Effects Link::received(Bytes bytes, const Owner& owner, std::int64_t now_ms) {
  Effects out;
  judge_lease(owner, now_ms, out);
  if (!session_) return out;
  ByteString reply;
  const std::vector<AgentSession::Event> events = session_->receive(bytes, reply);
  if (!reply.empty()) out.push_back(Write{std::move(reply)});
  // Only whole frames are a sign of life: the rest of one that has begun may never come.
  if (!events.empty()) heard_ms_ = now_ms;
  for (const AgentSession::Event& event : events) {
    if (!session_) break;
    on_session_event(event, owner, now_ms, out);
  }
  return out;
}

void Link::on_session_event(const AgentSession::Event& event, const Owner& owner, std::int64_t now_ms, Effects& out) {
  std::visit(
      Overloaded{
          [&](const AgentSession::Welcomed& e) {
            const auto welcomed = follower_.welcomed(e.welcome, is_same_place_, node(owner, now_ms), now_ms);
            if (welcomed.is_proof) out.push_back(coordinator_is_dead(welcomed.why_not));
            if (welcomed.why_not != nullptr) {
              disconnect(out);
              failed(welcomed.why_not);
              return try_again(welcomed.has_refused, false, now_ms);
            }
            state_ = State::kAttached;
            was_attached_ = true;
            attached_ms_ = now_ms;
            attempts_ = short_sessions_;
            grants_ = true;
            lease_ = {e.welcome.loss_timeout_ms};
            term_ = e.welcome.term;
            incarnation_ = e.welcome.incarnation;
            // While workers run, only answers to this session's keep-alives extend their lease: the node may
            // yet be rejected.
            if (!owner.needs_lease) lease_until_ms_ = joined_ms_ + granted_ms(e.welcome.good_for_ms);
            keep_alive_at_ms_ = now_ms;
            out.push_back(Attached{});
          },
          [&](const AgentSession::LeaseGrant& e) {
            const std::int64_t until_ms = e.sent_ms + granted_ms(e.good_for_ms);
            lease_until_ms_ = std::max(lease_until_ms_.value_or(until_ms), until_ms);
            grants_ = !e.asks || e.good_for_ms != 0;
            if (grants_) since_ms_ = now_ms;  // a coordinator was here, whatever becomes of it in this session
            const auto ack = follower_.lease_granted(session_->welcome(), {e.good_for_ms, e.asks, grants_}, now_ms);
            if (!ack) return;
            ByteString bytes;
            session_->acknowledge_lease(e.number, ack->voter_state, bytes);
            out.push_back(Write{std::move(bytes)});
          },
          [&](const AgentSession::Received& e) {
            term_ = session_->welcome().term;
            incarnation_ = session_->welcome().incarnation;
            on_message(e.message, now_ms, out);
          },
          [&](const AgentSession::Stale& e) { out.push_back(Log{e.text}); },
          [&](const SessionError& e) {
            const bool will_not_change = e.kind == SessionError::Kind::kSecret ||
                                         e.kind == SessionError::Kind::kVersion ||
                                         e.kind == SessionError::Kind::kNotOurs;
            disconnect(out, e.redirect && e.redirect->knows_nothing);
            const bool was_attached = state_ == State::kAttached;
            if (was_attached) detach(e.text, out);
            session_.reset();
            const bool leads_on = e.redirect && (!e.redirect->addresses.empty() || e.redirect->retry_ms);
            failed(e.text, !leads_on);
            if (will_not_change && !was_attached_ && !settings_.may_meet_others) {
              state_ = State::kOver;
              const bool is_named = !settings_.endpoint.empty();
              out.push_back(GiveUp{is_named ? format("{}: {}", settings_.endpoint, e.text) : e.text});
              return;
            }
            if (was_attached) (void)has_lasted(now_ms);
            if (e.redirect) follower_.redirected(*e.redirect);
            try_again(false, false, now_ms);
          },
      },
      event);
}

// Handles the messages about the link itself; the rest is the owner's.
void Link::on_message(const CoordinatorMessage& message, std::int64_t now_ms, Effects& out) {
  ByteString bytes;
  if (std::holds_alternative<AreYouThere>(message)) {
    session_->keep_alive(now_ms, bytes);
    out.push_back(Write{std::move(bytes)});
    return;
  }
  const auto* end = std::get_if<EndJob>(&message);
  if (end != nullptr && follower_.has_run_after(end->job_result, session_->welcome())) {
    // A coordinator that was cut off has ended the job, while the others and this node have gone on with another
    // coordinator.
    disconnect(out);
    detach(format("an old verdict, of round {}, was given there", end->job_result.round), out);
    grants_ = false;
    // A search that is on must not begin anew, as after the loss of a candidate: it would come back here before it asks
    // anybody else.
    if (follower_.is_searching()) state_ = State::kGreeting;
    return try_again(false, false, now_ms);
  }
  if (const auto* resigned = std::get_if<Resigned>(&message)) {
    follower_.on_resigned(session_->welcome(), now_ms);
    disconnect(out);
    if (resigned->transfers_leadership) {
      has_transferred_leadership_ = settings_.local;
      detach(format("the coordinator is handed over to another node: {}", resigned->why), out, lease_.search_ms());
    } else {
      detach(format("the coordinator has resigned: {}", resigned->why), out);
    }
    // A coordinator that transfers its leadership has a next leader: the others need not wait.
    const bool lasted = has_lasted(now_ms);
    try_again(false, lasted || resigned->transfers_leadership, now_ms);
    return;
  }
  if (const auto* prepare = std::get_if<PrepareRound>(&message)) {
    if (follower_.on_prepare_round(*prepare, session_->welcome(), now_ms)) {
      session_->send(RoundHeard{prepare->round}, bytes);
      out.push_back(Write{std::move(bytes)});
    }
  }
  if (const auto* next = std::get_if<NextRound>(&message)) {
    follower_.on_next_round(*next, session_->welcome());
    session_->send(RoundHeard{next->next.number}, bytes);
    out.push_back(Write{std::move(bytes)});
  }
  if (const auto* run = std::get_if<RunWorkers>(&message)) follower_.on_run_workers(*run);
  out.push_back(Deliver{message});
}

Link::Effects Link::on_time(const Owner& owner, std::int64_t now_ms) {
  Effects out;
  if (state_ == State::kOver) return out;
  judge_lease(owner, now_ms, out);
  if (!out.empty()) return out;  // it changes what the owner knows
  // The node cannot look for the coordinator while its workers end.
  if (is_bound_to_coordinator() && state_ == State::kResting && !owner.may_connect)
    since_ms_ = std::max(since_ms_, now_ms);
  if (state_ != State::kAttached && now_ms >= give_up_at()) {
    give_up(now_ms, out);
    return out;
  }
  switch (state_) {
    case State::kResting: {
      if (now_ms < try_at_ms_ || !owner.may_connect) break;
      state_ = State::kConnecting;
      ELASTIC_CHECK(!has_connection_);
      has_connection_ = true;
      election::Follower::Attempt attempt = follower_.next_peer(now_ms);
      out.push_back(Connect{std::move(attempt.to)});
      greet_until_ms_ = now_ms + attempt.patience_ms.value_or(settings_.greeting_ms);
      break;
    }
    case State::kConnecting:
    case State::kGreeting:
      if (now_ms < greet_until_ms_) break;
      if (!settings_.discovery_explains || last_problem_.empty()) {
        failed(state_ == State::kConnecting ? kNotAnswered : kSaysNothing);
      }
      disconnect(out);
      try_again(false, false, now_ms);
      break;
    case State::kAttached:
      if (!settings_.local && now_ms >= silent_until_ms()) {
        const std::string why = format("the coordinator has been silent for {} ms", now_ms - heard_ms_);
        disconnect(out);
        detach(why, out);
        try_again(false, has_lasted(now_ms), now_ms);
        break;
      }
      if (now_ms >= keep_alive_at_ms_) {
        ByteString bytes;
        session_->keep_alive(now_ms, bytes);
        out.push_back(Write{std::move(bytes)});
        keep_alive_at_ms_ = now_ms + lease_.renewal_ms();
      }
      break;
    case State::kOver: break;
  }
  return out;
}

Link::Effects Link::send(const AgentMessage& message) {
  Effects out;
  const auto* leaves = std::get_if<NodeLeaves>(&message);
  const bool is_done = leaves != nullptr && leaves->signal == 0;
  if (is_done) follower_.leaves(attached() ? &session_->welcome() : nullptr);
  if (!session_) return out;
  ByteString bytes;
  session_->send(message, bytes);
  if (!bytes.empty()) out.push_back(Write{std::move(bytes)});
  return out;
}

Link::Effects Link::rejected(const std::string& reason, std::optional<std::int64_t> retry_ms, std::int64_t now_ms) {
  Effects out;
  if (state_ == State::kOver) return out;
  disconnect(out);
  if (state_ == State::kAttached) detach(format("the coordinator has turned the node away: {}", reason), out);
  failed(reason);
  session_.reset();
  if (retry_ms) {
    rest(*retry_ms, now_ms);
  } else {
    state_ = State::kOver;
  }
  return out;
}

Link::Effects Link::close() {
  Effects out;
  disconnect(out);
  session_.reset();
  state_ = State::kOver;
  return out;
}

std::optional<std::int64_t> Link::next_deadline_ms(const Owner& owner) const {
  std::optional<std::int64_t> next;
  const auto at = [&](std::int64_t when_ms) { next = std::min(next.value_or(when_ms), when_ms); };
  if (state_ == State::kOver) return {};
  if (owner.needs_lease && lease_until_ms_) at(*lease_until_ms_);
  switch (state_) {
    case State::kResting:
      if (owner.may_connect) at(try_at_ms_);
      at(give_up_at());
      break;
    case State::kConnecting:
    case State::kGreeting:
      at(greet_until_ms_);
      at(give_up_at());
      break;
    case State::kAttached:
      at(keep_alive_at_ms_);
      if (!settings_.local) at(silent_until_ms());
      break;
    case State::kOver: break;
  }
  return next;
}

std::optional<Waiting> Link::waiting() const {
  if (state_ == State::kAttached || state_ == State::kOver) return {};
  const std::string known = last_problem_.empty() && state_ == State::kGreeting ? kSaysNothing : last_problem_;
  const std::string problem = known.empty() ? "" : format(" ({})", known);
  Waiting out{.what = format("waiting for the coordinator at {}{}", settings_.endpoint, problem),
              .since_ms = std::max(began_ms_, std::min(since_ms_, rested_ms_)),
              .until_ms = give_up_at(),
              .for_others = true};
  if (state_ == State::kResting && is_told_to_wait_) {
    out.advice = format("this node waits to be let in: {}", last_problem_);
    out.advice_at_once = true;
  }
  return out;
}

// How long a lease lasts in milliseconds: no longer than the coordinator that grants it may act.
std::int64_t Link::granted_ms(std::optional<std::int64_t> good_for_ms) const {
  const std::int64_t lease_ms = lease_.lease_ms();
  return std::clamp<std::int64_t>(good_for_ms.value_or(lease_ms), 0, lease_ms);
}

// When a lease that is needed is over, the workers are killed before anything else is done.
void Link::judge_lease(const Owner& owner, std::int64_t now_ms, Effects& out) {
  if (!owner.needs_lease || !lease_until_ms_ || now_ms < *lease_until_ms_) return;
  lease_until_ms_.reset();
  out.push_back(LeaseOver{});
  if (state_ == State::kOver) return;
  // A node that was suspended, is told to wait, or whose coordinator fell silent has not looked for it yet, and has as
  // long as another lease for that.
  if (is_bound_to_coordinator()) {
    if (state_ != State::kAttached && has_tried_) return give_up(now_ms, out);
    if (now_ms < since_ms_) return;
    since_ms_ = now_ms;
  }
  if (state_ != State::kResting) disconnect(out);
  if (state_ == State::kAttached) detach("the lease is over", out);
  rest(0, now_ms);
}

void Link::give_up(std::int64_t now_ms, Effects& out) {
  if (state_ != State::kResting) disconnect(out);
  const bool is_explained = settings_.discovery_explains && !last_problem_.empty();
  if (state_ == State::kConnecting && last_problem_.empty()) failed(kNotAnswered);
  if (state_ == State::kGreeting && !is_explained) failed(kSaysNothing);
  session_.reset();
  state_ = State::kOver;
  const std::string problem = last_problem_.empty() ? "" : format(": {}", last_problem_);
  const std::int64_t seconds = (now_ms - began_ms_) / 1000;
  const std::string place = settings_.endpoint.empty() ? "" : format(" at {}", settings_.endpoint);
  const char* const bound = is_bound_to_coordinator() ? " in time, and no other node can take over" : "";
  out.push_back(GiveUp{was_attached_
                           ? format("{}{} and could not reconnect{}{}", kLostCoordinator, place, bound, problem)
                           : format("{}{} within {} s{}", kFoundNoCoordinator, place, seconds, problem)});
}

void Link::disconnect(Effects& out, bool is_stranger) {
  has_connection_ = false;
  out.emplace_back(Disconnect{is_stranger});
}

void Link::detach(const std::string& why, Effects& out, std::optional<std::int64_t> votes_for_ms) {
  session_.reset();
  // Who has refused the node knows more than a candidate in its own process that was not elected.
  const bool is_lost_election = settings_.local && !grants_;
  if (!is_refused_ || !is_lost_election) failed(why);
  out.push_back(Detached{why, votes_for_ms});
}

void Link::failed(std::string why, bool is_refused) {
  last_problem_ = std::move(why);
  is_refused_ = is_refused;
}

void Link::rest(std::int64_t delay_ms, std::int64_t now_ms) {
  const bool is_told_to_wait = delay_ms > LeaseTimes::kLongestPauseMs;
  // A candidate that was not elected does not count as a coordinator that was found.
  const bool has_lost_one = state_ == State::kAttached && grants_;
  // After a split vote a random pause lets one node become a candidate before the others look for it.
  if (state_ == State::kAttached && follower_.is_searching()) delay_ms += random(lease_.renewal_ms() / 2);
  is_told_to_wait_ = is_told_to_wait;
  if (has_lost_one || is_told_to_wait) {
    since_ms_ = now_ms + (is_told_to_wait ? delay_ms : 0);
    has_tried_ = false;
  }
  if (state_ == State::kAttached) follower_.lost(lease_, now_ms);
  session_.reset();
  state_ = State::kResting;
  rested_ms_ = now_ms;
  try_at_ms_ = now_ms + delay_ms;
}

void Link::try_again(bool has_refused, bool at_once, std::int64_t now_ms) {
  if (state_ != State::kAttached) has_tried_ = true;
  if (at_once) return rest(0, now_ms);
  const auto again_at_ms = follower_.ask_again_ms(has_refused, now_ms);
  rest(again_at_ms ? *again_at_ms - now_ms : back_off(), now_ms);
}

election::Follower::Node Link::node(const Owner& owner, std::int64_t now_ms) const {
  const bool holds_lease = lease_until_ms_ && now_ms < *lease_until_ms_;
  return {.holds_lease = holds_lease, .runs_workers = owner.runs_workers, .belongs_to = own_incarnation_};
}

bool Link::hears_coordinator(std::int64_t now_ms) const {
  return state_ == State::kAttached && (settings_.local || now_ms < heard_ms_ + 2 * lease_.renewal_ms());
}

// Once the node is free to vote for another coordinator this one no longer counts its vote.
std::int64_t Link::silent_until_ms() const {
  if (follower_.next_leaders().empty()) return heard_ms_ + lease_.loss_timeout_ms;
  return std::max(heard_ms_ + lease_.lease_ms(), follower_.free_at_ms(heard_ms_).value_or(0));
}

std::optional<std::int64_t> Link::may_elect_from_ms(std::int64_t now_ms) const {
  const bool seeks = state_ == State::kAttached ? !hears_coordinator(now_ms) : follower_.is_searching();
  if (!seeks || state_ == State::kOver || follower_.next_leaders().empty() || has_transferred_leadership_) return {};
  if (follower_.has_left()) return {};
  return follower_.free_at_ms(now_ms);
}

// Each pause is twice as long as the one before, with a random half, so that a thousand agents do not come at once.
std::int64_t Link::back_off() {
  // A coordinator that has to be found again in time is asked as often as a lease would be renewed.
  const std::int64_t longest_ms = is_bound_to_coordinator() ? std::min(lease_.renewal_ms(), LeaseTimes::kLongestPauseMs)
                                                            : LeaseTimes::kLongestPauseMs;
  std::int64_t delay_ms = kFirstDelayMs;
  for (int i = 0; i < attempts_ && delay_ms < longest_ms; ++i) delay_ms *= 2;
  ++attempts_;
  delay_ms = std::min(delay_ms, longest_ms);
  return delay_ms / 2 + random(delay_ms) / 2;
}

std::int64_t Link::random(std::int64_t most) {
  settings_.seed = settings_.seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<std::int64_t>((settings_.seed >> 33) % static_cast<std::uint64_t>(most + 1));
}

// A session that is cut off as soon as it begins counts as a failed attempt, and makes the next pause longer.
bool Link::has_lasted(std::int64_t now_ms) {
  const bool lasted = now_ms - attached_ms_ >= lease_.renewal_ms();
  short_sessions_ = lasted ? 0 : short_sessions_ + 1;
  if (lasted) attempts_ = 0;
  return lasted;
}

void Link::check_invariants() const {
  const bool is_greeted = state_ == State::kGreeting || state_ == State::kAttached;
  ELASTIC_CHECK(has_connection_ == (is_greeted || state_ == State::kConnecting));
  ELASTIC_CHECK(session_.has_value() == is_greeted);
  ELASTIC_CHECK(!session_ || session_->welcome().term >= term_);
  ELASTIC_CHECK(was_attached_ || (!lease_until_ms_ && own_incarnation_ == 0));
  if (has_connection_) ELASTIC_CHECK(greet_until_ms_ > try_at_ms_);
  if (is_greeted) ELASTIC_CHECK(joined_ms_ >= try_at_ms_);
  if (state_ == State::kAttached) {
    ELASTIC_CHECK(was_attached_ && lease_.loss_timeout_ms > 0);
    ELASTIC_CHECK(joined_ms_ <= attached_ms_ && attached_ms_ <= heard_ms_ && attached_ms_ <= keep_alive_at_ms_);
  }
}

std::int64_t Link::give_up_at() const {
  // The coordinator waits for a node that was in a round only shortly, or replaces it; other nodes may wait for the
  // first round.
  if (own_incarnation_ == 0) return std::max(began_ms_, since_ms_) + settings_.join_timeout_ms;
  return since_ms_ + lease_.lease_ms() + (is_bound_to_coordinator() ? 0 : settings_.rejoin_ms);
}

}  // namespace elastic::agent
