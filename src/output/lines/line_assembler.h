#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/output/limits.h"

namespace elastic::output {

// The template of the prefix that torchrun puts before each line by default.
inline constexpr std::string_view kDefaultLinePrefix = "[${role_name}${local_rank}]:";

// The worker whose lines get the prefix.
struct PrefixValues {
  std::string_view role_name;
  int rank = 0;  // in the world
  int local_rank = 0;
  std::string_view hostname;  // the short one (gethostname)
};

// Makes the prefix by --log-line-prefix-template. torchrun's contract: string.Template.safe_substitute
// with the four macros; nothing is added, so that an empty template makes no prefix.
std::string line_prefix(std::string_view template_text, const PrefixValues& values);

// Turns one stream of one worker, in whatever pieces it arrives, into whole lines with a prefix for a
// console that many workers share. The lines do not depend on how the bytes were cut into pieces,
// calls of flush() apart. Bytes that are no line end pass unchanged, NUL and invalid UTF-8 included.
//
// A line ends at "\n", "\r\n" or a '\r' alone, as for torchrun, and is given out with "\n": so a
// progress bar (tqdm) shows each of its steps as a line, never held back until the bar is full. A
// '\r' at the beginning of a line, and more than one in a row, add no empty lines. A line of more
// than `max_line_bytes` is given out in pieces of that many bytes, each as a line with the prefix.
class LineAssembler {
 public:
  // `max_line_bytes` >= 1 counts a line without prefix and line end.
  explicit LineAssembler(std::string prefix, std::size_t max_line_bytes = limits::kLogLineBytes);

  // Takes the next bytes and appends to `out` every line that they complete. Keeps the rest.
  void push(std::string_view input, std::string& out);

  // Whether an incomplete line is kept. A caller that has read nothing more for a moment (a prompt, a
  // dot for each step) may flush() it.
  bool has_rest() const { return !rest_.empty(); }
  // Appends the incomplete line, if there is one, as a line of its own, at the end of the stream or before.
  // What follows begins with the prefix again; if only the line end follows, that adds no
  // empty line.
  void flush(std::string& out);

 private:
  std::string_view push_returns(std::string_view text, std::string& out);
  void keep(std::string_view text, std::string& out);
  void end_line(std::string_view text, std::string& out);

  std::string prefix_;
  std::size_t max_line_bytes_;
  std::string rest_;  // at most max_line_bytes_
  // The last line was ended by a '\r' or by flush(), and its "\n" may follow.
  bool ended_early_ = false;
};

// The same for a stream that is shown without a prefix (stderr that is not tee'd): the bytes
// pass unchanged, up to the last '\n' or '\r' so far. The rest is kept until its line ends,
// until it has more than `max_line_bytes`, or until flush(), which adds no line end.
class PlainAssembler {
 public:
  explicit PlainAssembler(std::size_t max_line_bytes = limits::kLogLineBytes);

  void push(std::string_view input, std::string& out);
  bool has_rest() const { return !rest_.empty(); }
  void flush(std::string& out);

 private:
  std::size_t max_line_bytes_;
  std::string rest_;
};

// Implements --duplicate-stdout-filters or --duplicate-stderr-filters: says which lines are copied to the
// file that all ranks share. torchrun's contract: a line matches if it contains any of the texts, of which an empty one
// is in every line; case matters; the prefix is not searched.
class LineFilter {
 public:
  // `parts`: those of the flag's value. Without any, because the flag is not given, nothing matches.
  explicit LineFilter(std::vector<std::string> parts = {});

  bool is_given() const { return !parts_.empty(); }
  // `line` has no prefix and no line end.
  bool matches(std::string_view line) const;

  // Appends to `out` those of `lines` that match, with their prefix. `lines` is the output of a
  // LineAssembler with a prefix of `prefix_bytes`. A line that the assembler produced
  // in pieces is tested piece by piece: where incomplete lines are flushed, the filter
  // needs an assembler of its own.
  void copy_matching(std::string_view lines, std::size_t prefix_bytes, std::string& out) const;

 private:
  std::vector<std::string> parts_;
};

}  // namespace elastic::output
