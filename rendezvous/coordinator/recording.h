#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/coordinator/check_plan.h"
#include "rendezvous/coordinator/coordinator.h"
#include "src/base/result.h"

// All that a coordinator has been told, as text: a line that says whose coordinator it is, and one for each
// event. Told the same again, a coordinator decides the same again (replay.h). docs/recording.md has every member.
namespace elastic::coordinator {

// The first line.
struct RecordingHead {
  std::string job;      // its name
  std::string program;  // that wrote it: "elastic-run 0.1.0"
  CoordinatorConfig config;
  bool has_check = false;  // what the check plan answered is recorded, too
};

// What the coordinator's check plan answered, in lines behind that of the event in which it was asked.
struct CheckPhases {
  int phases = 0;
};
struct CheckOrders {
  std::vector<std::string> orders;
};
struct CheckUnfit {
  std::vector<CheckPlan::Unfit> unfit;
};
using CheckAnswer = std::variant<CheckPhases, CheckOrders, CheckUnfit>;

struct RecordedEvent {
  std::int64_t at_ms = 0;  // by the clock of config.now_ms
  Event event;
};
// A line behind the first.
using RecordedLine = std::variant<RecordedEvent, CheckAnswer>;

// Each is one line, with its end. A text that is not UTF-8 is kept as it is, byte by byte.
std::string recording_head(const RecordingHead& head);
// The head of a coordinator's recording, as this program writes it.
std::string recording_head(const std::string& job, const CoordinatorConfig& config, bool has_check);
std::string recording_line(const Event& event, std::int64_t at_ms);
std::string recording_line(const CheckAnswer& answer);

// Read a line again. `place` names it in the error: "run.jsonl:17". Fail on what is not JSON, lacks a member or has
// one of the wrong kind or out of its bounds, and on a head of a newer version; unknown members are passed over.
Result<RecordingHead> parse_recording_head(std::string_view line, const std::string& place);
Result<RecordedLine> parse_recording_line(std::string_view line, const std::string& place);

// The plan, and each of its answers to `write`, as a line.
std::unique_ptr<CheckPlan> recorded_check(std::unique_ptr<CheckPlan> plan, std::function<void(std::string line)> write);

}  // namespace elastic::coordinator
