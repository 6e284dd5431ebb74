#include "rendezvous/protocol/session.h"

#include <algorithm>

#include "rendezvous/protocol/big_endian.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/term.h"
#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

using Kind = SessionError::Kind;

// How many bytes of a REFUSED's reason are quoted.
constexpr std::size_t kQuotedBytes = 1000;

// A frame's name with its article: "a StopWorkers", "an EndJob".
std::string one(FrameType type) {
  const std::string name = name_of(type);
  return format("{} {}", name.starts_with('E') || name.starts_with('A') ? "an" : "a", name);
}

// A fault of the other side: `error` is for this side, and `told` is the REFUSED that the other side gets.
struct Fault {
  SessionError error;
  std::string told;
};
Fault fault(Kind kind, const std::string& what_it_did) { return {{kind, "it " + what_it_did}, "you " + what_it_did}; }

Fault cannot_read(FrameType type, const std::string& why) {
  return fault(Kind::kMalformed, format("sent {} that cannot be read: {}", one(type), why));
}

Fault not_due(FrameType type) {
  if (name_of(type).starts_with("frame")) return fault(Kind::kMalformed, format("sent {}", one(type)));
  return fault(Kind::kOutOfOrder, format("sent {}, which was not due", one(type)));
}

// Why no further frame can be read.
Fault unreadable(const FrameReader& reader, FrameReader::Step step, std::size_t limit) {
  if (step == FrameReader::Step::kStranger) return {{Kind::kNotOurs, reader.stranger()}, {}};
  if (step == FrameReader::Step::kTooShort) {
    return fault(Kind::kMalformed, format("sent a frame of {} bytes, too few for any", reader.length()));
  }
  return fault(Kind::kTooLong, format("sent a frame of {} bytes; at most {} are allowed", reader.length(), limit));
}

Fault other_major(const Version& theirs, const Version& ours) {
  const std::string text = format(
      "version {} of the agent protocol, and this node speaks {}: run the same release of "
      "elastic-run on all nodes",
      theirs.text(), ours.text());
  return {{Kind::kVersion, "it speaks " + text}, "you speak " + text};
}

Fault wrong_secret(const Key& ours, bool they_have_none) {
  const bool we_have_none = ours == key_of("");
  std::string text = "it was started with another secret than this node";
  if (they_have_none) text = "it was started without a secret, and this node with one";
  if (we_have_none) text = "it was started with a secret, and this node without one";
  return {{Kind::kSecret, text},
          "your proof of the job's secret is wrong: start all nodes of the job with the same one, or all "
          "without"};
}

// The other side's REFUSED, as an error of this session.
SessionError refused_by(const Frame& frame, const Version& ours) {
  const auto version = read_version(frame);
  if (version && version->major != ours.major) return other_major(*version, ours).error;
  auto refused = read_frame<Refused>(frame);
  if (!refused) return cannot_read(frame.type, refused.error()).error;
  return {Kind::kRefused, format("it refused us: {}", printable(refused->reason, kQuotedBytes)),
          std::move(refused->redirect)};
}

void append(ByteString& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

// The two proofs of a session: the agent's is over the whole CHALLENGE, the coordinator's over the fields before its
// proof.
Proof coordinator_proof(const Key& key, Bytes hello, const Challenge& challenge) {
  const auto major = to_big_endian(challenge.version.major), minor = to_big_endian(challenge.version.minor);
  return prove(key, Side::kCoordinator, {hello, major, minor, challenge.nonce});
}
Proof agent_proof(const Key& key, Bytes hello, Bytes challenge) { return prove(key, Side::kAgent, {hello, challenge}); }

}  // namespace

// --- The agent's end. ----------------------------------------------------------------------------------

AgentSession::AgentSession(Introduction introduction, const std::string& secret, const Nonce& nonce,
                           const Version& version)
    : introduction_(std::move(introduction)), key_(key_of(secret)), nonce_(nonce), version_(version) {
  ELASTIC_CHECK(introduction_.job.size() <= limits::kAgentNameBytes);
  welcome_ = {.term = introduction_.term, .incarnation = introduction_.incarnation};
}

Stamp AgentSession::stamp() const { return {welcome_.incarnation, welcome_.term, 0}; }

