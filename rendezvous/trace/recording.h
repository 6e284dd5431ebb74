#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "health/check/check_plan.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "src/base/json.h"
#include "src/base/result.h"

// All events of a coordinator as lines of JSON: a first line that says which coordinator it is, then one for each
// event. A coordinator that gets the same events again decides the same again (replay.h). docs/observing.md lists the
// lines; the members of a message are its fields (messages.h).
namespace elastic::trace {

// The first line.
struct RecordingHead {
  std::string job;      // its name
  std::string program;  // the program that wrote it: "elastic-run 0.1.0"
  coordinator::CoordinatorConfig config;
  bool has_check = false;  // the answers of the check plan are recorded, too
  static void fields(auto& io, auto& v) {
    io("job", v.job);
    io("program", v.program);
    io("birth", v.config);
    io("has_check", v.has_check);
  }
};

// An answer of the coordinator's check plan. Its line follows that of the event in which the plan was asked.
struct CheckPhases {
  int phases = 0;
  static void fields(auto& io, auto& v) { io("phases", v.phases, protocol::bounds::kCount); }
};
struct CheckOrders {
  std::vector<std::string> orders;
  static void fields(auto& io, auto& v) { io("orders", v.orders); }
};
struct CheckUnhealthy {
  std::vector<health::CheckPlan::Unhealthy> unhealthy;
  static void fields(auto& io, auto& v) { io("unfit", v.unhealthy); }
};
using CheckAnswer = std::variant<CheckPhases, CheckOrders, CheckUnhealthy>;
constexpr auto names_of(const CheckAnswer&) { return std::array{"phases", "orders", "unfit"}; }

struct RecordedEvent {
  std::int64_t at_ms = 0;  // by the clock of config.now_ms
  coordinator::Event event;
  static void fields(auto& io, auto& v) {
    io("at_ms", v.at_ms, protocol::bounds::kSignedMs);
    io.one_of("event", v.event);
  }
};
// A line after the first. Another head begins the recording of a later coordinator of this process.
using RecordedLine = std::variant<RecordedEvent, CheckAnswer, RecordingHead>;

// The members of a line, without the format and version of a first one.
Json recorded(const RecordingHead& head);
Json recorded(const RecordedEvent& event);
// Each returns one line with its newline. A text that is not UTF-8 is kept byte by byte.
std::string recording_head(const RecordingHead& head);
// The head of a coordinator's recording, as this program writes it.
std::string recording_head(const std::string& job, const coordinator::CoordinatorConfig& config, bool has_check);
std::string recording_line(const coordinator::Event& event, std::int64_t at_ms);
std::string recording_line(const CheckAnswer& answer);

// Parse a line. `place` names it in the error: "run.jsonl:17". They fail if the line is not JSON, lacks a member or has
// one of the wrong type or out of its bounds, and on a first line of a newer version. Unknown members are ignored.
Result<RecordingHead> parse_recording_head(std::string_view line, const std::string& place);
Result<RecordedLine> parse_recording_line(std::string_view line, const std::string& place);

// A plan that answers as `plan` does and hands each answer to `write` as a line.
std::unique_ptr<health::CheckPlan> recorded_check(std::unique_ptr<health::CheckPlan> plan,
                                                  std::function<void(std::string line)> write);

}  // namespace elastic::trace
