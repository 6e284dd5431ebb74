#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace elastic::report {

// The longest error.json that is read. Its reader reads one byte more, to see that it is longer.
inline constexpr std::size_t kErrorFileBytes = 1024 * 1024;

// What a worker wrote about its failure to TORCHELASTIC_ERROR_FILE, in one of the two forms that
// torch reads: "message" is an object (written by @record) or a string. All texts are UTF-8.
struct ErrorFile {
  std::string message = {};                     // "RuntimeError: boom"; empty if the file has none
  std::string traceback = {};                   // py_callstack; empty if the file has none
  std::int64_t timestamp_s = 0;                 // Unix time in seconds by the worker; 0 if the file has none
  std::optional<std::int64_t> error_code = {};  // errorCode, set by a launcher between it and us
  bool plain_message = false;                   // "message" is a string

  bool operator==(const ErrorFile&) const = default;
};

// Reads an error.json, whatever is in it. This is more lenient than torch: bytes that are not UTF-8 and
// lone surrogates become U+FFFD, and a missing timestamp is 0. Fails where there is no message, and on
// a text that is longer than kErrorFileBytes, nested deeper than 64 or has an object of more than 1,000
// members.
Result<ErrorFile> parse_error_file(std::string_view text);

// Whether that is a whole error.json, as @record writes it of an exception.
bool is_whole_record(std::string_view text);

// Makes the text that the launcher writes to its own TORCHELASTIC_ERROR_FILE when the worker with that error.json
// failed first: the same text, but with message.errorCode set, as torch does, where the code is not 0 and the
// message is an object. `python_code`: the exit code, or minus the signal. Fails as
// parse_error_file.
Result<std::string> error_file_for_parent(std::string_view text, int python_code);

// Makes the same, in @record's form, for a job that ended without a worker's failure: it was stopped, or not begun.
std::string error_file_of_launcher(const std::string& message, std::int64_t timestamp_s);

}  // namespace elastic::report
