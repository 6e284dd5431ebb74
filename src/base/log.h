#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "src/base/json.h"
#include "src/base/result.h"

// What elastic-run itself says, on stderr, one event a line: "elastic-run: warning: ...", or one JSON object.
// The one place behind which the logging library stands.
namespace elastic::log {

enum class Level : unsigned char { kDebug, kInfo, kWarning, kError, kCritical, kOff };
enum class Format : unsigned char { kText, kJson };

// One thing that is known of an event beside its text, for programs: "round": 3.
struct Field {
  std::string_view name;
  std::variant<std::int64_t, std::string_view> value;
};
using Fields = std::initializer_list<Field>;

// Reads a level as Python's logging names it (torchrun's LOGLEVEL), in any case: DEBUG, INFO, WARNING or WARN,
// ERROR, CRITICAL or FATAL, or a number. Fails on any other; `input` names it in the error.
Result<Level> parse_level(std::string_view name, std::string_view input);

// "debug", "info", ...
std::string_view name_of(Level level);

// Has lines, each with its end, written by somebody else than write_to_stderr(); an empty function: no more.
void set_output(std::function<void(std::string_view line)> output);

// Only events of this level and above are printed; warnings to begin with.
void set_level(Level level);

// One more reader of all events, whatever the level; those of an answer() are info. `fields` is an object. An empty
// function: no more.
void set_observer(
    std::function<void(Level level, std::string_view event, std::string_view text, const Json& fields)> observer);

// How a line looks; text to begin with.
void set_format(Format format);

// The line of such an event, with its end: whatever the text contains, it is one line, in JSON valid UTF-8.
std::string line(Level level, std::string_view event, std::string_view text);

// `event` is a word that a program finds the event by; it stands in JSON only, there in every line.
void debug(std::string_view event, std::string_view text, Fields fields = {});
void info(std::string_view event, std::string_view text, Fields fields = {});
void warning(std::string_view event, std::string_view text, Fields fields = {});
void error(std::string_view event, std::string_view text, Fields fields = {});
// The same as an event called "other".
void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);
// An error that ends elastic-run; only kOff hides it. Without a word of its own: "refused", before a job began.
void critical(std::string_view event, std::string_view text);
void critical(std::string_view text);
// What the user has asked for: printed whatever the level.
void answer(std::string_view event, std::string_view text, Fields fields = {});
// The same two for fields of any kind: an object.
void tell(Level level, std::string_view event, std::string_view text, const Json& fields);
void tell_always(std::string_view event, std::string_view text, const Json& fields);

// Whole lines that belong to the warning before them, as they are; nothing where a program reads (kJson).
void lines(std::string_view text);
// Whole lines that the user has asked for: as they are, whatever the level and the format. No event.
void print(std::string_view text);

}  // namespace elastic::log
