#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace elastic::agent {

// Something worth telling of a node: a line of the launcher's log and of the file of --events. docs/events.md lists
// all.
struct LogEvent {
  enum class Level : unsigned char { kDebug, kInfo, kWarning, kAlways };  // kAlways: in the log at every level
  Level level = Level::kInfo;
  std::string_view event;  // a word for programs; static storage
  std::string text;        // for people
  Json fields = Json::object();
};
using Happenings = std::vector<LogEvent>;

}  // namespace elastic::agent
