#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace elastic::events {

// One event of docs/observing.md: a line of the launcher's log, if its level is logged, and of the file of --events.
struct LogEvent {
  enum class Level : unsigned char { kDebug, kInfo, kWarning, kAlways };  // kAlways: logged at every level
  Level level = Level::kInfo;
  std::string_view event;  // its name, of static storage
  std::string text;        // for people
  Json fields = Json::object();
};
using LogEvents = std::vector<LogEvent>;

}  // namespace elastic::events
