#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace elastic::output {

// Output that was dropped.
struct Dropped {
  std::uint64_t lines = 0;  // of which something is missing, the last one without its end, too
  std::uint64_t bytes = 0;
};

// "12 lines (3456 bytes) of worker output were dropped: the console is slow"
std::string dropped_text(const Dropped& dropped, std::string_view why = "the console is slow");

// What waits for a console that is slow, stopped or closed: at most `max_bytes`, then whole lines
// are dropped and counted, until what waits has shrunk to half. Where they would have been stands
// one message then, if the console is one for messages.
class ConsoleBuffer {
 public:
  enum class Notice : unsigned char {
    kInPlace,  // dropped_text() as a line of ours
    kNone,     // the console carries data (stdout): the caller tells from dropped()
  };
  // Makes a line, with its end, of a warning.
  using LineOf = std::function<std::string(std::string_view text)>;
  explicit ConsoleBuffer(Notice notice, std::size_t max_bytes = limits::kConsoleWaitingBytes, LineOf line_of = {});

  // Adds whole lines of one source (any number that tells sources apart). The last line may lack
  // its end (a rest that was flushed): a line end is put in then before another source's lines.
  void add(int source, std::string_view lines);
  // Adds bytes of a terminal as they are: no line end is put before them.
  void add_raw(int source, std::string_view bytes);

  // The last of those who write have ended: between the two calls so many bytes more may wait. What has come by then
  // keeps its place; the usual bound holds again once what waits has shrunk to half of it.
  void expect_rest(std::size_t bytes);
  void rest_has_come();

  // Ends the line that was begun, if there is one.
  void end_line();
  // Whether what was added last ends with a line end, or nothing was.
  bool at_line_start() const { return at_line_start_; }

  // Takes the next bytes, at most `max_bytes`: into the caller's string, whose former content is
  // lost and whose memory is used again. False, and an empty string, if nothing waits.
  bool take(std::string& bytes, std::size_t max_bytes);

  // Nobody takes anything any more: what waits is dropped and counted, with `unwritten`, which was taken, and so
  // is all that comes.
  void give_up(std::string_view unwritten);

  std::size_t size() const { return waiting_.size() - taken_; }
  bool empty() const { return size() == 0; }
  // Bytes of memory that it holds.
  std::size_t memory() const { return waiting_.capacity(); }
  // All that has been dropped so far.
  const Dropped& dropped() const { return dropped_; }

 private:
  void append(std::string_view bytes);
  Dropped count(int source, std::string_view bytes);
  void resume();
  void forget_rest();

  Notice notice_;
  std::size_t max_bytes_;
  std::size_t rest_bytes_ = 0;  // beyond max_bytes_
  bool expects_rest_ = false;
  LineOf line_of_;
  std::string waiting_;
  std::size_t taken_ = 0;  // of waiting_
  bool at_line_start_ = true;
  int last_source_ = -1;
  bool dropping_ = false;
  bool given_up_ = false;
  std::set<int> cut_sources_;  // whose last line is counted as dropped, and may go on
  Dropped untold_;             // since dropping began
  Dropped dropped_;
};

}  // namespace elastic::output
