#include "src/report/crash.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/base/text.h"
#include "src/report/python_traceback.h"

namespace elastic::report {
namespace {

using Kind = PythonCrash::Kind;

// The most lines behind the error: further lines of its text, and what the interpreter writes while it exits (warnings,
// loggers).
constexpr std::ptrdiff_t kLinesBehind = 10;
// The most lines between the place of a syntax error and its name: Python shows the source line, and a mark below it.
constexpr std::ptrdiff_t kLinesOfPlace = 4;

std::optional<Kind> kind_of(std::string_view type) {
  if (type == "ImportError" || type == "ModuleNotFoundError") return Kind::kImport;
  if (type == "SyntaxError" || type == "IndentationError" || type == "TabError") return Kind::kSyntax;
  if (type == "FileNotFoundError") return Kind::kMissingFile;
  return {};
}

// `  File "/work/train.py", line 3, in main`: returns the part behind the first word, without the function; empty for
// other lines.
std::string_view location_in(std::string_view line) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kFile)) return {};
  const std::size_t number = line.rfind(kLine);
  if (number == std::string_view::npos) return {};
  const std::size_t end = line.find_first_not_of("0123456789", number + kLine.size());
  return line.substr(kFile.size() - 1, (end == std::string_view::npos ? line.size() : end) - kFile.size() + 1);
}

// Parses an exception's line, if it is of such a kind.
std::optional<PythonCrash> error_in(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view type = line.substr(0, colon);
  const auto kind = kind_of(type);
  if (!kind) return {};
  const std::string_view text = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  return PythonCrash{*kind, std::string(type),
                     std::string(text.substr(std::min(text.find_first_not_of(' '), text.size()))), ""};
}

// The error of a traceback as last_traceback() returns it.
std::optional<PythonCrash> crash_in(const Traceback& traceback) {
  auto crash = error_in(traceback.exception);
  if (!crash) return {};
  const std::size_t at = traceback.text.rfind("\n" + traceback.exception);
  if (at == std::string::npos) return {};
  for (const std::string& line : split(std::string_view(traceback.text).substr(0, at), '\n')) {
    if (const std::string_view location = location_in(line); !location.empty()) crash->location = location;
  }
  return crash;
}

// Finds an error that Python reports without a traceback: a script that it cannot open or parse, or a missing module
// behind -m.
std::optional<PythonCrash> crash_without_traceback(const std::vector<std::string>& lines, std::ptrdiff_t at) {
  const std::string_view line = lines[static_cast<std::size_t>(at)];
  if (const auto what = line.find(": can't open file '");
      what != std::string_view::npos && line.find(": [Errno ") != std::string_view::npos) {
    return PythonCrash{Kind::kMissingFile, "", std::string(line.substr(what + 2)), ""};
  }
  for (const std::string_view said : {": No module named ", ": Error while finding module specification for "}) {
    const std::size_t what = line.find(said);
    const bool of_python = what != std::string_view::npos && line.substr(0, what).find(' ') == std::string_view::npos;
    if (of_python && line.substr(0, what).find("python") != std::string_view::npos) {
      return PythonCrash{Kind::kImport, "", std::string(line.substr(what + 2)), ""};
    }
  }
  auto crash = error_in(line);
  if (!crash || crash->kind != Kind::kSyntax) return {};
  for (std::ptrdiff_t above = at - 1; above >= std::max<std::ptrdiff_t>(0, at - kLinesOfPlace); --above) {
    crash->location = location_in(lines[static_cast<std::size_t>(above)]);
    if (!crash->location.empty()) return crash;
  }
  return {};
}

std::optional<PythonCrash> crash_in_last_words(std::string_view text) {
  const std::size_t last = text.find_last_not_of("\r\n ");
  if (last == std::string_view::npos) return {};
  text = text.substr(0, last + 1);
  if (const auto traceback = last_traceback(text)) {
    const std::size_t at = text.rfind(traceback->exception, traceback->end);
    const bool is_last = at != std::string_view::npos && std::ranges::count(text.substr(at), '\n') <= kLinesBehind;
    if (is_last) return crash_in(*traceback);
  }
  const std::vector<std::string> lines = split(text, '\n');
  const auto size = std::ssize(lines);
  for (std::ptrdiff_t at = size - 1; at >= std::max<std::ptrdiff_t>(0, size - 1 - kLinesBehind); --at) {
    if (auto crash = crash_without_traceback(lines, at)) return crash;
  }
  return {};
}

}  // namespace

std::uint64_t PythonCrash::digest() const {
  std::uint64_t digest = 14695981039346656037ULL;
  for (const std::string_view part : {std::string_view(type), std::string_view(text), std::string_view(location)}) {
    for (const char c : part) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    digest = (digest ^ 0x100) * 1099511628211ULL;  // a value that no byte has separates two parts
  }
  return digest;
}

std::optional<PythonCrash> crash_of(const FailedWorker& worker) {
  if (worker.exit.signal != 0 && !worker.error_came_first) return {};
  if (worker.error) {
    if (const auto traceback = last_traceback(worker.error->traceback)) return crash_in(*traceback);
  }
  return crash_in_last_words(worker.tail.bytes);
}

}  // namespace elastic::report
