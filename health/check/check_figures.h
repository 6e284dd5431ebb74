#pragma once

#include "health/report/health_report.h"
#include "src/status/snapshot.h"

namespace elastic::health {

// The figures of a check that /status and /metrics report.
status::Check check_figures(const HealthReport& report);

}  // namespace elastic::health