ByteString AgentSession::begin() {
  append_frame(
      hello_, stamp(),
      Hello{version_, introduction_.job, introduction_.agent, nonce_, introduction_.gossips, introduction_.may_begin});
  ByteString out(kMark.begin(), kMark.end());
  append(out, hello_);
  return out;
}

std::vector<AgentSession::Event> AgentSession::receive(Bytes bytes, ByteString& out) {
  ELASTIC_CHECK(!hello_.empty());
  Events events;
  while (state_ != State::kBroken) {
    const FrameReader::Step step = reader_.next(bytes, limits::kAgentFrameBytes);
    if (step == FrameReader::Step::kNeedMore) break;
    if (step == FrameReader::Step::kFrame) {
      on_frame(reader_.frame(), events, out);
    } else {
      const Fault found = unreadable(reader_, step, limits::kAgentFrameBytes);
      end(found.error, found.told, events, out);
    }
  }
  check_invariants();
  return events;
}

void AgentSession::on_frame(const Frame& frame, Events& events, ByteString& out) {
  if (frame.type == FrameType::kRefused) {
    SessionError error = refused_by(frame, version_);
    if (state_ == State::kHello) error.redirect.reset();  // the other side has proven nothing
    return end(std::move(error), {}, events, out);
  }
  if (state_ == State::kHello && frame.type == FrameType::kChallenge) return take_challenge(frame, events, out);
  if (state_ == State::kProved && frame.type == FrameType::kWelcome) return take_welcome(frame, events, out);
  if (state_ == State::kProved && frame.type == FrameType::kRejected) return take_message(frame, events, out);
  if (state_ == State::kWelcomed && frame.type == FrameType::kLeaseGrant) return take_lease_grant(frame, events, out);
  if (state_ == State::kWelcomed && is_coordinator_message(frame.type)) return take_message(frame, events, out);
  if (state_ != State::kHello && is_optional(frame.type)) return;
  const Fault found = not_due(frame.type);
  end(found.error, found.told, events, out);
}

void AgentSession::take_challenge(const Frame& frame, Events& events, ByteString& out) {
  const auto give_up = [&](const Fault& found) { end(found.error, found.told, events, out); };
  const auto version = read_version(frame);
  if (version && version->major != version_.major) return give_up(other_major(*version, version_));
  const auto challenge = read_frame<Challenge>(frame);
  if (!challenge) return give_up(cannot_read(frame.type, challenge.error()));
  // The coordinator has to prove first: one that does not know the secret learns nothing of it.
  if (!same_proof(challenge->proof, coordinator_proof(key_, hello_, *challenge))) {
    const Proof without = coordinator_proof(key_of(""), hello_, *challenge);
    return give_up(wrong_secret(key_, same_proof(challenge->proof, without)));
  }
  append_frame(out, stamp(), ProofFrame{agent_proof(key_, hello_, frame.whole)});
  state_ = State::kProved;
  if (!waiting_.empty() && std::holds_alternative<NodeJoins>(waiting_.front())) {
    append_frame(out, stamp(), waiting_.front());
    waiting_.erase(waiting_.begin());
  }
}

void AgentSession::take_welcome(const Frame& frame, Events& events, ByteString& out) {
  const auto give_up = [&](const Fault& found) { end(found.error, found.told, events, out); };
  const auto read = read_frame<WelcomeFrame>(frame);
  if (!read) return give_up(cannot_read(frame.type, read.error()));
  if (read->loss_timeout_ms <= 0 || read->loss_timeout_ms > limits::kMaxTimeoutSeconds * 1000) {
    return give_up(cannot_read(frame.type, format("a loss timeout is {} ms", read->loss_timeout_ms)));
  }
  const Term term = frame.stamp.term;
  if (term < introduction_.term) {
    return give_up({{Kind::kOlderTerm, format("it is the coordinator of term {}, but this node has met one of term {}",
                                              text_of_term(term), text_of_term(introduction_.term))},
                    format("there is a coordinator of term {}, and you are at term {}",
                           text_of_term(introduction_.term), text_of_term(term))});
  }
  welcome_ = {term, frame.stamp.incarnation, read->loss_timeout_ms, read->good_for_ms, read->host};
  state_ = State::kWelcomed;
  events.push_back(Welcomed{welcome_});
  send_waiting(events, out);
}

