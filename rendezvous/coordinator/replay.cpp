#include "rendezvous/coordinator/replay.h"

#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/recording_messages.h"
#include "rendezvous/protocol/term.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

namespace {

// The session that an event comes from, if it comes from one.
std::optional<NodeId> session_of(const Event& event) {
  if (const auto* said = std::get_if<MessageReceived>(&event)) return said->from;
  if (const auto* heard = std::get_if<KeepAliveReceived>(&event)) return heard->from;
  if (const auto* ended = std::get_if<SessionEnded>(&event)) return ended->from;
  return {};
}

}  // namespace

// Stands in for the check plan, with the answers that are recorded in the lines after the event.
class Replay::Answers : public CheckPlan {
 public:
  explicit Answers(Replay& replay) : replay_(replay) {}

  int phases(const std::vector<CheckNode>&, const protocol::CheckRules&) const override {
    const auto answer = take<CheckPhases>("how many phases it has");
    return answer ? answer->phases : 0;
  }
  std::vector<std::string> orders(std::uint32_t, const std::vector<CheckNode>& nodes, const std::vector<CheckResults>&,
                                  const protocol::CheckRules&) const override {
    auto answer = take<CheckOrders>("what its orders are");
    if (answer && answer->orders.size() != nodes.size()) {
      wrong(format("the check has {} for {}", counted(answer->orders.size(), "order"), counted(nodes.size(), "node")));
    }
    if (!answer || answer->orders.size() != nodes.size()) return std::vector<std::string>(nodes.size());
    return std::move(answer->orders);
  }
  std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>&) const override {
    auto answer = take<CheckUnfit>("which nodes are unfit");
    if (!answer) return {};
    for (const Unfit& found : answer->unfit) {
      if (static_cast<std::size_t>(found.node_rank) < nodes.size()) continue;
      wrong(format("node {} is unfit, and the round has {}", found.node_rank, counted(nodes.size(), "node")));
      return {};
    }
    return std::move(answer->unfit);
  }

 private:
  void wrong(std::string reason) const {
    if (!replay_.answer_error_) {
      replay_.answer_error_ = Error{replay_.place(), std::move(reason), "correct the line"};
    }
  }
  template <class Answer>
  std::optional<Answer> take(const char* what) const {
    if (replay_.answer_error_) return {};
    auto read = replay_.take_recorded();
    if (!read) {
      replay_.answer_error_ = read.error();
      return {};
    }
    if (!*read) {
      replay_.cut_off_ = true;
      return {};
    }
    if (const auto* line = std::get_if<CheckAnswer>(&**read)) {
      if (const auto* answer = std::get_if<Answer>(line)) return *answer;
    }
    wrong(format("the check is asked {} here, but the line does not answer that", what));
    return {};
  }

  Replay& replay_;
};

Replay::Replay(LineSource source, std::string name) : source_(std::move(source)), name_(std::move(name)) {}
Replay::~Replay() = default;

std::optional<SourceLine> Replay::take_line() {
  if (cut_off_) return {};
  auto line = source_();
  if (line) ++line_;
  return line;
}

std::string Replay::place() const { return format("{}:{}", name_, line_); }

Result<RecordingHead> Replay::begin() {
  const auto line = take_line();
  if (!line || line->text.empty()) {
    return fail(format("{}:1", name_), "there is no recording in it", "name a file that --record has written");
  }
  auto head = parse_recording_head(line->text, place());
  if (head) take_up(*head);
  return head;
}

void Replay::take_up(const RecordingHead& head) {
  born_ms_ = head.config.now_ms;
  addresses_.clear();
  coordinator_ =
      std::make_unique<Coordinator>(head.config, head.has_check ? std::make_unique<Answers>(*this) : no_check());
}

// Empty lines are skipped, and so is a last line that its writer did not finish.
Result<std::optional<RecordedLine>> Replay::take_recorded() {
  for (;;) {
    const auto line = take_line();
    if (!line) return std::nullopt;
    if (trim(line->text).empty()) continue;
    auto read = parse_recording_line(line->text, place());
    if (read) return std::optional(std::move(*read));
    if (line->is_whole) return std::unexpected(std::move(read.error()));
    cut_off_ = true;
    return std::nullopt;
  }
}

