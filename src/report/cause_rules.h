#pragma once

#include <span>
#include <string_view>

namespace elastic::report {

// Texts that must be in one line together; empty ones are ignored.
struct Needle {
  std::string_view text;
  std::string_view also = {};
};

// One rule about a worker's output. The names of rules are in failure.json, so they do not change.
struct CauseRule {
  enum class Where {
    kAtEnd,     // the exception that ended the worker and what it printed after it; the whole tail if there
                // is no exception
    kAnywhere,  // the whole tail: a text that no program survives, or that explains a later exception
  };

  std::string_view name;
  Where where = Where::kAtEnd;
  std::span<const Needle> needles;  // the rule applies if one is found; the line of the first one is quoted
  std::string_view sentence;
  // The line behind this text ("Last error:"), if it comes after the quoted line, is quoted, too.
  std::string_view detail_behind = {};
  bool lost_peer = false;
};

// All rules about output, the strongest first.
std::span<const CauseRule> cause_rules();

}  // namespace elastic::report