// Messages about another incarnation of the job mean nothing in this one, except that the node leaves.
void AgentSession::send_waiting(Events& events, ByteString& out) {
  const bool is_another = introduction_.incarnation != 0 && introduction_.incarnation != welcome_.incarnation;
  for (const AgentMessage& message : std::exchange(waiting_, {})) {
    if (!is_another || std::holds_alternative<NodeJoins>(message) || std::holds_alternative<NodeLeaves>(message)) {
      append_frame(out, stamp(), message);
    } else {
      events.push_back(Stale{format("{} of this node, which is about another start of the job than the coordinator's",
                                    one(type_of(message)))});
    }
  }
}

void AgentSession::take_lease_grant(const Frame& frame, Events& events, ByteString& out) {
  const auto granted = read_frame<LeaseGrantFrame>(frame);
  if (granted && granted->number <= last_keep_alive_ && is_stale(frame, events)) return;
  if (!granted || granted->number > last_keep_alive_) {
    const Fault found =
        granted ? fault(Kind::kOutOfOrder, format("answered keep-alive {}, which was not sent", granted->number))
                : cannot_read(frame.type, granted.error());
    return end(found.error, found.told, events, out);
  }
  while (!unanswered_.empty() && unanswered_.front().first < granted->number) unanswered_.pop_front();
  if (unanswered_.empty() || unanswered_.front().first != granted->number) {
    events.push_back(Stale{format("the answer to keep-alive {}, which was answered or is too old", granted->number)});
    return;
  }
  events.push_back(LeaseGrant{unanswered_.front().second, granted->good_for_ms, granted->number, granted->asks});
  if (granted->good_for_ms != 0) unanswered_.pop_front();
}

void AgentSession::take_message(const Frame& frame, Events& events, ByteString& out) {
  auto message = read_frame<CoordinatorMessage>(frame);
  if (!message) {
    const Fault found = cannot_read(frame.type, message.error());
    return end(found.error, found.told, events, out);
  }
  if (state_ == State::kWelcomed && is_stale(frame, events)) return;
  if (const auto* prepare = std::get_if<PrepareRound>(&*message)) round_ = prepare->round;
  events.push_back(Received{std::move(*message)});
}

// A connection leads to one coordinator, whose frames come in order: it has taken over a job if they carry another
// incarnation, with the same term or a higher one.
bool AgentSession::is_stale(const Frame& frame, Events& events) {
  const Stamp& its = frame.stamp;
  if (its.term < welcome_.term) {
    events.push_back(Stale{format("{} of term {}, and the coordinator is at {}", one(frame.type),
                                  text_of_term(its.term), text_of_term(welcome_.term))});
    return true;
  }
  if (its.incarnation != welcome_.incarnation) round_.reset();
  welcome_.term = its.term;
  welcome_.incarnation = its.incarnation;
  // An old StopWorkers does no harm, and messages without a round are never old.
  const bool goes_with_round = frame.type == FrameType::kPrepareRound || frame.type == FrameType::kRunCheck ||
                               frame.type == FrameType::kRunWorkers;
  if (!goes_with_round || !round_ || its.round >= *round_) return false;
  events.push_back(Stale{format("{} of round {}, and the job is at round {}", one(frame.type), its.round, *round_)});
  return true;
}

void AgentSession::send(const AgentMessage& message, ByteString& out) {
  if (state_ == State::kBroken) return;
  const bool is_first = waiting_.empty() && std::holds_alternative<NodeJoins>(message);
  const bool may_go = state_ == State::kWelcomed || (state_ == State::kProved && is_first);
  if (may_go) return append_frame(out, stamp(), message);
  waiting_.push_back(message);
}

void AgentSession::keep_alive(std::int64_t now_ms, ByteString& out) {
  if (state_ != State::kWelcomed) return;
  unanswered_.emplace_back(++last_keep_alive_, now_ms);
  if (unanswered_.size() > limits::kAgentUnansweredKeepAlives) unanswered_.pop_front();
  append_frame(out, stamp(), KeepAliveFrame{last_keep_alive_});
  check_invariants();
}

