#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace elastic::report {

// A Python traceback found in what a program printed.
struct Traceback {
  std::string text;       // from its first line to the exception's, chained ones included; no line end
                          // after the last
  std::string exception;  // the last exception's line: "RuntimeError: boom"
  std::size_t begin = 0;  // its place in the text that was searched: bytes [begin, end)
  std::size_t end = 0;
};

// Finds the last traceback that ends with its exception, with those that it was chained to ("During handling of the
// above exception, ..."). A prefix before every line ("[rank0]: ", as torch writes it) is removed, and lines that other
// processes printed in between are left out. None if the text has none. Accepts any bytes; takes time in proportion to
// their number.
std::optional<Traceback> last_traceback(std::string_view text);

// The exception's line in a text that is a traceback, such as py_callstack; empty if it has none.
std::string exception_of(std::string_view traceback);

}  // namespace elastic::report
