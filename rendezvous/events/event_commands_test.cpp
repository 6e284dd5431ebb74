#include "rendezvous/events/event_commands.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rendezvous/events/limits.h"

using namespace elastic;
using namespace elastic::events;

namespace {

const std::set<std::string> kKinds = {"node_lost", "job_ends"};

// Effects as "run 1 LINE" and "warning: TEXT".
std::vector<std::string> words(const EventCommands::Effects& effects) {
  std::vector<std::string> out;
  for (const EventCommands::Effect& effect : effects) {
    if (const auto* run = std::get_if<EventCommands::Run>(&effect)) {
      out.push_back("run " + std::to_string(run->number) + " " + run->line);
      continue;
    }
    const LogEvent& told = std::get<LogEvent>(effect);
    CHECK(told.event == "event_command");
    const char* const level = told.level == LogEvent::Level::kWarning ? "warning: "
                              : told.level == LogEvent::Level::kInfo  ? "info: "
                                                                      : "debug: ";
    out.push_back(level + told.text);
  }
  return out;
}

using Words = std::vector<std::string>;

void fill(EventCommands& commands) {
  for (std::size_t i = 0; i < limits::kEventCommands + limits::kEventCommandsWaiting; ++i)
    commands.on_event("node_lost", "x");
}

// Ends all commands, those that run and those that wait, in order.
Words drain(EventCommands& commands) {
  Words said;
  for (std::uint32_t number = 1; !commands.is_idle(); ++number) {
    for (std::string& word : words(commands.ended(number, {}))) {
      if (!word.starts_with("run ")) said.push_back(std::move(word));
    }
  }
  return said;
}

}  // namespace

TEST_CASE("a command is run for events of the kinds that were asked for, and for no other") {
  EventCommands commands(kKinds);
  CHECK(words(commands.on_event("node_lost", "{}")) == Words{"run 1 {}"});
  CHECK(words(commands.on_event("node_unfit", "{}")).empty());
  CHECK(!commands.is_idle());
  CHECK(words(commands.ended(1, {})).empty());
  CHECK(commands.is_idle());
}

TEST_CASE("as many commands run at once as may, and the next when one has ended, in the order of the events") {
  EventCommands commands(kKinds);
  for (std::size_t i = 0; i < limits::kEventCommands; ++i)
    CHECK(words(commands.on_event("node_lost", "now")).size() == 1);
  CHECK(words(commands.on_event("node_lost", "first")).empty());
  CHECK(words(commands.on_event("job_ends", "second")).empty());
  CHECK(words(commands.ended(2, {})) == Words{"run 5 first"});
  CHECK(words(commands.ended(1, {})) == Words{"run 6 second"});
  CHECK(words(commands.ended(1, {})).empty());  // command 1 has ended already
}

TEST_CASE("events beyond those that wait are dropped, and one warning says how many when the flood is over") {
  EventCommands commands(kKinds);
  fill(commands);
  for (int i = 0; i < 7; ++i) CHECK(words(commands.on_event("node_lost", "late")).empty());
  CHECK(drain(commands) == Words{"warning: --on-event: dropped 7 events: 64 others were already waiting"});
  CHECK(words(commands.on_event("node_lost", "later")).size() == 1);  // commands are run again
}

TEST_CASE("a command that fails is told as a warning the first time for each kind of event, then for debugging") {
  EventCommands commands(kKinds);
  const auto fail = [&](const char* event, EventCommands::End end) {
    const EventCommands::Effects started = commands.on_event(event, "");
    return words(commands.ended(std::get<EventCommands::Run>(started.front()).number, end));
  };
  CHECK(fail("node_lost", {.status = {.code = 3}}) ==
        Words{"warning: --on-event: the command for node_lost exited with code 3"});
  CHECK(fail("node_lost", {.killed_after_s = 30}) ==
        Words{"debug: --on-event: the command for node_lost did not end in 30 s and was killed"});
  CHECK(fail("job_ends", {.why_not_started = "no memory"}) ==
        Words{"warning: --on-event: the command for job_ends was not started: no memory"});
}

TEST_CASE("the output of a command is told line by line with its event, and fit for a terminal") {
  EventCommands commands(kKinds);
  commands.on_event("node_lost", "");
  CHECK(words(commands.ended(1, {.output = "drained n07\n\n\x1b[31mred\n"})) ==
        Words{"info: on-event node_lost: drained n07", "info: on-event node_lost: \\x1b[31mred"});
}

TEST_CASE("a job that ends says what of its commands it does not wait for, and runs no more") {
  EventCommands commands(kKinds);
  fill(commands);
  CHECK(words(commands.given_up()) == Words{"warning: --on-event: the job is over; killed 4 commands that did not end "
                                            "in time; dropped 64 waiting events"});
  CHECK(commands.is_idle());
  CHECK(words(commands.on_event("job_ends", "")).empty());
  EventCommands idle(kKinds);
  CHECK(words(idle.given_up()).empty());
}

TEST_CASE("when no command can be run any more, that is told once, and nothing is waited for") {
  EventCommands commands(kKinds);
  commands.on_event("node_lost", "");
  CHECK(words(commands.broken("it is gone")) == Words{"warning: --on-event: running no more commands: it is gone"});
  CHECK(words(commands.broken("it is gone")).empty());
  CHECK(commands.is_idle());
  CHECK(words(commands.on_event("node_lost", "")).empty());
}