void AgentSession::acknowledge_lease(std::uint64_t number, std::optional<VoterState> voter_state, ByteString& out) {
  if (state_ != State::kWelcomed) return;
  append_frame(out, stamp(), LeaseAckFrame{number, std::move(voter_state)});
}

void AgentSession::end(SessionError error, const std::string& told, Events& events, ByteString& out) {
  if (!told.empty()) append_frame(out, stamp(), Refused{version_, told, {}});
  state_ = State::kBroken;
  waiting_.clear();
  events.push_back(std::move(error));
}

void AgentSession::check_invariants() const {
  const bool may_talk = state_ == State::kWelcomed || state_ == State::kBroken;
  ELASTIC_CHECK(state_ == State::kHello || !hello_.empty());
  ELASTIC_CHECK(waiting_.empty() || !may_talk);
  ELASTIC_CHECK(may_talk || (last_keep_alive_ == 0 && !round_));
  ELASTIC_CHECK(welcome_.term >= introduction_.term);
  // The remembered keep-alives are the last ones, without a gap.
  ELASTIC_CHECK(unanswered_.size() <= limits::kAgentUnansweredKeepAlives);
  ELASTIC_CHECK(unanswered_.empty() || (unanswered_.back().first == last_keep_alive_ &&
                                        unanswered_.front().first + unanswered_.size() == last_keep_alive_ + 1));
}

// --- The coordinator's end. ----------------------------------------------------------------------------

CoordinatorSession::CoordinatorSession(const std::string& secret, const Nonce& nonce, const Version& version)
    : key_(key_of(secret)), nonce_(nonce), version_(version) {}

Stamp CoordinatorSession::stamp() const { return {welcome_.incarnation, welcome_.term, 0}; }

std::vector<CoordinatorSession::Event> CoordinatorSession::receive(Bytes bytes, ByteString& out) {
  Events events;
  while (state_ != State::kBroken) {
    // A connection that has not proved itself may send short frames only.
    const bool is_known = state_ == State::kIntroduced || state_ == State::kWelcomed;
    const std::size_t limit = is_known ? limits::kAgentFrameBytes : limits::kAgentHelloBytes;
    const FrameReader::Step step = reader_.next(bytes, limit);
    if (step == FrameReader::Step::kNeedMore) break;
    if (step == FrameReader::Step::kFrame) {
      on_frame(reader_.frame(), events, out);
    } else {
      const Fault found = unreadable(reader_, step, limit);
      end(found.error, found.told, events, out);
    }
  }
  check_invariants();
  return events;
}

void CoordinatorSession::on_frame(const Frame& frame, Events& events, ByteString& out) {
  const bool is_known = state_ == State::kIntroduced || state_ == State::kWelcomed;
  if (state_ == State::kStart && frame.type == FrameType::kHello) return take_hello(frame, events, out);
  if (state_ == State::kStart && frame.type == FrameType::kNodeIsEmpty) {
    return take_node_is_empty(frame, events, out);
  }
  if (state_ == State::kChallenged && frame.type == FrameType::kProof) return take_proof(frame, events, out);
  if (state_ != State::kStart && frame.type == FrameType::kRefused) {
    return end(refused_by(frame, version_), {}, events, out);
  }
  const bool is_due = frame.type == FrameType::kNodeJoins || (state_ == State::kWelcomed && has_joined_);
  if (is_known && is_optional(frame.type) && !(is_due && is_agent_message(frame.type))) return;
  if (is_known && is_due && is_agent_message(frame.type)) return take_message(frame, events, out);
  if (state_ == State::kWelcomed && frame.type == FrameType::kKeepAlive) return take_message(frame, events, out);
  if (state_ == State::kWelcomed && frame.type == FrameType::kLeaseAck) return take_lease_ack(frame, events, out);
  const Fault found = not_due(frame.type);
  end(found.error, found.told, events, out);
}

// Whether the other side has our major version. If it has not the session is ended.
bool CoordinatorSession::is_of_our_major(const Frame& frame, Events& events, ByteString& out) {
  const auto version = read_version(frame);
  if (!version || version->major == version_.major) return true;  // without one it cannot be read
  const Fault found = other_major(*version, version_);
  end(found.error, found.told, events, out);
  return false;
}

