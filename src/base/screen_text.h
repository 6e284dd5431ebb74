#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Makes bytes of other programs fit for a terminal, a page and JSON.
namespace elastic {

// The number of bytes of the UTF-8 sequence that starts `text`, or 0 if there is no valid one.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);
// The same text with U+FFFD for each byte that is not UTF-8.
std::string to_utf8(std::string_view text);
// Characters of a UTF-8 text, as Python's len() counts them.
std::size_t character_count(std::string_view text);

// The text without terminal colours and cursor movements (CSI sequences): Python 3.13 colours a
// traceback on a terminal, in the middle of its lines.
std::string without_colours(std::string_view text);

// Makes a text safe for a terminal: UTF-8, tabs and line ends stay, terminal colours and cursor
// movements (CSI sequences) are left out, and other control characters and bytes that are not UTF-8
// become \xNN.
std::string screen_text(std::string_view text);

// The lines of a text without their line ends; text behind the last line end is a line, too.
std::vector<std::string_view> lines_of(std::string_view text);

// The last `count` lines of a program's output, fit for a terminal. A line that was
// rewritten with carriage returns (a progress bar) has its last state, and each has at most
// `max_line_bytes`.
struct LastLines {
  std::vector<std::string> lines;
  std::size_t left_out = 0;  // whole lines before them in the same text
};
LastLines last_lines(std::string_view text, std::size_t count, std::size_t max_line_bytes);

// The last bytes of a text, from the start of a line if one starts there, and never from within a
// character.
std::string_view last_bytes(std::string_view text, std::size_t max_bytes);

}  // namespace elastic
