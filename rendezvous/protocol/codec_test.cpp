#include "rendezvous/protocol/codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/frame_reader.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/test_messages.h"

namespace elastic::protocol {
namespace {

using test::Dice;
using test::Maker;
using Step = FrameReader::Step;

constexpr Stamp kStamp = {0x1122334455667788, 0x99AABBCC, 0};
constexpr int kSeeds = 300;

template <class Message>
ByteString frame_of(const Message& message) {
  ByteString bytes;
  append_frame(bytes, kStamp, message);
  return bytes;
}
// A frame that append_frame() would not write. Frame::whole is not set.
Frame frame_with(FrameType type, Bytes fields) { return {type, kStamp, fields, {}}; }

// The only frame in these bytes; it refers to them.
Frame only_frame(const ByteString& bytes) {
  FrameReader reader;
  Bytes mark(kMark);
  REQUIRE(reader.next(mark, limits::kAgentFrameBytes) == Step::kNeedMore);
  Bytes left(bytes);
  REQUIRE(reader.next(left, limits::kAgentFrameBytes) == Step::kFrame);
  REQUIRE(left.empty());
  return reader.frame();
}

Decoded<AgentMessage> read_back(const AgentMessage& message) {
  const ByteString bytes = frame_of(message);
  return read_frame<AgentMessage>(only_frame(bytes));
}
Decoded<CoordinatorMessage> read_back(const CoordinatorMessage& message) {
  const ByteString bytes = frame_of(message);
  return read_frame<CoordinatorMessage>(only_frame(bytes));
}

template <class Variant>
void check_every_message_comes_back() {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Dice dice(seed);
    Maker maker(dice);
    for (std::size_t index = 0; index < std::variant_size_v<typename Variant::variant>; ++index) {
      const Variant message = maker.template message<Variant>(index);
      CAPTURE(seed);
      CAPTURE(name_of(type_of(message)));
      const auto back = read_back(message);
      REQUIRE(back);
      CHECK((*back == message));
    }
  }
}

TEST_CASE("every message of an agent comes back with all its fields") {
  check_every_message_comes_back<AgentMessage>();
}

TEST_CASE("every message of a coordinator comes back with all its fields") {
  check_every_message_comes_back<CoordinatorMessage>();
}

TEST_CASE("a frame is a length, a type, a stamp and fields, all with the highest byte first") {
  const ByteString bytes = frame_of(CoordinatorMessage(StopWorkers{.round = 0x01020304, .hangs = true}));
  CHECK(bytes == ByteString{0x00, 0x00, 0x00, 0x14, 0x32, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                            0x88, 0x99, 0xAA, 0xBB, 0xCC, 0x01, 0x02, 0x03, 0x04, 0x01, 0x00, 0x00});
  const Frame frame = only_frame(bytes);
  CHECK(frame.type == FrameType::kStopWorkers);
  CHECK(frame.stamp == Stamp{0x1122334455667788, 0x99AABBCC, 0x01020304});
  CHECK(frame.fields.size() == 3);
}

TEST_CASE("every type has a name, and only the messages of a side are that side's") {
  int agent = 0, coordinator = 0;
  for (unsigned number = 0; number < 256; ++number) {
    const auto type = static_cast<FrameType>(number);
    agent += is_agent_message(type);
    coordinator += is_coordinator_message(type);
    CHECK_FALSE((is_agent_message(type) && is_coordinator_message(type)));
    CHECK(is_optional(type) == (number >= 128));
    if (is_agent_message(type) || is_coordinator_message(type)) {
      CHECK(name_of(type).find("unknown") == std::string::npos);
    }
  }
  CHECK(agent == std::variant_size_v<AgentMessage::variant>);
  CHECK(coordinator == std::variant_size_v<CoordinatorMessage::variant>);
  CHECK(name_of(static_cast<FrameType>(99)) == "frame of the unknown type 99");
}

TEST_CASE("a message that is cut off inside a field cannot be read") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Dice dice(seed);
    Maker maker(dice);
    for (std::size_t index = 0; index < std::variant_size_v<AgentMessage::variant>; ++index) {
      const ByteString bytes = frame_of(maker.message<AgentMessage>(index));
      if (bytes.size() > 2000) continue;
      const Frame whole = only_frame(bytes);
      for (std::size_t size = 0; size < whole.fields.size(); ++size) {
        const ByteString copy(whole.fields.begin(), whole.fields.begin() + static_cast<std::ptrdiff_t>(size));
        Frame frame = whole;
        frame.fields = copy;
        const auto read = read_frame<AgentMessage>(frame);
        // A frame may end between two fields. Then the fields before that are read back unchanged.
        if (!read) {
          CHECK(read.error() == "it ends in the middle of a field");
          continue;
        }
        const ByteString again = frame_of(*read);
        CHECK(std::equal(copy.begin(), copy.end(), again.begin() + 21));
      }
    }
  }
}