void CoordinatorSession::take_hello(const Frame& frame, Events& events, ByteString& out) {
  if (!is_of_our_major(frame, events, out)) return;
  auto hello = read_frame<Hello>(frame);
  if (!hello) {
    const Fault found = cannot_read(frame.type, hello.error());
    return end(found.error, found.told, events, out);
  }
  introduction_ = {std::move(hello->job),     hello->agent,    frame.stamp.incarnation, frame.stamp.term,
                   std::move(hello->gossips), hello->may_begin};
  Challenge challenge{version_, nonce_, {}};
  challenge.proof = coordinator_proof(key_, frame.whole, challenge);
  put_mark(out);
  const std::size_t start = out.size();
  append_frame(out, Stamp{}, challenge);
  expected_ = agent_proof(key_, frame.whole, Bytes(out).subspan(start));
  state_ = State::kChallenged;
}

void CoordinatorSession::take_proof(const Frame& frame, Events& events, ByteString& out) {
  const auto proof = read_frame<ProofFrame>(frame);
  if (!proof || !same_proof(proof->proof, expected_)) {
    // An agent with another secret notices that our proof is wrong and sends REFUSED instead: this proof was forged.
    const Fault found = proof ? Fault{{Kind::kSecret, "its proof that it knows the job's secret is wrong"},
                                      "your proof that you know the job's secret is wrong"}
                              : cannot_read(frame.type, proof.error());
    return end(found.error, found.told, events, out);
  }
  state_ = State::kIntroduced;
  events.push_back(Introduced{introduction_});
}

void CoordinatorSession::take_node_is_empty(const Frame& frame, Events& events, ByteString& out) {
  if (!is_of_our_major(frame, events, out)) return;
  const auto empty = read_frame<NodeIsEmptyFrame>(frame);
  const auto proof_is_right = [&](const Key& key) {
    return same_proof(empty->proof, prove(key, Side::kGuardian, {before_proof(frame, *empty)}));
  };
  if (!empty || !proof_is_right(key_)) {
    const Fault found = empty ? wrong_secret(key_, proof_is_right(key_of(""))) : cannot_read(frame.type, empty.error());
    return end(found.error, found.told, events, out);
  }
  state_ = State::kBroken;  // nothing else comes on this connection
  events.push_back(NodeIsEmpty{empty->job, empty->agent, frame.stamp.incarnation, frame.stamp.round});
}

// Whether the agent has met a later coordinator. If it has the session is ended.
bool CoordinatorSession::has_older_term(const Frame& frame, Events& events, ByteString& out) {
  if (state_ != State::kWelcomed || frame.stamp.term <= welcome_.term) return false;
  const std::string terms = format("met a coordinator of term {}, but this one has term {}",
                                   text_of_term(frame.stamp.term), text_of_term(welcome_.term));
  end({Kind::kOlderTerm, format("it has {}", terms)}, format("you have {}", terms), events, out);
  return true;
}

// A lease ack to this coordinator carries its term. An older one was sent before the term grew, and counts no more.
void CoordinatorSession::take_lease_ack(const Frame& frame, Events& events, ByteString& out) {
  if (has_older_term(frame, events, out)) return;
  auto acked = read_frame<LeaseAckFrame>(frame);
  if (!acked) {
    const Fault found = cannot_read(frame.type, acked.error());
    return end(found.error, found.told, events, out);
  }
  if (frame.stamp.term == welcome_.term && frame.stamp.incarnation == welcome_.incarnation) {
    events.push_back(LeaseAck{acked->number, std::move(acked->voter_state)});
  } else {
    events.push_back(Stale{format("{} of term {}, and this coordinator is at {}", one(frame.type),
                                  text_of_term(frame.stamp.term), text_of_term(welcome_.term))});
  }
}

