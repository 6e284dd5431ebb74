#pragma once

#include <span>
#include <string_view>

namespace elastic::report {

// Texts that must stand in one line together; those left empty are not asked for.
struct Needle {
  std::string_view text;
  std::string_view also = {};
};

// What is looked for in a worker's output. Names are part of failure.json: they do not change.
struct CauseRule {
  enum class Where {
    kAtEnd,     // the exception that it died of and what it printed after it; all of the tail if there
                // is none
    kAnywhere,  // all of the tail: a text that nobody survives, or that explains a later exception
  };

  std::string_view name;
  Where where = Where::kAtEnd;
  std::span<const Needle> needles;  // any of them; the line of the first that is found is quoted
  std::string_view sentence;
  // The quoted line is followed by the one behind this text, if it stands further down: "Last
  // error:".
  std::string_view detail_behind = {};
  bool lost_peer = false;
};

// All rules about output, the strongest first.
std::span<const CauseRule> cause_rules();

}  // namespace elastic::report
