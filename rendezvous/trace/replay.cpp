#include "rendezvous/trace/replay.h"

#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::trace {

using namespace coordinator;
using namespace protocol;

// Stands in for the check plan, with the answers that are recorded in the lines after the event.
class Replay::Answers : public health::CheckPlan {
 public:
  explicit Answers(Replay& replay) : replay_(replay) {}

  int phases(const std::vector<health::CheckNode>&, const health::CheckRules&) const override {
    const auto answer = take<CheckPhases>("how many phases it has");
    return answer ? answer->phases : 0;
  }
  std::vector<std::string> orders(std::uint32_t, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>&, const health::CheckRules&) const override {
    auto answer = take<CheckOrders>("what its orders are");
    if (answer && answer->orders.size() != nodes.size()) {
      wrong(format("the check has {} for {}", counted(answer->orders.size(), "order"), counted(nodes.size(), "node")));
    }
    if (!answer || answer->orders.size() != nodes.size()) return std::vector<std::string>(nodes.size());
    return std::move(answer->orders);
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>&) const override {
    auto answer = take<CheckUnhealthy>("which nodes are unfit");
    if (!answer) return {};
    for (const Unhealthy& found : answer->unhealthy) {
      if (static_cast<std::size_t>(found.node_rank) < nodes.size()) continue;
      wrong(format("node {} is unfit, and the round has {}", found.node_rank, counted(nodes.size(), "node")));
      return {};
    }
    return std::move(answer->unhealthy);
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

Result<std::string> Replay::begin() {
  const auto line = take_line();
  if (!line || line->text.empty()) {
    return fail(format("{}:1", name_), "there is no recording in it", "name a file that --record has written");
  }
  const auto head = parse_recording_head(line->text, place());
  if (!head) return std::unexpected(head.error());
  return take_up(*head);
}

std::string Replay::take_up(const RecordingHead& head) {
  born_ms_ = head.config.now_ms;
  quiet_ = 0;
  coordinator_ = std::make_unique<Coordinator>(head.config,
                                               head.has_check ? std::make_unique<Answers>(*this) : health::no_check());
  return recorded(head).dump() + "\n";
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
  Step step;
  if (const auto* head = std::get_if<RecordingHead>(&**read)) {
    step.begins = last_line();
    step.begins += take_up(*head);
    return step;
  }
  auto* event = std::get_if<RecordedEvent>(&**read);
  if (event == nullptr) return fail(place(), "it is an answer of the check, which was not asked", "take the line out");
  const auto state = [this] {
    return std::tuple(coordinator_->state(), coordinator_->round(), coordinator_->roster().size());
  };
  const auto before = state();
  step.told = std::move(*event);
  step.effects = coordinator_->on_event(step.told.event, step.told.at_ms);
  if (answer_error_) return std::unexpected(*answer_error_);
  if (cut_off_) return std::nullopt;  // the recording ends among the answers of the check: the step is not whole
  const bool is_small =
      std::holds_alternative<KeepAliveReceived>(step.told.event) || std::holds_alternative<TimePassed>(step.told.event);
  const bool only_answers = std::ranges::all_of(
      step.effects, [](const Effect& effect) { return std::holds_alternative<AnswerKeepAlive>(effect); });
  step.is_quiet = is_small && only_answers && state() == before;
  if (step.is_quiet) {
    ++quiet_;
  } else {
    step.quiet_before = std::exchange(quiet_, 0);
  }
  return step;
}

std::string Replay::text(const Step& step) const {
  if (step.is_quiet || !step.begins.empty()) return step.begins;
  Json decided = Json::array();
  for (const Effect& effect : step.effects) {
    if (const auto* note = std::get_if<Note>(&effect)) decided.push(note->text);
  }
  const auto round = coordinator_->round();
  const auto deadline_ms = coordinator_->next_deadline_ms();
  Json line = Json::object();
  line.set("at_ms", step.told.at_ms - born_ms_).set("quiet", step.quiet_before).set("event", recorded(step.told));
  line.set("decided", std::move(decided)).set("sent", told_in(step.effects));
  line.set("state", names_of(coordinator_->state()).at(static_cast<std::size_t>(coordinator_->state())));
  line.set("round", round ? Json(std::int64_t{*round}) : Json());
  line.set("nodes", static_cast<std::int64_t>(coordinator_->roster().size()));
  line.set("deadline_ms", deadline_ms ? Json(*deadline_ms - born_ms_) : Json());
  return line.dump() + "\n";
}

std::string Replay::last_line() const {
  const auto& job_result = coordinator_->ending().job_result();
  const bool is_known = coordinator_->ended() && job_result;
  Json line = Json::object();
  line.set("quiet", quiet_);
  line.set("end", !coordinator_->ended() ? "unfinished" : is_known ? "verdict" : "taken-over");
  line.set("verdict", is_known ? write_json(*job_result, JsonForm::kExact) : Json());
  line.set("cut_off_line", cut_off_ ? Json(static_cast<std::int64_t>(line_)) : Json());
  return line.dump() + "\n";
}

// Of the other effects, CheckJudged is in the recording already, and OrderAnswered in a note. AnswerKeepAlive is
// no message, and the result of TryPeerPort is an event.
Json told_in(const Effects& effects) {
  struct Told {
    Json entry;
    std::string text;  // the entry without its receivers
    Json to = Json::array();
  };
  std::vector<Told> all;
  for (const Effect& effect : effects) {
    Json entry = Json::object();
    entry.set("to", Json());
    const auto* send = std::get_if<Send>(&effect);
    const auto* drop = std::get_if<Drop>(&effect);
    if (send != nullptr) {
      JsonWriter(entry, JsonForm::kExact).one_of("message", send->message);
    } else if (drop != nullptr) {
      entry.set("closed", drop->reason);
    } else {
      continue;
    }
    std::string text = entry.dump();
    if (all.empty() || all.back().text != text) all.push_back({std::move(entry), std::move(text)});
    all.back().to.push(std::int64_t{send != nullptr ? send->to : drop->session});
  }
  Json list = Json::array();
  for (Told& told : all) {
    told.entry.set("to", std::move(told.to));
    list.push(std::move(told.entry));
  }
  return list;
}

}  // namespace elastic::trace
