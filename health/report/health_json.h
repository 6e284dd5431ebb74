#pragma once

#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// The schema's version; docs/health.md has its members. New ones may come without a new version.
inline constexpr int kHealthJsonSchema = 1;

// The report as one JSON object, indented by two blanks, with a line end: health.json.
std::string health_json(const HealthReport& report);

}  // namespace elastic::health
