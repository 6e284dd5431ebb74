#include "src/base/log.h"

#include <memory>

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
#include "src/base/text.h"

namespace elastic::log {
namespace {

std::function<void(std::string_view)> output_function;

class ConsoleSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    if (output_function) return output_function(text);
    write_to_stderr(text);
  }
  void flush_() override {}
};

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("elastic-run", std::make_shared<ConsoleSink>());
    made.set_pattern("%n: %l: %v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

void write(spdlog::level::level_enum level, std::string_view text) {
  logger().log(level, spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace

Result<Level> parse_level(std::string_view name) {
  const std::string key = upper(trim(name));
  if (key == "DEBUG" || key == "NOTSET") return Level::kDebug;
  if (key == "INFO") return Level::kInfo;
  if (key == "WARNING" || key == "WARN") return Level::kWarning;
  if (key == "ERROR") return Level::kError;
  if (key == "CRITICAL" || key == "FATAL") return Level::kOff;
  if (const auto number = parse_int(name)) {
    if (*number <= 10) return Level::kDebug;
    if (*number <= 20) return Level::kInfo;
    if (*number <= 30) return Level::kWarning;
    return *number <= 40 ? Level::kError : Level::kOff;
  }
  return fail(format("LOGLEVEL={}", printable(name)), "not a log level",
              "use DEBUG, INFO, WARNING, ERROR or CRITICAL");
}

void set_output(std::function<void(std::string_view line)> output) { output_function = std::move(output); }

void set_level(Level level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err,
                                                   spdlog::level::off};
  logger().set_level(kLevels[static_cast<int>(level)]);
}

void debug(std::string_view text) { write(spdlog::level::debug, text); }
void info(std::string_view text) { write(spdlog::level::info, text); }
void warning(std::string_view text) { write(spdlog::level::warn, text); }
void error(std::string_view text) { write(spdlog::level::err, text); }

}  // namespace elastic::log
