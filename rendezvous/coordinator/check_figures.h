#pragma once

#include "health/report/health_report.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

// What of a check is told among a job's figures.
status::Check check_figures(const health::HealthReport& report);

}  // namespace elastic::coordinator
