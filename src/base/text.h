#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elastic {

// fmt's format, under our own name so that <fmt/core.h> is the only header of it that spreads.
template <class... Args>
std::string format(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::vformat(text, fmt::make_format_args(args...));
}

// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The first three of what may be a thousand: "a; b; c; and 4 more".
std::string some_of(const std::vector<std::string>& names);

// Without blanks, tabs and line ends at both ends.
std::string_view trim(std::string_view text);

// A whole decimal integer as Python's int() reads it: blanks around, a sign and single underscores
// between digits are allowed ("+4", "1_0"). Nothing if it is not one or does not fit in 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text);

// A decimal floating-point number as Python's float() reads it, finite only.
std::optional<double> parse_float(std::string_view text);

// ASCII only; nothing here depends on the locale.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// One argument as a POSIX shell reads it back; bytes that are not printable become $'\xNN'.
std::string shell_quote(std::string_view argument);

// The text for a message: control characters and bytes that are not UTF-8 become \xNN, and what is
// longer than `max_bytes` ends in "...".
std::string printable(std::string_view text, std::size_t max_bytes = 200);

// A macro of a template and what stands for it.
struct Macro {
  std::string_view name;
  std::string_view value;
};

// What becomes of "$$" in a template.
enum class TwoDollars : unsigned char { kOne, kTwo };

// $name and ${name} replaced, as by Python's string.Template.safe_substitute: an identifier is as
// long as it can be, macros that are not named stay as they are, and values are not looked into.
// kOne is Python's way with "$$"; with kTwo it stays, and nothing in "$${name}" is a macro.
std::string expand_macros(std::string_view text, std::initializer_list<Macro> macros, TwoDollars two_dollars);

// Ranks as people write them: "0-3, 7". Sorted, each once.
std::string rank_ranges(std::vector<int> ranks);

// Words filled into lines of at most `width` columns (ASCII), each line but the first indented by
// `indent` blanks. A word longer than a line stands alone. No line end after the last line.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace elastic
