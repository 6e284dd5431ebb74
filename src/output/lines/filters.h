#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::output {

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
