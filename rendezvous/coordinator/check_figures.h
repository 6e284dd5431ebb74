#pragma once

#include "health/report/health_report.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

// The figures of a check that /status and /metrics report.
status::Check check_figures(const health::HealthReport& report);

}  // namespace elastic::coordinator
