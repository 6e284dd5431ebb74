#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elastic {

// fmt's format. By this name <fmt/core.h> is the only header of fmt that other files include.
template <class... Args>
std::string format(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::vformat(text, fmt::make_format_args(args...));
}

// Splits a text at each separator; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The first three names, and how many more there are: "a; b; c; and 4 more".
std::string some_of(const std::vector<std::string>& names);

// A noun whose plural ends in "s", as it stands beside a count: plural("node", 1) is "node", plural("node", 0) "nodes".
template <std::integral Count>
std::string plural(std::string_view noun, Count count) {
  return std::string(noun) + (count == 1 ? "" : "s");
}
// The count and the noun: "1 node", "3 nodes".
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return format("{} {}", count, plural(noun, count));
}

// The text without the blanks, tabs and line ends at its beginning and end.
std::string_view trim(std::string_view text);

// Reads a whole text as a decimal integer, like Python's int(): blanks around it, a sign and single underscores between
// digits are allowed ("+4", "1_0"). Nothing if it is not an integer or does not fit in 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text);

// Reads a whole text as a decimal floating-point number, like Python's float(). Nothing if it is not a finite number.
std::optional<double> parse_float(std::string_view text);

// These change ASCII letters only; nothing here depends on the locale.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// Quotes an argument so that a shell reads it back unchanged; bytes that are not printable become $'\xNN'.
std::string shell_quote(std::string_view argument);
// A command, quoted for a shell.
std::string command_text(const std::vector<std::string>& arguments);

// Makes a text fit for a message: control characters and bytes that are not UTF-8 become \xNN, and a result of more
// than `max_bytes` is cut and ends in "...".
std::string printable(std::string_view text, std::size_t max_bytes = 200);

// A macro of a template and its value.
struct Macro {
  std::string_view name;
  std::string_view value;
};

// What "$$" in a template becomes: one dollar or two.
enum class TwoDollars : unsigned char { kOne, kTwo };

// Replaces $name and ${name} like Python's string.Template.safe_substitute: an identifier is as long as possible,
// unknown macros stay as they are, and values are not expanded. kOne treats "$$" like Python; with kTwo it stays, and
// "$${name}" has no macro.
std::string expand_macros(std::string_view text, std::initializer_list<Macro> macros, TwoDollars two_dollars);

// The ranks as ranges, sorted, each once: "0-3, 7".
std::string rank_ranges(std::vector<int> ranks);

// Fills the words of a text into lines of at most `width` columns (ASCII only); all lines but the first are indented by
// `indent` blanks. A word that is longer than a line gets its own line. The last line has no line end.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace elastic
