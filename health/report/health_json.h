#pragma once

#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// The schema's version; docs/health.md describes the members. New members may be added without a new version.
inline constexpr int kHealthJsonSchema = 1;

// The content of health.json: the report as one JSON object, indented by two blanks, with a line end.
std::string health_json(const HealthReport& report);

}  // namespace elastic::health
