#include "rendezvous/trace/recording.h"

#include <array>
#include <utility>
#include <vector>

#include "rendezvous/trace/limits.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

// --- The lists of fields of a coordinator's events. The coordinator knows of no recording. -------------

constexpr auto names_of(const Event&) {
  return std::array{
      "said",        "heard",   "session-ended",   "introduced",          "node-emptied", "operator-order",
      "time-passed", "promise", "own-agent-ended", "own-agent-elsewhere", "door-tried",   "coordinator-announced",
      "host-leaves"};
}
static_assert(std::tuple_size_v<decltype(names_of(std::declval<const Event&>()))> ==
              std::variant_size_v<Event::variant>);
void fields(auto& io, Is<MessageReceived> auto& v) {
  io("from", v.from);
  io.one_of("message", v.message);
}
void fields(auto& io, Is<KeepAliveReceived> auto& v) { io("from", v.from); }
void fields(auto& io, Is<LeaseAckReceived> auto& v) {
  io("from", v.from);
  io("since_ms", v.since_ms, bounds::kSignedMs);
  io("testimony", v.voter_state);
}
void fields(auto& io, Is<SessionEnded> auto& v) {
  io("from", v.from);
  io("how", v.how);
}
void fields(auto& io, Is<Introduced> auto& v) {
  io("incarnation", v.incarnation);
  io("term", v.term);
}
void fields(auto& io, Is<NodeEmptied> auto& v) {
  io("agent", v.agent);
  io("incarnation", v.incarnation);
  io("round", v.round);
}
constexpr auto names_of(OperatorOrder::Kind) { return std::array{"drain", "stop"}; }
void fields(auto& io, Is<OperatorOrder> auto& v) {
  io("kind", v.kind);
  io.if_set("node", v.node, bounds::kName);
  io.if_set("from", v.from, bounds::kName);
}
void fields(auto&, Is<TimePassed> auto&) {}
void fields(auto&, Is<OwnAgentEnded> auto&) {}
void fields(auto& io, Is<OwnAgentElsewhere> auto& v) { io("term", v.term); }
void fields(auto& io, Is<HostLeaves> auto& v) { io("signal", v.signal); }
void fields(auto& io, Is<PeerPortTried> auto& v) {
  io("agent", v.agent);
  io.if_set("address", v.address, bounds::kName);
}
void fields(auto& io, Is<CoordinatorGossiped> auto& v) {
  io("incarnation", v.incarnation);
  io("birth_ms", v.birth_ms, bounds::kSignedMs);
  io("round", v.round);
  io("where", v.where, bounds::kName);
}

void fields(auto& io, Is<CoordinatorConfig> auto& v) {
  io("term", v.term);
  io("incarnation", v.incarnation);
  io("loss_timeout_ms", v.lease.loss_timeout_ms, bounds::kMs);
  io("now_ms", v.now_ms, bounds::kSignedMs);
  io.if_set("random", v.random);
  io.if_set("made_ms", v.made_ms, bounds::kSignedMs);
  io.if_set("birth_ms", v.birth_ms, bounds::kSignedMs);
  io.if_set("least_birth_ms", v.least_birth_ms, bounds::kSignedMs);
  io("own_agent", v.own_agent);
  io("own_process", v.own_process);
}

}  // namespace elastic::coordinator

