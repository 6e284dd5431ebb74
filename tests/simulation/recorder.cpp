#include "tests/simulation/recorder.h"

#include <algorithm>

#include "rendezvous/trace/recording.h"
#include "rendezvous/trace/replay.h"
#include "src/base/text.h"

namespace elastic::simulation {

using namespace protocol;

namespace {

Recording::State state_of(const coordinator::Coordinator& coordinator) {
  return {coordinator.state(),
          coordinator.round(),
          coordinator.roster().size(),
          coordinator.is_checking(),
          coordinator.next_deadline_ms(),
          coordinator.term(),
          coordinator.incarnation()};
}

// Whether the session, or the job, ends at the same time: the bytes that were read together contain the reason, so that
// the message is not sent. `at` is the end of the present line, whose time is `now_ms`.
bool ends_at_once(const Recording& recording, std::size_t at, std::int64_t now_ms, const coordinator::Send& send) {
  const auto* dismissed = std::get_if<Dismiss>(&send.message);
  const bool ends_session =
      dismissed != nullptr ? dismissed->details.empty() : std::holds_alternative<Rejected>(send.message);
  const std::string_view all = recording.text;
  std::size_t end = all.find(format("\"event\":\"session-ended\",\"from\":{},", send.to), at);
  if (end == std::string_view::npos) {
    if (all.find(format("\"from\":{},", send.to), at) == std::string_view::npos && ends_session) return true;
    end = all.size() - 1;  // the last line
  }
  const std::size_t line = all.rfind('\n', end - 1) + 1;
  return all.substr(line).starts_with(format("{{\"at_ms\":{},", now_ms));
}

std::string text(const Recording::State& state) {
  return format("{}, round {}, {} nodes, {}deadline {}, term {}, incarnation {:x}",
                names_of(state.state).at(static_cast<std::size_t>(state.state)),
                state.round ? format("{}", *state.round) : "none", state.nodes, state.is_checking ? "checking, " : "",
                state.deadline_ms ? format("{}", *state.deadline_ms) : "none", state.term, state.incarnation);
}

std::string text(const coordinator::Send& send) { return trace::told_in({send}).dump(); }

}  // namespace

void Recorder::takes(const OfServer& which, const coordinator::Coordinator& real, const coordinator::Event& event,
                     std::int64_t now_ms) {
  auto found = open_.find(which);
  if (found != open_.end() && found->second.born_as == real.config().incarnation) know_state(found->second, &real);
  if (found == open_.end() || found->second.born_as != real.config().incarnation) {
    found = open_
                .insert_or_assign(which,
                                  Open{.index = recordings_.size(), .born_as = real.config().incarnation, .heard = {}})
                .first;
    recordings_.push_back({.job = which.second,
                           .term = real.config().term,
                           .text = trace::recording_head(which.second, real.config(), has_check_),
                           .after = {},
                           .sent = {},
                           .logged = {}});
  }
  Open& open = found->second;
  if (const auto* said = std::get_if<coordinator::MessageReceived>(&event)) open.heard.insert(said->from);
  recordings_[open.index].text += trace::recording_line(event, now_ms);
  recordings_[open.index].after.emplace_back();
  open.acts = true;
  asked_ = open.index;
}

void Recorder::answered(const std::string& line) {
  if (asked_) recordings_[*asked_].text += line;
}

void Recorder::know_state(Open& open, const coordinator::Coordinator* real) {
  if (!open.acts) return;
  open.acts = false;
  if (real != nullptr && real->config().incarnation == open.born_as)
    recordings_[open.index].after.back() = state_of(*real);
}

void Recorder::has_acted(const OfServer& which, const coordinator::Coordinator* real) {
  if (const auto found = open_.find(which); found != open_.end()) know_state(found->second, real);
}

void Recorder::sends(const OfServer& which, NodeId session, const CoordinatorMessage& message) {
  const auto found = open_.find(which);
  if (found == open_.end()) return;
  // A session that has sent nothing gets its messages from the service, about a job that has ended.
  if (found->second.heard.contains(session)) recordings_[found->second.index].sent.push_back({session, message});
}

void Recorder::logs(const OfServer& which, const std::string& text) {
  const auto found = open_.find(which);
  if (found != open_.end()) recordings_[found->second.index].logged.push_back(text);
}

void Recorder::killed(std::uint32_t server) {
  for (const auto& [which, open] : open_) {
    if (which.first == server) recordings_[open.index].was_killed = true;
  }
  std::erase_if(open_, [server](const auto& entry) { return entry.first.first == server; });
  asked_.reset();
}

std::optional<std::string> difference(const Recording& recording, const std::string& name) {
  std::size_t at = 0;
  const auto source = [&]() -> std::optional<trace::SourceLine> {
    if (at >= recording.text.size()) return {};
    const std::size_t end = std::min(recording.text.find('\n', at), recording.text.size());
    trace::SourceLine line{recording.text.substr(at, end - at), end < recording.text.size()};
    at = end + 1;
    return line;
  };
  trace::Replay replay(source, name);
  if (const auto begins = replay.begin(); !begins) return begins.error().text();
  std::size_t events = 0;
  std::size_t sent = 0;
  std::size_t logged = 0;
  const auto place = [&] { return format("{}:{}", name, replay.line()); };
  for (;;) {
    const auto step = replay.next();
    if (!step) return step.error().text();
    if (!*step) break;
    for (const coordinator::Effect& effect : (**step).effects) {
      if (const auto* note = std::get_if<coordinator::Note>(&effect)) {
        // The lines between two decisions are those of the sessions.
        const auto from = recording.logged.begin() + static_cast<std::ptrdiff_t>(logged);
        const auto found = std::find(from, recording.logged.end(), note->text);
        const bool is_there = found != recording.logged.end();
        if (!is_there && !recording.was_killed)
          return format("{}: it decides \"{}\", which the first one did not", place(), note->text);
        if (is_there) logged = static_cast<std::size_t>(found - recording.logged.begin()) + 1;
      }
      const auto* now = std::get_if<coordinator::Send>(&effect);
      if (now == nullptr) continue;
      const bool is_told = sent < recording.sent.size();
      const auto* then = is_told ? &recording.sent[sent] : nullptr;
      if (is_told && then->to == now->to && then->message == now->message) {
        ++sent;
        continue;
      }
      if ((!is_told && recording.was_killed) || ends_at_once(recording, at, (**step).told.at_ms, *now)) continue;
      return format("{}: it tells {}; the first one told {}", place(), text(*now),
                    is_told ? text(*then) : "nobody any more");
    }
    if (events == recording.after.size()) return format("{}: there are more events than were taken", place());
    const auto& then = recording.after[events++];
    const Recording::State now = state_of(replay.coordinator());
    if (then && *then != now) return format("{}: it is {}; the first one was {}", place(), text(now), text(*then));
  }
  if (events != recording.after.size()) return format("{}: {} events of {}", place(), events, recording.after.size());
  if (sent != recording.sent.size()) return format("{}: the first one told {}", place(), text(recording.sent[sent]));
  return {};
}

}  // namespace elastic::simulation