TEST_CASE("fields that an older sender left out keep their defaults") {
  const NodeJoins joins{.local_world_size = 8, .role = "trainer", .agent = 7, .address = "node-3"};
  const ByteString bytes = frame_of(AgentMessage(joins));
  Frame frame = only_frame(bytes);
  frame.fields = frame.fields.first(4 + 6 + 8);
  const auto read = read_frame<AgentMessage>(frame);
  REQUIRE(read);
  CHECK((*read == AgentMessage(NodeJoins{.agent = 7, .address = "node-3"})));
  frame = frame_with(FrameType::kStopWorkers, {});
  CHECK((read_frame<CoordinatorMessage>(frame) == CoordinatorMessage(StopWorkers{})));
}

TEST_CASE("fields that a newer sender appended are passed over") {
  for (std::size_t index = 0; index < std::variant_size_v<CoordinatorMessage::variant>; ++index) {
    Dice dice(index);
    const auto message = Maker(dice).message<CoordinatorMessage>(index);
    const ByteString bytes = frame_of(message);
    Frame frame = only_frame(bytes);
    ByteString longer(frame.fields.begin(), frame.fields.end());
    longer.insert(longer.end(), {0xFF, 0x00, 0x7F});
    frame.fields = longer;
    const auto read = read_frame<CoordinatorMessage>(frame);
    REQUIRE(read);
    CHECK((*read == message));
  }
}

TEST_CASE("a long text is cut where a character ends, a long list behind its limit") {
  NodeCannotRun message;
  message.reason = std::string(limits::kAgentTextBytes - 1, 'x') + "\u00e9";  // the last character does not fit whole
  auto back = read_back(AgentMessage(message));
  REQUIRE(back);
  CHECK(std::get<NodeCannotRun>(*back).reason == std::string(limits::kAgentTextBytes - 1, 'x'));

  message.reason = std::string(limits::kAgentTextBytes - 2, 'x') + "\u00e9\u00e9";
  back = read_back(AgentMessage(message));
  CHECK(std::get<NodeCannotRun>(*back).reason == std::string(limits::kAgentTextBytes - 2, 'x') + "\u00e9");

  message.reason = std::string(limits::kAgentTextBytes - 3, 'x') + "\U0001F600";
  back = read_back(AgentMessage(message));
  CHECK(std::get<NodeCannotRun>(*back).reason == std::string(limits::kAgentTextBytes - 3, 'x'));

  message.reason = std::string(limits::kAgentTextBytes + 5, '\x80');  // these bytes are no UTF-8
  back = read_back(AgentMessage(message));
  CHECK(std::get<NodeCannotRun>(*back).reason.size() == limits::kAgentTextBytes);

  NodeStopped stopped;
  stopped.failures.resize(limits::kAgentFailures + 10);
  for (std::size_t i = 0; i < stopped.failures.size(); ++i) stopped.failures[i].rank = static_cast<int>(i);
  back = read_back(AgentMessage(stopped));
  stopped.failures.resize(limits::kAgentFailures);
  CHECK((*back == AgentMessage(stopped)));
}

