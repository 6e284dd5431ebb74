#include "cli/run/on_event.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/run/event_command_process.h"
#include "cli/run/limits.h"
#include "cli/run/log_writer.h"
#include "src/base/text.h"

namespace elastic::run {

using events::EventCommands;

OnEvent::OnEvent(const Settings& settings, const process::InheritedState& inherited)
    : is_wanted_(!settings.command.empty()), commands_(settings.kinds) {
  if (!is_wanted_) return;
  auto channel = start_event_process(settings.command, settings.environment, inherited);
  if (channel) {
    channel_ = std::move(*channel);
  } else {
    broken(channel.error().text());
  }
}

void OnEvent::begin(net::Loop& loop) {
  if (channel_) watch_.emplace(loop, channel_.get(), [this] { read(); });
}

void OnEvent::on_event(std::string_view event, const std::string& line) { perform(commands_.on_event(event, line)); }

void OnEvent::read() {
  char packet[sizeof(EventReport) + limits::kEventCommandOutputBytes];
  const ssize_t count = recv(channel_.get(), packet, sizeof packet, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < static_cast<ssize_t>(sizeof(EventReport))) return broken("the process that runs them has ended");
  EventReport report;
  std::memcpy(&report, packet, sizeof report);
  const std::string text(packet + sizeof report, static_cast<std::size_t>(count) - sizeof report);
  EventCommands::End end{.status = {.code = report.code, .signal = report.signal}};
  if (report.how == EventReport::How::kAtDeadline) end.killed_after_s = limits::kEventCommandMs / 1000;
  (report.how == EventReport::How::kNotStarted ? end.why_not_started : end.output) = text;
  perform(commands_.ended(report.number, end));
  if (is_idle() && on_idle_) on_idle_();
}

void OnEvent::broken(const std::string& why) {
  watch_.reset();
  channel_ = UniqueFd();
  perform(commands_.broken(why));
  if (on_idle_) on_idle_();
}

void OnEvent::perform(const EventCommands::Effects& effects) {
  for (const EventCommands::Effect& effect : effects) {
    if (const auto* log_event = std::get_if<events::LogEvent>(&effect)) write_log(*log_event);
    const auto* run = std::get_if<EventCommands::Run>(&effect);
    if (run == nullptr || !channel_) continue;
    const EventOrder order{.number = run->number};
    std::string packet(sizeof order, '\0');
    std::memcpy(packet.data(), &order, sizeof order);
    packet += run->line;
    const ssize_t sent = send(channel_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(packet.size())) return broken("the process that runs them does not answer");
  }
}

void OnEvent::end() {
  on_idle_ = {};
  perform(commands_.given_up());
  watch_.reset();
  channel_ = UniqueFd();
}

}  // namespace elastic::run
