#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/recording.h"
#include "src/base/result.h"

namespace elastic::coordinator {

// A line of a recording.
struct SourceLine {
  std::string text;      // without its newline
  bool is_whole = true;  // it had a newline
};
// Returns the next line; nothing after the last one. A line longer than limits::kRecordingLineBytes may be cut.
using LineSource = std::function<std::optional<SourceLine>()>;

// Feeds a coordinator the recorded events of another one, and tells what it decides. The same recording always gives
// the same steps.
class Replay {
 public:
  // One event and its effects, in words.
  struct Step {
    // Another coordinator begins, and nothing else has happened; nothing: it is an event.
    std::optional<RecordingHead> begins;
    std::int64_t since_birth_ms = 0;
    std::string who;    // "node1 (session 3)"; empty if the event comes from no node
    std::string event;  // what happened, as a clause
    std::vector<std::string> decisions;
    struct Sent {
      std::vector<std::string> to;  // the nodes that get the same message
      std::string what;
    };
    std::vector<Sent> sent;
    std::string state;      // after the event
    bool is_quiet = false;  // a keep-alive or a deadline without effects
  };

  // `name` names the recording in errors: "run.jsonl".
  Replay(LineSource source, std::string name);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads the first line; to be called first. Fails if it is not that of a recording.
  Result<RecordingHead> begin();
  // The next event, or the next coordinator; nothing after the last one. Fails on a line that is wrong, which the error
  // names. Nothing can be read after a failure.
  Result<std::optional<Step>> next();

  // The last line is not whole and was skipped.
  bool is_cut_off() const { return cut_off_; }
  // The number of the line that was read last, counted from 1.
  std::size_t line() const { return line_; }
  const Coordinator& coordinator() const { return *coordinator_; }

 private:
  class Answers;

  void take_up(const RecordingHead& head);
  std::optional<SourceLine> take_line();
  Result<std::optional<RecordedLine>> take_recorded();
  std::string place() const;
  std::string name_of(protocol::NodeId session) const;
  void perform(Step& step, const Effect& effect);
  std::string state() const;

  LineSource source_;
  std::string name_;
  std::size_t line_ = 0;
  bool cut_off_ = false;
  std::int64_t born_ms_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
  std::optional<Error> answer_error_;                  // the recorded answers are not those that the check is asked for
  std::map<protocol::NodeId, std::string> addresses_;  // of the sessions that have joined
};

// The texts that --replay prints; each line has its newline.
std::string text(const RecordingHead& head);
std::string text(const Replay::Step& step);
std::string text_of_end(const Replay& replay);

}  // namespace elastic::coordinator
