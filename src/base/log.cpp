#include "src/base/log.h"

#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#define SPDLOG_FMT_EXTERNAL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#pragma GCC diagnostic pop

#include "src/base/console.h"
#include "src/base/json.h"
#include "src/base/program_name.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::log {
namespace {

std::function<void(std::string_view)> output_function;
std::function<void(Level, std::string_view, std::string_view, const Json&)> observer_function;
Format line_format = Format::kText;

constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,     spdlog::level::warn,
                                                 spdlog::level::err,   spdlog::level::critical, spdlog::level::off};

// "2026-11-21T08:37:46.702Z"
std::string utc_now() {
  using namespace std::chrono;
  const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch());
  return utc_time_us(now.count()).substr(0, 23) + "Z";
}

Json to_json(Fields fields) {
  Json object = Json::object();
  for (const Field& field : fields) {
    std::visit([&](const auto& value) { object.set(field.name, Json(value)); }, field.value);
  }
  return object;
}

std::string json_line(Level level, std::string_view event, std::string_view text, const Json& fields) {
  Json object = Json::object();
  object.set("time", utc_now()).set("level", name_of(level));
  if (!event.empty()) object.set("event", event);
  object.set("message", text);
  for (const auto& [name, value] : *fields.as_object()) object.set(name, value);
  return object.dump() + "\n";
}

std::string text_line(std::string_view label, std::string_view text) {
  return format("{}: {}{}\n", program_name(), label, printable(text, std::numeric_limits<std::size_t>::max()));
}

std::string line_of(Level level, std::string_view event, std::string_view text, const Json& fields) {
  if (line_format == Format::kJson) return json_line(level, event, text, fields);
  return text_line(format("{}: ", name_of(level == Level::kCritical ? Level::kError : level)), text);
}

// Writes lines that are complete already.
class ConsoleSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (output_function) return output_function(text);
    write_to_stderr(text);
  }
  void flush_() override {}
};

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("elastic-run", std::make_shared<ConsoleSink>());
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

bool is_printed(Level level) { return logger().should_log(kLevels[static_cast<int>(level)]); }

void write(Level level, std::string_view event, std::string_view text, Fields fields) {
  if (is_printed(level) || observer_function) write_event(level, event, text, to_json(fields));
}

}  // namespace

std::string_view name_of(Level level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error", "critical", "off"};
  return kNames[static_cast<int>(level)];
}

Result<Level> parse_level(std::string_view name, std::string_view input) {
  const std::string key = upper(trim(name));
  if (key == "DEBUG" || key == "NOTSET") return Level::kDebug;
  if (key == "INFO") return Level::kInfo;
  if (key == "WARNING" || key == "WARN") return Level::kWarning;
  if (key == "ERROR") return Level::kError;
  if (key == "CRITICAL" || key == "FATAL") return Level::kCritical;
  if (const auto number = parse_int(name)) {
    if (*number <= 10) return Level::kDebug;
    if (*number <= 20) return Level::kInfo;
    if (*number <= 30) return Level::kWarning;
    if (*number <= 40) return Level::kError;
    return *number <= 50 ? Level::kCritical : Level::kOff;
  }
  return fail(std::string(input), "not a log level", "use debug, info, warning, error or critical");
}

void set_output(std::function<void(std::string_view line)> output) { output_function = std::move(output); }
void set_observer(std::function<void(Level, std::string_view, std::string_view, const Json&)> observer) {
  observer_function = std::move(observer);
}
void set_level(Level level) { logger().set_level(kLevels[static_cast<int>(level)]); }
void set_format(Format format) { line_format = format; }
std::string line(Level level, std::string_view event, std::string_view text) {
  return line_of(level, event, text, Json::object());
}

void debug(std::string_view event, std::string_view text, Fields fields) { write(Level::kDebug, event, text, fields); }
void info(std::string_view event, std::string_view text, Fields fields) { write(Level::kInfo, event, text, fields); }
void warning(std::string_view event, std::string_view text, Fields fields) {
  write(Level::kWarning, event, text, fields);
}
void error(std::string_view event, std::string_view text, Fields fields) { write(Level::kError, event, text, fields); }
void debug(std::string_view text) { debug("other", text); }
void info(std::string_view text) { info("other", text); }
void warning(std::string_view text) { warning("other", text); }
void error(std::string_view text) { error("other", text); }
void critical(std::string_view event, std::string_view text) { write(Level::kCritical, event, text, {}); }
void critical(std::string_view text) { critical("refused", text); }

void lines(std::string_view text) {
  if (line_format == Format::kJson || !logger().should_log(spdlog::level::warn)) return;
  logger().log(spdlog::level::warn, spdlog::string_view_t(text.data(), text.size()));
}

void write_event(Level level, std::string_view event, std::string_view text, const Json& fields) {
  if (observer_function) observer_function(level, event, text, fields);
  if (!is_printed(level)) return;
  const std::string made = line_of(level, event, text, fields);
  logger().log(kLevels[static_cast<int>(level)], spdlog::string_view_t(made.data(), made.size()));
}

void print(std::string_view text) {
  if (output_function) return output_function(text);
  write_to_stderr(text);
}

void answer(std::string_view event, std::string_view text, Fields fields) {
  write_answer(event, text, to_json(fields));
}

void write_answer(std::string_view event, std::string_view text, const Json& fields) {
  if (observer_function) observer_function(Level::kInfo, event, text, fields);
  const std::string made =
      line_format == Format::kJson ? json_line(Level::kInfo, event, text, fields) : text_line("", text);
  print(made);
}

}  // namespace elastic::log