namespace elastic::trace {
namespace {

constexpr const char* kFormat = "elastic-run coordinator recording";
constexpr int kVersion = 1;
constexpr std::size_t kLevels = 16;
constexpr std::size_t kMembers = 200;

Result<Json> parse_line(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "correct the line, or take it out";
  if (line.size() > limits::kRecordingLineBytes) {
    return fail(place, format("the line is longer than {} bytes", limits::kRecordingLineBytes));
  }
  if (std::string over = json_over_bounds(line, kLevels, kMembers); !over.empty()) return fail(place, over, kRemedy);
  auto parsed = Json::parse(line, place);
  if (!parsed) return fail(place, format("it is not JSON: {}", printable(parsed.error().reason)), kRemedy);
  if (parsed->as_object() == nullptr) return fail(place, "it is not a JSON object", kRemedy);
  return parsed;
}

}  // namespace

Json recorded(const RecordingHead& head) { return write_json(head, JsonForm::kExact); }
Json recorded(const RecordedEvent& event) { return write_json(event, JsonForm::kExact); }

std::string recording_head(const RecordingHead& head) {
  Json out = Json::object();
  out.set("format", kFormat).set("version", kVersion);
  JsonWriter writer(out, JsonForm::kExact);
  RecordingHead::fields(writer, head);
  return out.dump() + "\n";
}

std::string recording_head(const std::string& job, const coordinator::CoordinatorConfig& config, bool has_check) {
  return recording_head(
      {.job = job, .program = "elastic-run " ELASTIC_RUN_VERSION, .config = config, .has_check = has_check});
}

std::string recording_line(const coordinator::Event& event, std::int64_t at_ms) {
  return recorded(RecordedEvent{at_ms, event}).dump() + "\n";
}

std::string recording_line(const CheckAnswer& answer) {
  Json out = Json::object();
  JsonWriter(out, JsonForm::kExact).one_of("check", answer);
  return out.dump() + "\n";
}

Result<RecordingHead> parse_recording_head(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "name a file that --record has written";
  const auto parsed = parse_line(line, place);
  const Json* version = parsed ? parsed->find("version") : nullptr;
  if (!parsed || parsed->text_or_empty("format") != kFormat) {
    return fail(place, format("it is not an {}", kFormat), kRemedy);
  }
  const auto number = version != nullptr ? version->as_integer() : std::nullopt;
  if (!number || *number < 1) return fail(place, "member version is not a whole number above 0", kRemedy);
  if (*number > kVersion) {
    return fail(place,
                format("the recording is of version {}, and this elastic-run reads version {}", *number, kVersion),
                "use the elastic-run that has written it, or a newer one");
  }
  RecordingHead head;
  const std::string wrong = read_json(*parsed, head, JsonForm::kExact);
  if (!wrong.empty()) return fail(place, "member " + wrong, "correct the line");
  return head;
}

Result<RecordedLine> parse_recording_line(std::string_view line, const std::string& place) {
  const auto parsed = parse_line(line, place);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->find("format") != nullptr) {
    auto head = parse_recording_head(line, place);
    if (!head) return std::unexpected(std::move(head.error()));
    return *std::move(head);
  }
  RecordedLine read;
  JsonReader reader(*parsed, JsonForm::kExact);
  if (parsed->find("check") != nullptr) {
    reader.one_of("check", read.emplace<CheckAnswer>());
  } else {
    RecordedEvent::fields(reader, read.emplace<RecordedEvent>());
  }
  if (!reader.error().empty()) return fail(place, "member " + reader.error(), "correct the line, or take it out");
  return read;
}

namespace {

class RecordedCheck : public health::CheckPlan {
 public:
  RecordedCheck(std::unique_ptr<health::CheckPlan> plan, std::function<void(std::string line)> write)
      : plan_(std::move(plan)), write_(std::move(write)) {}

  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules) const override {
    const int answer = plan_->phases(nodes, rules);
    write_(recording_line(CheckPhases{answer}));
    return answer;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>& earlier,
                                  const health::CheckRules& rules) const override {
    std::vector<std::string> answer = plan_->orders(phase, nodes, earlier, rules);
    write_(recording_line(CheckOrders{answer}));
    return answer;
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>& results) const override {
    std::vector<Unhealthy> answer = plan_->unhealthy(nodes, results);
    write_(recording_line(CheckUnhealthy{answer}));
    return answer;
  }

 private:
  std::unique_ptr<health::CheckPlan> plan_;
  std::function<void(std::string line)> write_;
};

}  // namespace

std::unique_ptr<health::CheckPlan> recorded_check(std::unique_ptr<health::CheckPlan> plan,
                                                  std::function<void(std::string line)> write) {
  return std::make_unique<RecordedCheck>(std::move(plan), std::move(write));
}

}  // namespace elastic::trace