Result<std::optional<Replay::Step>> Replay::next() {
  const auto read = take_recorded();
  if (!read) return std::unexpected(read.error());
  if (!*read) return std::nullopt;
  if (const auto* head = std::get_if<RecordingHead>(&**read)) {
    take_up(*head);
    Step begins;
    begins.begins = *head;
    return begins;
  }
  const auto* recorded = std::get_if<RecordedEvent>(&**read);
  if (recorded == nullptr)
    return fail(place(), "it is an answer of the check, which was not asked", "take the line out");
  Step step;
  step.since_birth_ms = recorded->at_ms - born_ms_;
  const std::string before = state();
  const bool is_small =
      std::holds_alternative<KeepAliveReceived>(recorded->event) || std::holds_alternative<TimePassed>(recorded->event);
  if (const auto session = session_of(recorded->event)) {
    if (const auto* said = std::get_if<MessageReceived>(&recorded->event)) {
      if (const auto* joins = std::get_if<NodeJoins>(&said->message)) addresses_[*session] = printable(joins->address);
    }
    step.who = name_of(*session);
  }
  step.event = in_words(recorded->event);
  const Effects effects = coordinator_->on_event(recorded->event, recorded->at_ms);
  for (const Effect& effect : effects) perform(step, effect);
  if (std::holds_alternative<SessionEnded>(recorded->event)) addresses_.erase(*session_of(recorded->event));
  step.state = state();
  step.is_quiet = is_small && effects.empty() && step.state == before;
  if (const auto deadline_ms = coordinator_->next_deadline_ms()) {
    step.state += format(", waits until {}", time_in_words(*deadline_ms - born_ms_));
  }
  if (answer_error_) return std::unexpected(*answer_error_);
  if (cut_off_) return std::nullopt;  // the recording ends among the answers of the check: the step is not whole
  return step;
}

std::string Replay::name_of(NodeId session) const {
  const auto found = addresses_.find(session);
  if (found == addresses_.end()) return format("session {}", session);
  return found->second.empty() ? format("session {}", session) : format("{} (session {})", found->second, session);
}

void Replay::perform(Step& step, const Effect& effect) {
  if (const auto* note = std::get_if<Note>(&effect)) {
    step.decisions.push_back(printable(note->text, 4000));
    return;
  }
  if (std::holds_alternative<CheckJudged>(effect)) return;    // the answers of the check have lines of their own
  if (std::holds_alternative<OrderAnswered>(effect)) return;  // a note says the same
  // Not in the recording: an empty answer to a keep-alive, and what DoorTried answers.
  if (std::holds_alternative<Ask>(effect) || std::holds_alternative<TryDoor>(effect)) return;
  const auto* send = std::get_if<Send>(&effect);
  const auto* drop = std::get_if<Drop>(&effect);
  const NodeId session = send != nullptr ? send->to : drop->session;
  std::string what =
      send != nullptr ? in_words(send->message) : format("the session is closed: {}", printable(drop->reason, 1000));
  if (!step.sent.empty() && step.sent.back().what == what) {
    step.sent.back().to.push_back(name_of(session));
  } else {
    step.sent.push_back({{name_of(session)}, std::move(what)});
  }
  if (drop != nullptr) addresses_.erase(session);
}

std::string Replay::state() const {
  const auto round = coordinator_->round();
  return format("{}{}, {}", in_words(coordinator_->state()), round ? format(", round {}", *round) : "",
                counted(coordinator_->roster().size(), "node"));
}

std::string text(const RecordingHead& head) {
  return format(
      "job {}: coordinator of term {}, incarnation {:x}; a node is lost after {} ms without a message; recorded by "
      "{}\n",
      printable(head.job), text_of_term(head.config.term), head.config.incarnation, head.config.lease.loss_timeout_ms,
      printable(head.program));
}

std::string text(const Replay::Step& step) {
  if (step.begins) return format("\nanother coordinator of this process:\n{}", text(*step.begins));
  constexpr std::size_t kReceiversNamed = 4;
  std::string out =
      format("{}  {}{}{}\n", time_in_words(step.since_birth_ms), step.who, step.who.empty() ? "" : " ", step.event);
  for (const std::string& decision : step.decisions) out += format("    decided: {}\n", decision);
  for (const Replay::Step::Sent& sent : step.sent) {
    const std::size_t named = std::min(sent.to.size(), kReceiversNamed);
    std::string to = join({sent.to.begin(), sent.to.begin() + static_cast<std::ptrdiff_t>(named)}, ", ");
    if (sent.to.size() > named) to += format(" and {} more", sent.to.size() - named);
    out += format("    to {}: {}\n", to, sent.what);
  }
  out += format("    now: {}\n", step.state);
  return out;
}

std::string text_of_end(const Replay& replay) {
  const Coordinator& coordinator = replay.coordinator();
  std::string out;
  if (replay.is_cut_off()) out += format("line {} is not whole: the recording was cut off there\n", replay.line());
  if (!coordinator.ended()) return out + "the recording ends here, before the job has\n";
  if (!coordinator.ending().verdict()) return out + "the coordinator has ended: another one has taken over\n";
  return out + format("{}\n", in_words(*coordinator.ending().verdict()));
}

}  // namespace elastic::coordinator
