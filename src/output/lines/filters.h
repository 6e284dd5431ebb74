#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::output {

// One of --duplicate-stdout-filters and --duplicate-stderr-filters: which lines are copied to the
// file that all ranks share. torchrun's contract: a line with any of the texts in it, an empty one
// is in every line, upper and lower case differ, the prefix is not searched.
class LineFilter {
 public:
  // The parts of the flag's value; none where the flag is not given, and nothing matches then.
  explicit LineFilter(std::vector<std::string> parts = {});

  bool is_given() const { return !parts_.empty(); }
  // `line` without prefix and line end.
  bool matches(std::string_view line) const;

  // Appends to `out` those of `lines` that match, with their prefix. `lines` is what a
  // LineAssembler with a prefix of `prefix_bytes` has given out. A line that the assembler gave out
  // in pieces is tested piece by piece: where a rest is flushed before its line ends, the filter
  // needs an assembler of its own.
  void copy_matching(std::string_view lines, std::size_t prefix_bytes, std::string& out) const;

 private:
  std::vector<std::string> parts_;
};

}  // namespace elastic::output
