// A recorded session of the present version of the agent protocol: both ends must always accept it, and a session that
// is cut off, changed or in pieces must do no harm. With ELASTIC_RUN_WRITE_RECORDING=1 in the environment the session
// is recorded again, which is forbidden once the version has been released.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "rendezvous/protocol/session.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::protocol;

namespace {

const std::string kSecret = "the secret of the recording";
const Introduction kIntroduction = {"recorded-job", 0xA6E27, 0x1C4, 2};
const Welcome kWelcome = {3, 0x1C4, 5000, 2900, 0xA6E};
constexpr std::int64_t kKeptForMs = 1850;

Nonce nonce_of(std::uint8_t step) {
  Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(step * (i + 1));
  return nonce;
}
const Nonce kAgentNonce = nonce_of(3);
const Nonce kCoordinatorNonce = nonce_of(5);

WorkerFailure failure() {
  WorkerFailure failure;
  failure.rank = 11;
  failure.local_rank = 3;
  failure.node_rank = 1;
  failure.pid = 4711;
  failure.exit = {.code = 0, .signal = 11, .core_dumped = true};
  failure.wall_ms = 1'790'000'000'000;
  failure.kind = FailureKind::kKilled;
  failure.host = "node-1";
  failure.start = WorkerStart::kWarm;
  failure.error_file_ms = 1'789'999'999'000;
  return failure;
}
JobResult job_result() {
  JobResult job_result;
  job_result.outcome = JobResult::Outcome::kFailed;
  job_result.reason = "a worker failed, and no restart is left";
  job_result.round = 4;
  job_result.restarts_used = 3;
  job_result.failures = {failure()};
  job_result.left_behind = "pid 4712 (python)";
  job_result.is_deterministic = true;
  return job_result;
}
NodeJoins joins() {
  NodeJoins message;
  message.local_world_size = 8;
  message.role = "trainer";
  message.agent = kIntroduction.agent;
  message.address = "node-1";
  message.node_rank = 1;
  message.terms = {.min_nodes = 2, .max_nodes = 4, .node_unit = 2, .max_restarts = 3};
  message.rules = {.last_call_ms = 20'000,
                   .join_timeout_ms = 300'000,
                   .replacement_grace_ms = 2000,
                   .scale_up = JobRules::ScaleUp::kOnRestart,
                   .scale_up_after_ms = 1500,
                   .node_losses = 4,
                   .loss_window_ms = 500'000,
                   .quarantine_ms = 200'000,
                   .job_losses = -1,
                   .replacement_wait_ms = 40'000,
                   .crash_loop = JobRules::CrashLoop::kRestart,
                   .failover = JobRules::Failover::kMajority,
                   .on_leave = JobRules::OnLeave::kWait,
                   .failover_evidence = JobRules::Evidence::kNone,
                   .hang = JobRules::Hang::kReport,
                   .hang_timeout_ms = 90'000,
                   .hang_first_timeout_ms = 600'000,
                   .hang_restarts = 2,
                   .hang_sections = {{"setup", 600'000}, {"step", 30'000}}};
  message.facts.incarnation = 0x1C4;
  message.facts.term = 2;
  message.facts.round = 3;
  message.facts.activity = AgentFacts::Activity::kRunning;
  message.facts.place = {1, 2, 8, 16, 8, 16};
  message.facts.restart_count = 2;
  message.facts.losses = 1;
  message.facts.membership = 0xD16E57;
  message.facts.failures = {failure()};
  message.facts.job_result = job_result();
  message.facts.birth_ms = 1'789'999'000'000;
  message.facts.transferred = {0x2'0000'0001, "handed over"};
  message.facts.error_files_wait = true;
  message.facts.false_alarm = 9;
  message.addresses = "10.0.0.2 fd77::2";
  return message;
}
PrepareRound prepare() {
  PrepareRound message;
  message.round = 4;
  message.restart_count = 3;
  message.max_restarts = 3;
  message.place = {1, 2, 8, 16, 8, 16};
  message.reason = "rank 11 was killed by SIGSEGV";
  message.losses = 1;
  message.membership = 0xD16E57;
  message.charged = false;
  message.admits = "10.0.0.1 10.0.0.2 fd77::2";
  message.fence = {1'789'999'000'000, 2};
  message.transferred = {0x2'0000'0002, "handed over"};
  message.before = {{2, 3, 0xD16E56, 3, 2}};
  message.host_rank = 0;
  message.error_files_wait = true;
  message.training_port = 60'016;
  return message;
}

// What the agent answers to the KEPT that asks for its support.
VoterState voter_state() {
  return {.rounds = {{{2, 3, 0xD16E56, 3, 2}, 1, true}, {{2, 4, 0xD16E57, 2, {}}, {}, false}},
          .witnessed_death = WitnessedDeath{{2, 3, 0xD16E56, 3, 2}, 2, 2},
          .others_may_run_for_ms = 2'950};
}

NodeStopped stopped() {
  return {4,
          {failure(), failure()},
          Crash{Crash::Kind::kMissingFile, 0xC8A54},
          9,
          TrainingPorts{60'000, {{60'000, 60'015}}}};
}

const std::string kDetails = "Traceback (most recent call last):\n  ...";

// The messages after the welcome, in this order.
std::vector<AgentMessage> agent_messages() {
  return {StoreIsOpen{4, {"10.0.0.1", 29500}},
          CheckDone{4, 2, "all is well"},
          WorkerFailed{4, failure(), true},
          NodeCannotRun{4, "the program cannot be executed"},
          stopped(),
          WorkersSucceeded{5},
          NodeLeaves{15, true},
          JobResultHeard{kDetails},
          RoundHeard{4},
          NodeProgress{.round = 4,
                       .newest = {.rank = 3,
                                  .step = 118,
                                  .millisteps_per_second = 2'300,
                                  .age_ms = 40,
                                  .source = progress::Source::kMegatron,
                                  .phase = progress::Phase::kTrain},
                       .oldest = {.age_ms = 1000,
                                  .source = progress::Source::kNvrx,
                                  .phase = progress::Phase::kEval,
                                  .section = "validation"},
                       .speakers = 2},
          NodeStacks{7, R"({"groups":[]})", "its workers cannot be read"},
          HangSigns{.round = 4, .facts = {.is_stopped = true, .misses_init_key = true}, .disks_move = true},
          NodeEvidence{.round = 4, .collection = 2, .facts = "the facts of a node"},
          LoaderSays{.round = 4,
                     .word = {.node = tuning::NodeState{.free_bytes = 5'000'000'000, .cpus = 12, .version = 3},
                              .failed = tuning::RankFailed{"cuda-out-of-memory"}}}};
}
std::vector<CoordinatorMessage> coordinator_messages() {
  return {prepare(),
          RunCheck{4, 2, "pair with node 0"},
          RunWorkers{4, {"10.0.0.1", 29500}},
          StopWorkers{4, true, true, true},
          AreYouThere{},
          EndJob{job_result()},
          Dismiss{kDetails},
          Rejected{Rejected::Why::kJobEnding, "the job is ending", 1500},
          Awaiting{.here = 3,
                   .least = 4,
                   .most = 8,
                   .for_ms = 61'000,
                   .left_ms = 539'000,
                   .what = "standing by",
                   .because = "node 1 (10.0.0.3) was lost: its connection was reset",
                   .because_ms = 12'000},
          LeaveJob{"10.0.0.9"},
          Resigned{"node 0 received SIGTERM and leaves", true},
          NextRound{{3, 5, 0xD16E58, 2, 1}, {{2, 3, 0xD16E56, 3, 2}}},
          StacksWanted{7},
          CollectEvidence{.round = 4, .collection = 2, .silent_ms = 95'000, .limit_ms = 90'000, .within_ms = 18'000},
          HangTold{.round = 4,
                   .what = HangTold::What::kNotArmed,
                   .silent_ms = 95'000,
                   .text = "no progress for 1 min 35 s",
                   .report = "{}",
                   .is_stopped = true},
          HangOver{.round = 4, .why = HangOver::Why::kWithdrawn, .after_ms = 96'000},
          KeepState{.round = 4, .transferred = {7, "what is known of the job"}},
          LoaderTold{.round = 4,
                     .node_rank = 0,
                     .word = {.values = tuning::ChosenValues{.version = 3,
                                                             .workers = tuning::ChosenValue{2, 4, 8},
                                                             .batch = tuning::ChosenValue{32, 32, 32}}}}};
}

AgentSession agent_session() { return AgentSession(kIntroduction, kSecret, kAgentNonce); }
CoordinatorSession coordinator_session() { return CoordinatorSession(kSecret, kCoordinatorNonce); }

// One frame, or the mark, as one end sent it.
struct Part {
  bool by_agent = false;
  std::string name;
  ByteString bytes;
  bool operator==(const Part&) const = default;
};

class Recorder {
 public:
  void record(bool by_agent, const ByteString& bytes) {
    Bytes left(bytes);
    FrameReader& reader = by_agent ? from_agent_ : from_coordinator_;
    bool& has_mark = by_agent ? agent_has_mark_ : coordinator_has_mark_;
    if (!has_mark) {
      Bytes mark = left.first(kMark.size());
      reader.next(mark, SIZE_MAX);
      parts.push_back({by_agent, "mark", ByteString(left.begin(), left.begin() + kMark.size())});
      left = left.subspan(kMark.size());
      has_mark = true;
    }
    while (reader.next(left, SIZE_MAX) == FrameReader::Step::kFrame) {
      const Bytes whole = reader.frame().whole;
      parts.push_back({by_agent, name_of(reader.frame().type), ByteString(whole.begin(), whole.end())});
    }
  }
  std::vector<Part> parts;

 private:
  FrameReader from_agent_, from_coordinator_;
  bool agent_has_mark_ = false, coordinator_has_mark_ = false;
};

// The session as both ends have it today.
std::vector<Part> converse() {
  AgentSession agent = agent_session();
  CoordinatorSession coordinator = coordinator_session();
  Recorder recorder;
  ByteString to_agent, to_coordinator = agent.begin();
  const auto deliver_to_coordinator = [&] {
    recorder.record(true, to_coordinator);
    coordinator.receive(std::exchange(to_coordinator, {}), to_agent);
  };
  const auto deliver_to_agent = [&] {
    recorder.record(false, to_agent);
    agent.receive(std::exchange(to_agent, {}), to_coordinator);
  };
  deliver_to_coordinator();
  agent.send(joins(), to_coordinator);
  deliver_to_agent();
  deliver_to_coordinator();
  coordinator.welcome(kWelcome, to_agent);
  for (const CoordinatorMessage& message : coordinator_messages()) coordinator.send(message, to_agent);
  deliver_to_agent();
  for (const AgentMessage& message : agent_messages()) agent.send(message, to_coordinator);
  agent.keep_alive(1000, to_coordinator);
  deliver_to_coordinator();
  coordinator.grant_lease(1, kKeptForMs, true, to_agent);
  deliver_to_agent();
  agent.acknowledge_lease(1, voter_state(), to_coordinator);
  deliver_to_coordinator();
  coordinator.refuse("the recording ends", to_agent);
  deliver_to_agent();
  return std::move(recorder.parts);
}

void write(const std::vector<Part>& parts) {
  std::ofstream out(AGENT_PROTOCOL_2_0);
  out << "# A conversation in version " << kOurVersion.text()
      << " of the agent protocol, frame by frame, in hexadecimal: \"agent\" is what\n"
         "# the agent sends, \"coordinator\" what the coordinator does. docs/agent-protocol.md explains the bytes,\n"
         "# tests/recordings/agent_protocol_test.cpp says what they mean. This file is never changed.\n";
  for (const Part& part : parts) {
    out << '\n' << (part.by_agent ? "agent " : "coordinator ") << part.name << '\n';
    for (std::size_t i = 0; i < part.bytes.size(); ++i) {
      const bool ends_line = i % 32 == 31 || i + 1 == part.bytes.size();
      out << format("{:02x}{}", part.bytes[i], ends_line ? '\n' : ' ');
    }
  }
}

std::vector<Part> recorded() {
  if (std::getenv("ELASTIC_RUN_WRITE_RECORDING") != nullptr) write(converse());
  std::ifstream in(AGENT_PROTOCOL_2_0);
  REQUIRE(in);
  std::vector<Part> parts;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "agent" || word == "coordinator") {
      parts.push_back({word == "agent", {}, {}});
      words >> parts.back().name;
      continue;
    }
    do {
      parts.back().bytes.push_back(static_cast<std::uint8_t>(std::stoul(word, nullptr, 16)));
    } while (words >> word);
  }
  return parts;
}

ByteString said_by(bool agent, const std::vector<Part>& parts) {
  ByteString bytes;
  for (const Part& part : parts) {
    if (part.by_agent == agent) bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
  }
  return bytes;
}

// Bytes up to the end of the first frame of this name, of one side.
std::size_t end_of(const std::string& name, bool agent, const std::vector<Part>& parts) {
  std::size_t size = 0;
  for (const Part& part : parts) {
    if (part.by_agent != agent) continue;
    size += part.bytes.size();
    if (part.name == name) return size;
  }
  FAIL("there is no such frame: " << name);
  return 0;
}

// One end of the session, with its events so far. Each piece has memory of its own, so that sanitizers notice a read
// beyond it.
struct AgentEnd {
  AgentSession session = agent_session();
  std::vector<AgentSession::Event> events;
  ByteString out = session.begin();

  void take(Bytes piece) {
    const ByteString copy(piece.begin(), piece.end());
    for (auto& event : session.receive(copy, out)) {
      if (std::holds_alternative<AgentSession::Welcomed>(event)) {
        for (const AgentMessage& message : agent_messages()) session.send(message, out);
        session.keep_alive(1000, out);
        session.acknowledge_lease(1, voter_state(), out);
      }
      events.push_back(std::move(event));
    }
  }
  bool knows_coordinator() const {
    return out.size() > end && out[end + 4] == static_cast<std::uint8_t>(FrameType::kProof);
  }
  std::size_t end = out.size();
};
struct CoordinatorEnd {
  CoordinatorSession session = coordinator_session();
  std::vector<CoordinatorSession::Event> events;
  ByteString out;
  bool introduced = false;

  void take(Bytes piece) {
    const ByteString copy(piece.begin(), piece.end());
    for (auto& event : session.receive(copy, out)) {
      if (std::holds_alternative<CoordinatorSession::Introduced>(event)) {
        introduced = true;
        session.welcome(kWelcome, out);
      }
      events.push_back(std::move(event));
    }
  }
};

// Neither side sends more before it has got an answer, so that the `first` bytes come alone.
template <class End>
End taken(Bytes bytes, std::size_t first, std::size_t piece = SIZE_MAX) {
  End end;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t border = at < first ? std::min(first, bytes.size()) : bytes.size();
    const std::size_t size = std::min(piece, border - at);
    end.take(bytes.subspan(at, size));
    at += size;
  }
  return end;
}

void check_all_is_understood(const AgentEnd& end) {
  const auto messages = coordinator_messages();
  REQUIRE(end.events.size() == messages.size() + 3);
  CHECK(std::get<AgentSession::Welcomed>(end.events[0]).welcome == kWelcome);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CHECK((std::get<AgentSession::Received>(end.events[i + 1]).message == messages[i]));
  }
  const auto& kept = std::get<AgentSession::LeaseGrant>(end.events[messages.size() + 1]);
  CHECK(kept.sent_ms == 1000);
  CHECK(kept.good_for_ms == kKeptForMs);
  CHECK(kept.asks);
  CHECK(std::get<SessionError>(end.events.back()).text == "it refused us: the recording ends");
}
void check_all_is_understood(const CoordinatorEnd& end) {
  const auto messages = agent_messages();
  REQUIRE(end.events.size() == messages.size() + 4);
  CHECK(std::get<CoordinatorSession::Introduced>(end.events[0]).introduction == kIntroduction);
  CHECK((std::get<CoordinatorSession::Received>(end.events[1]).message == AgentMessage(joins())));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CHECK((std::get<CoordinatorSession::Received>(end.events[i + 2]).message == messages[i]));
  }
  CHECK(std::get<CoordinatorSession::KeepAlive>(end.events[messages.size() + 2]).number == 1);
  const auto& holds = std::get<CoordinatorSession::LeaseAck>(end.events.back());
  CHECK(holds.number == 1);
  CHECK(holds.voter_state == voter_state());
}

// --------------------------------------------------------------------------------------------------------

TEST_CASE("the recording is what both ends say today") { CHECK((converse() == recorded())); }

// The bytes that each end gets, and how many of them come alone.
struct Heard {
  explicit Heard(const std::vector<Part>& parts)
      : by_agent(said_by(true, parts)),
        by_coordinator(said_by(false, parts)),
        agent_first(end_of("NodeJoins", true, parts)),
        coordinator_first(end_of("WELCOME", false, parts)) {}
  ByteString by_agent, by_coordinator;
  std::size_t agent_first, coordinator_first;
};

TEST_CASE("both ends take the recording, in any pieces") {
  const Heard heard(recorded());
  for (const std::size_t piece : {SIZE_MAX, std::size_t{1}, std::size_t{3}, std::size_t{50}}) {
    check_all_is_understood(taken<AgentEnd>(heard.by_coordinator, heard.coordinator_first, piece));
    check_all_is_understood(taken<CoordinatorEnd>(heard.by_agent, heard.agent_first, piece));
  }
}

TEST_CASE("the recording has every message") {
  CHECK(agent_messages().size() + 1 == std::variant_size_v<AgentMessage::variant>);
  CHECK(coordinator_messages().size() == std::variant_size_v<CoordinatorMessage::variant>);
}

TEST_CASE("a recording that is cut off anywhere is understood up to there") {
  const Heard heard(recorded());
  std::size_t events = 0;
  for (std::size_t size = 0; size < heard.by_coordinator.size(); ++size) {
    const auto end = taken<AgentEnd>(Bytes(heard.by_coordinator).first(size), heard.coordinator_first);
    CHECK(end.events.size() >= events);
    events = end.events.size();
    for (std::size_t i = 1; i < events && i <= coordinator_messages().size(); ++i) {
      CHECK((std::get<AgentSession::Received>(end.events[i]).message == coordinator_messages()[i - 1]));
    }
    if (!end.events.empty()) CHECK_FALSE(std::holds_alternative<SessionError>(end.events.back()));
  }
  CHECK(events == coordinator_messages().size() + 2);
  events = 0;
  for (std::size_t size = 0; size < heard.by_agent.size(); ++size) {
    const auto end = taken<CoordinatorEnd>(Bytes(heard.by_agent).first(size), heard.agent_first);
    CHECK(end.events.size() >= events);
    events = end.events.size();
    for (std::size_t i = 2; i < events && i < agent_messages().size() + 2; ++i) {
      CHECK((std::get<CoordinatorSession::Received>(end.events[i]).message == agent_messages()[i - 2]));
    }
  }
  CHECK(events == agent_messages().size() + 3);
}

TEST_CASE("a recording with any byte changed does no harm, and nobody is known who did not prove it") {
  const auto parts = recorded();
  const Heard heard(parts);
  const std::size_t hello_end = end_of("HELLO", true, parts), proof_end = end_of("PROOF", true, parts);
  const std::size_t challenge_end = end_of("CHALLENGE", false, parts);
  // A frame may be longer than its known fields. The stamp of a PROOF is not read. The stamp and the length of a
  // CHALLENGE are part of the agent's proof, which the coordinator then finds to be wrong.
  const auto is_length = [](std::size_t at, std::size_t frame) { return at >= frame && at < frame + 4; };
  const auto is_stamp = [](std::size_t at, std::size_t frame) { return at >= frame + 5 && at < frame + 21; };
  for (const int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, 0x55}) {
    CAPTURE(change);
    for (std::size_t at = 0; at < heard.by_agent.size(); ++at) {
      CAPTURE(at);
      ByteString bytes = heard.by_agent;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      const auto end = taken<CoordinatorEnd>(bytes, heard.agent_first);
      CHECK(end.events.size() <= agent_messages().size() + 4);
      if (is_length(at, hello_end)) continue;
      CHECK(end.introduced == (at >= proof_end || is_stamp(at, hello_end)));
    }
    for (std::size_t at = 0; at < heard.by_coordinator.size(); ++at) {
      CAPTURE(at);
      ByteString bytes = heard.by_coordinator;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      const auto end = taken<AgentEnd>(bytes, heard.coordinator_first);
      CHECK(end.events.size() <= coordinator_messages().size() + 3);
      if (is_length(at, kMark.size())) continue;
      CHECK(end.knows_coordinator() == (at >= challenge_end || is_stamp(at, kMark.size())));
    }
  }
}

}  // namespace
