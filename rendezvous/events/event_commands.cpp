#include "rendezvous/events/event_commands.h"

#include <utility>

#include "rendezvous/events/limits.h"
#include "src/base/text.h"

namespace elastic::events {
namespace {

using Level = LogEvent::Level;

constexpr std::size_t kLineBytes = 400;

void add_event(EventCommands::Effects& out, Level level, std::string text, const std::string& of_event) {
  Json fields = Json::object();
  fields.set("of_event", of_event.empty() ? Json() : Json(of_event));
  out.push_back(
      LogEvent{.level = level, .event = "event_command", .text = std::move(text), .fields = std::move(fields)});
}

// How a command failed, as the end of a sentence; empty if it did not.
std::string what_is_wrong(const EventCommands::End& end) {
  if (!end.why_not_started.empty()) return format("was not started: {}", end.why_not_started);
  if (end.killed_after_s) return format("did not end in {} s and was killed", *end.killed_after_s);
  return end.status.success() ? "" : end.status.text();
}

}  // namespace

EventCommands::Effects EventCommands::on_event(std::string_view event, const std::string& line) {
  Effects out;
  if (is_broken_ || !kinds_.contains(event)) return out;
  if (waiting_.size() == limits::kEventCommandsWaiting) {
    ++dropped_;
    return out;
  }
  waiting_.push_back({std::string(event), line});
  run_next(out);
  return out;
}

void EventCommands::run_next(Effects& out) {
  while (!waiting_.empty() && running_.size() < limits::kEventCommands) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    running_.emplace(++last_, std::move(next.event));
    out.push_back(Run{last_, std::move(next.line)});
  }
}

EventCommands::Effects EventCommands::ended(std::uint32_t number, const End& end) {
  Effects out;
  const auto found = running_.find(number);
  if (found == running_.end()) return out;
  const std::string event = std::move(found->second);
  running_.erase(found);
  for (const std::string& line : split(end.output, '\n')) {
    if (!trim(line).empty())
      add_event(out, Level::kInfo, format("on-event {}: {}", event, printable(line, kLineBytes)), event);
  }
  if (const std::string wrong = what_is_wrong(end); !wrong.empty()) {
    const bool is_news = warned_of_.insert(event).second;
    add_event(out, is_news ? Level::kWarning : Level::kDebug, format("--on-event: the command for {} {}", event, wrong),
              event);
  }
  run_next(out);
  if (is_idle()) tell_of_dropped(out);
  return out;
}

// Called when no command runs or waits any more, so that one log event has the whole number.
void EventCommands::tell_of_dropped(Effects& out) {
  const std::size_t count = std::exchange(dropped_, 0);
  if (count == 0) return;
  add_event(out, std::exchange(has_told_of_dropped_, true) ? Level::kInfo : Level::kWarning,
            format("--on-event: dropped {}: {} others were already waiting", counted(count, "event"),
                   limits::kEventCommandsWaiting),
            "");
}

EventCommands::Effects EventCommands::broken(const std::string& why) {
  Effects out;
  if (std::exchange(is_broken_, true)) return out;
  add_event(out, Level::kWarning, format("--on-event: running no more commands: {}", why), "");
  running_.clear();
  waiting_.clear();
  return out;
}

EventCommands::Effects EventCommands::given_up() {
  Effects out;
  tell_of_dropped(out);
  if (is_idle()) return out;
  std::string text =
      format("--on-event: the job is over; killed {} that did not end in time", counted(running_.size(), "command"));
  if (!waiting_.empty()) text += format("; dropped {}", counted(waiting_.size(), "waiting event"));
  add_event(out, Level::kWarning, text, "");
  running_.clear();
  waiting_.clear();
  is_broken_ = true;
  return out;
}

}  // namespace elastic::events