void CoordinatorSession::take_message(const Frame& frame, Events& events, ByteString& out) {
  const Stamp& its = frame.stamp;
  if (has_older_term(frame, events, out)) return;
  if (frame.type == FrameType::kKeepAlive) {
    const auto keep_alive = read_frame<KeepAliveFrame>(frame);
    if (keep_alive) return events.push_back(KeepAlive{keep_alive->number});
    const Fault found = cannot_read(frame.type, keep_alive.error());
    return end(found.error, found.told, events, out);
  }
  auto message = read_frame<AgentMessage>(frame);
  if (!message) {
    const Fault found = cannot_read(frame.type, message.error());
    return end(found.error, found.told, events, out);
  }
  // NodeJoins carries the agent's incarnation itself, and NodeLeaves holds in any.
  const bool is_of_any = frame.type == FrameType::kNodeJoins || frame.type == FrameType::kNodeLeaves;
  if (!is_of_any && its.incarnation != welcome_.incarnation) {
    events.push_back(Stale{format("{} of incarnation {:016x} of the job, which is at {:016x}", one(frame.type),
                                  its.incarnation, welcome_.incarnation)});
    return;
  }
  has_joined_ = has_joined_ || frame.type == FrameType::kNodeJoins;
  events.push_back(Received{std::move(*message)});
}

void CoordinatorSession::welcome(const Welcome& welcome, ByteString& out) {
  if (state_ == State::kBroken) return;
  ELASTIC_CHECK(state_ == State::kIntroduced);
  welcome_ = welcome;
  state_ = State::kWelcomed;
  append_frame(out, stamp(), WelcomeFrame{welcome.loss_timeout_ms, welcome.good_for_ms, welcome.host});
  check_invariants();
}

void CoordinatorSession::set_stamp(Term term, Incarnation incarnation) {
  welcome_.term = term;
  welcome_.incarnation = incarnation;
}

void CoordinatorSession::refuse(const std::string& reason, ByteString& out, Redirect redirect) {
  if (state_ == State::kBroken) return;
  put_refused(reason, out, std::move(redirect));
  state_ = State::kBroken;
}

void CoordinatorSession::send(const CoordinatorMessage& message, ByteString& out) {
  if (state_ == State::kBroken) return;
  ELASTIC_CHECK(state_ == State::kWelcomed ||
                (state_ == State::kIntroduced && std::holds_alternative<Rejected>(message)));
  append_frame(out, stamp(), message);
}

void CoordinatorSession::grant_lease(std::uint64_t number, std::optional<std::int64_t> good_for_ms, bool asks,
                                     ByteString& out) {
  if (state_ != State::kWelcomed) return;
  append_frame(out, stamp(), LeaseGrantFrame{number, good_for_ms, asks});
}

void CoordinatorSession::end(SessionError error, const std::string& told, Events& events, ByteString& out) {
  if (!told.empty()) put_refused(told, out);
  state_ = State::kBroken;
  events.push_back(std::move(error));
}

void CoordinatorSession::put_refused(const std::string& reason, ByteString& out, Redirect redirect) {
  put_mark(out);
  append_frame(out, stamp(), Refused{version_, reason, std::move(redirect)});
}

void CoordinatorSession::put_mark(ByteString& out) {
  if (!mark_is_sent_) append(out, kMark);
  mark_is_sent_ = true;
}

void CoordinatorSession::check_invariants() const {
  const bool is_introduced = state_ == State::kIntroduced || state_ == State::kWelcomed;
  ELASTIC_CHECK(mark_is_sent_ || state_ == State::kStart || state_ == State::kBroken);
  ELASTIC_CHECK(!has_joined_ || is_introduced || state_ == State::kBroken);
  ELASTIC_CHECK(introduction_.job.size() <= limits::kAgentNameBytes);
}

// --- The guardian's frame. -----------------------------------------------------------------------------

ByteString node_is_empty_frame(const Introduction& introduction, RoundNumber round, const std::string& secret) {
  ELASTIC_CHECK(introduction.job.size() <= limits::kAgentNameBytes);
  const Stamp stamp{introduction.incarnation, introduction.term, round};
  NodeIsEmptyFrame empty{kOurVersion, introduction.job, introduction.agent, {}};
  ByteString out;
  append_frame(out, stamp, empty);
  const Bytes proven = Bytes(out).first(out.size() - empty.proof.size());
  empty.proof = prove(key_of(secret), Side::kGuardian, {proven});
  ByteString frame(kMark.begin(), kMark.end());
  append_frame(frame, stamp, empty);
  return frame;
}

}  // namespace elastic::protocol
