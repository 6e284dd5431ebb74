#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "src/base/json.h"
#include "src/base/result.h"

// elastic-run's own log on stderr, one event a line: "elastic-run: warning: ...", or one JSON object.
// Only log.cpp uses the logging library.
namespace elastic::log {

enum class Level : unsigned char { kDebug, kInfo, kWarning, kError, kCritical, kOff };
enum class Format : unsigned char { kText, kJson };

// A value of an event beside its text, for programs: "round": 3.
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

// From now on `output` writes the lines, each with its line end, instead of write_to_stderr(). An empty function undoes
// this.
void set_output(std::function<void(std::string_view line)> output);

// Only events of this level and above are printed; the default is kWarning.
void set_level(Level level);

// Sets a function that gets all events, whatever the level; those of answer() have the level info. `fields` is an
// object. An empty function undoes this.
void set_observer(
    std::function<void(Level level, std::string_view event, std::string_view text, const Json& fields)> observer);

// Sets the format of lines; the default is text.
void set_format(Format format);

// Makes the line of such an event, with its line end. Whatever the text contains, it is one line, and JSON is valid
// UTF-8.
std::string line(Level level, std::string_view event, std::string_view text);

// These log an event. `event` is the word by which a program finds it; only JSON lines contain it, and all of them do.
void debug(std::string_view event, std::string_view text, Fields fields = {});
void info(std::string_view event, std::string_view text, Fields fields = {});
void warning(std::string_view event, std::string_view text, Fields fields = {});
void error(std::string_view event, std::string_view text, Fields fields = {});
// The same as an event called "other".
void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);
// Logs an error that ends elastic-run; only kOff hides it. Without `event` it is "refused": no job has begun.
void critical(std::string_view event, std::string_view text);
void critical(std::string_view text);
// Prints something that the user has asked for, whatever the level.
void answer(std::string_view event, std::string_view text, Fields fields = {});
// The same as logging and answer(), with a JSON object of fields.
void write_event(Level level, std::string_view event, std::string_view text, const Json& fields);
void write_answer(std::string_view event, std::string_view text, const Json& fields);

// Prints whole lines that belong to the warning before them, unchanged; nothing where the format is JSON.
void lines(std::string_view text);
// Prints whole lines that the user has asked for, unchanged, whatever the level and the format. This is no event.
void print(std::string_view text);

}  // namespace elastic::log
