#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/trace/recording.h"
#include "src/base/json.h"
#include "src/base/result.h"

namespace elastic::coordinator {
class Coordinator;
}

namespace elastic::trace {

// A line of a recording.
struct SourceLine {
  std::string text;      // without its newline
  bool is_whole = true;  // it had a newline
};
// Returns the next line; empty after the last one. A line longer than limits::kRecordingLineBytes may be cut.
using LineSource = std::function<std::optional<SourceLine>()>;

// Feeds the recorded events of a coordinator to another one, and returns what that decides, as lines of JSON. The same
// recording always gives the same lines. docs/observing.md lists their members.
class Replay {
 public:
  struct Step {
    // Another coordinator begins, without an event: the last line of the one before, and the first one of this. Empty:
    // the step is an event.
    std::string begins;
    RecordedEvent told;
    coordinator::Effects effects;
    bool is_quiet = false;          // a keep-alive or a deadline without effects
    std::int64_t quiet_before = 0;  // how many such steps came since the last other one
  };

  // `name` names the recording in errors: "run.jsonl".
  Replay(LineSource source, std::string name);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads the first line, and returns that of the replay; to be called first. Fails if it is not that of a recording.
  Result<std::string> begin();
  // The next event, or the next coordinator; empty after the last one. Fails on a wrong line, which the error names.
  // Nothing can be read after a failure.
  Result<std::optional<Step>> next();
  // The lines, with their newlines, for the step that was read last; empty for a quiet one.
  std::string text(const Step& step) const;
  // The line after a coordinator's last step: how it ended.
  std::string last_line() const;

  // The number of the line that was read last, counted from 1.
  std::size_t line() const { return line_; }
  const coordinator::Coordinator& coordinator() const { return *coordinator_; }

 private:
  class Answers;

  std::string take_up(const RecordingHead& head);
  std::optional<SourceLine> take_line();
  Result<std::optional<RecordedLine>> take_recorded();
  std::string place() const;

  LineSource source_;
  std::string name_;
  std::size_t line_ = 0;
  bool cut_off_ = false;  // the last line is not whole and was skipped
  std::int64_t born_ms_ = 0;
  std::int64_t quiet_ = 0;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  std::optional<Error> answer_error_;  // the recorded answers do not match what the check is asked
};

// The messages and closed sessions of these effects, as a list. Nodes that get the same message are one entry.
Json told_in(const coordinator::Effects& effects);

}  // namespace elastic::trace
