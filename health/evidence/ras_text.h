#pragma once

#include <string_view>

#include "health/evidence/ras_report.h"
#include "src/base/result.h"

namespace elastic::evidence {

// Reads what VERBOSE STATUS answers without JSON (NCCL 2.24 and later): which processes and ranks are missing, and of
// communicators whose ranks differ what some of their ranks have launched. Fails if the text is no such report.
Result<RasReport> read_ras_text(std::string_view text);

}  // namespace elastic::evidence
