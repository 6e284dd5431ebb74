#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// /metrics in Prometheus' text format, version 0.0.4.
namespace elastic::status {

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// All samples of one name. docs/observing.md has the same, and a test compares both.
struct MetricFamily {
  std::string_view name;
  std::string_view type;    // "counter", "gauge"
  std::string_view labels;  // "run_id, cause"; empty: none
  std::string_view help;
};
std::span<const MetricFamily> metric_families();

// All families with HELP and TYPE, also those that have no sample now.
std::string metrics_text(const Snapshot& snapshot);

}  // namespace elastic::status
