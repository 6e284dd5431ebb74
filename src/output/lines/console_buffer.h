#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "src/output/limits.h"

namespace elastic::output {

// Output that was dropped.
struct Dropped {
  std::uint64_t lines = 0;  // lines of which something is missing, an incomplete last one included
  std::uint64_t bytes = 0;
};

// "12 lines (3456 bytes) of worker output were dropped: the console is slow"
std::string dropped_text(const Dropped& dropped, std::string_view why = "the console is slow");

// Output that waits for a console that is slow, stopped or closed: at most `max_bytes`. Beyond that whole lines
// are dropped and counted, until half of the bytes have been taken. In the place of the dropped lines there is
// one message, if the console is one for messages.
class ConsoleBuffer {
 public:
  enum class Notice : unsigned char {
    kInPlace,  // dropped_text() as a warning in place of the lines
    kNone,     // the console carries data (stdout): the caller reports dropped()
  };
  // Makes a whole line of a warning's text.
  using LineOf = std::function<std::string(std::string_view text)>;
  explicit ConsoleBuffer(Notice notice, std::size_t max_bytes = limits::kConsoleWaitingBytes, LineOf line_of = {});

  // Adds whole lines of one source (a number that identifies the writer). The last line may lack
  // its end (an incomplete line that was flushed): then a line end is inserted before another source's lines.
  void add(int source, std::string_view lines);
  // Adds bytes of a pseudo-terminal unchanged: no line end is inserted before them.
  void add_raw(int source, std::string_view bytes);

  // The last writers have ended: between the two calls so many bytes more may wait. They are kept; the usual bound
  // holds again once the waiting bytes have shrunk to half of it.
  void expect_rest(std::size_t bytes);
  void rest_has_come();

  // Adds a line end if the last line has none.
  void end_line();
  // Whether the last byte added is a line end, or nothing was added.
  bool at_line_start() const { return at_line_start_; }

  // Moves the next bytes, at most `max_bytes`, into the caller's string, whose content is
  // replaced and whose memory is reused. Returns false, and an empty string, if nothing waits.
  bool take_bytes(std::string& bytes, std::size_t max_bytes);

  // The console takes nothing any more: the waiting bytes are dropped and counted, with `unwritten`, which was taken,
  // and so is everything that is added later.
  void give_up(std::string_view unwritten);

  std::size_t size() const { return waiting_.size() - taken_; }
  bool empty() const { return size() == 0; }
  // The memory in use, in bytes.
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
  std::size_t rest_bytes_ = 0;  // the bytes allowed beyond max_bytes_
  bool expects_rest_ = false;
  LineOf line_of_;
  std::string waiting_;
  std::size_t taken_ = 0;  // the bytes at the beginning of waiting_ that were taken
  bool at_line_start_ = true;
  int last_source_ = -1;
  bool dropping_ = false;
  bool given_up_ = false;
  std::set<int> cut_sources_;  // sources whose last line is counted as dropped, and may continue
  Dropped untold_;             // dropped since the last message
  Dropped dropped_;
};

}  // namespace elastic::output
