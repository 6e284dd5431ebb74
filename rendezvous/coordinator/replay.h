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

// Where a recording comes from.
struct SourceLine {
  std::string text;      // without its end
  bool is_whole = true;  // its end was there
};
// The next line; nothing behind the last one. A line longer than limits::kRecordingLineBytes need not be given whole.
using LineSource = std::function<std::optional<SourceLine>()>;

// Tells a coordinator again what another one was told, and what it decides of it. The same recording gives the same.
class Replay {
 public:
  // One event and what came of it, in words.
  struct Step {
    std::int64_t since_birth_ms = 0;
    std::string who;    // "node1 (session 3)"; empty where it is no node's doing
    std::string event;  // what happened, as a clause
    std::vector<std::string> decisions;
    struct Sent {
      std::vector<std::string> to;  // all that get the same
      std::string what;
    };
    std::vector<Sent> sent;
    std::string state;      // after the event
    bool is_quiet = false;  // a sign of life, or a time that has come, of which nothing came
  };

  // `name` names the recording in errors: "run.jsonl".
  Replay(LineSource source, std::string name);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads the first line; to be called first. Fails on what is no recording.
  Result<RecordingHead> begin();
  // The next event; nothing behind the last. Fails on a line that is wrong, named in the error, and is over then.
  Result<std::optional<Step>> next();

  // The last line, which has no end, is not whole either and was passed over.
  bool is_cut_off() const { return cut_off_; }
  // Of the line that was read last, counted from 1.
  std::size_t line() const { return line_; }
  const Coordinator& coordinator() const { return *coordinator_; }

 private:
  class Answers;

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
  std::optional<Error> answer_error_;                  // the check's answers are not those that were asked for
  std::map<protocol::NodeId, std::string> addresses_;  // of sessions that have joined
};

// As --replay prints them, each line with its end.
std::string text(const RecordingHead& head);
std::string text(const Replay::Step& step);
std::string text_of_end(const Replay& replay);

}  // namespace elastic::coordinator