TEST_CASE("the largest messages fit into a frame") {
  WorkerFailure failure;
  failure.host = std::string(2000, 'h');
  JobResult job_result;
  job_result.reason = job_result.left_behind = std::string(20'000, 'r');
  job_result.failures.assign(100, failure);
  NodeJoins joins;
  joins.role = joins.address = joins.group = std::string(2000, 'n');
  joins.addresses = std::string(5000, '1');
  joins.node_rank = 1;
  joins.facts.failures.assign(100, failure);
  joins.facts.job_result = job_result;
  joins.facts.transferred.state = std::string(limits::kTransferredBytes, 's');
  CHECK(read_back(AgentMessage(joins)));
  PrepareRound prepare;
  prepare.reason = std::string(20'000, 'r');
  prepare.admits = std::string(200'000, '1');
  prepare.transferred.state = joins.facts.transferred.state;
  CHECK(read_back(CoordinatorMessage(prepare)));
  CHECK(read_back(AgentMessage(CheckDone{0, 0, std::string(200'000, 'c')})));
  CHECK(read_back(CoordinatorMessage(EndJob{job_result})));
}

TEST_CASE("details are empty where a sender leaves them out, and never longer than their bound") {
  CHECK((read_frame<AgentMessage>(frame_with(FrameType::kJobResultHeard, {})) == AgentMessage(JobResultHeard{})));
  CHECK((read_frame<CoordinatorMessage>(frame_with(FrameType::kDismiss, {})) == CoordinatorMessage(Dismiss{})));
  const std::string most(limits::kAgentDetailsBytes, 'd');
  CHECK((read_back(AgentMessage(JobResultHeard{most + "d"})) == AgentMessage(JobResultHeard{most})));
  CHECK((read_back(CoordinatorMessage(Dismiss{most + "d"})) == CoordinatorMessage(Dismiss{most})));
  const ByteString too_long = {0x00, 0x01, 0x00, 0x01};
  CHECK(read_frame<AgentMessage>(frame_with(FrameType::kJobResultHeard, too_long)).error() ==
        "a text of 65537 bytes; at most 65536 are allowed");
}

TEST_CASE("a text, a list, a choice or a yes beyond its bounds is named") {
  const auto error_of = [](FrameType type, const ByteString& fields) {
    const Frame frame = frame_with(type, fields);
    if (is_agent_message(type)) return read_frame<AgentMessage>(frame).error();
    return read_frame<CoordinatorMessage>(frame).error();
  };
  CHECK(error_of(FrameType::kNodeCannotRun, {0x00, 0x00, 0x40, 0x01}) ==
        "a text of 16385 bytes; at most 16384 are allowed");
  CHECK(error_of(FrameType::kNodeCannotRun, {0xFF, 0xFF, 0xFF, 0xFF}) ==
        "a text of 4294967295 bytes; at most 16384 are allowed");
  CHECK(error_of(FrameType::kNodeStopped, {0x00, 0x00, 0x00, 0x41}) == "a list of 65 items; at most 64 are allowed");
  CHECK(error_of(FrameType::kNodeStopped, {0x00, 0x00, 0x00, 0x40}) == "it ends in the middle of a field");
  CHECK(error_of(FrameType::kRejected, {0x07}) == "an enumeration has the value 7");
  CHECK(error_of(FrameType::kRejected, {0x08}) == "an enumeration has the value 8");
  CHECK(error_of(FrameType::kRejected, {0x00, 0, 0, 0, 0, 0x02}) == "a boolean has the value 2");
}

TEST_CASE("the session's own frames must be whole") {
  ByteString bytes;
  append_frame(bytes, kStamp, Hello{{2, 1}, "job", 5, {}});
  Frame frame = only_frame(bytes);
  CHECK(read_frame<Hello>(frame)->job == "job");
  CHECK(read_version(frame) == Version{2, 1});
  frame.fields = frame.fields.first(frame.fields.size() - 1);
  CHECK_FALSE(read_frame<Hello>(frame));
  frame.fields = frame.fields.first(3);
  CHECK_FALSE(read_version(frame));
  frame.fields = {};
  CHECK_FALSE(read_frame<Hello>(frame));
  CHECK_FALSE(read_frame<Challenge>(frame));
  CHECK_FALSE(read_frame<ProofFrame>(frame));
  CHECK_FALSE(read_frame<WelcomeFrame>(frame));
  CHECK_FALSE(read_frame<Refused>(frame));
  CHECK_FALSE(read_frame<KeepAliveFrame>(frame));
  CHECK_FALSE(read_frame<NodeIsEmptyFrame>(frame));
}

}  // namespace
}  // namespace elastic::protocol
