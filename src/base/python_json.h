#pragma once

#include <string>
#include <string_view>

#include "src/base/json.h"

namespace elastic {

// JSON text as Python's json.dumps() writes it by default: on one line, ", " and ": " between parts, ASCII only. Bytes
// that are not UTF-8 are written as U+FFFD.
std::string python_json(const Json& json);

}  // namespace elastic
