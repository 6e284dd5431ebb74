#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields.h"
#include "src/base/limits.h"

// Limits that the user gives for sections of scripts, as NVRx names them.
namespace elastic::hang {

// How long a job may make no progress while a rank is in a section of this name.
struct SectionLimit {
  std::string name = {};
  std::int64_t limit_ms = 0;
  bool operator==(const SectionLimit&) const = default;
  static void fields(auto& io, auto& v) {
    io("name", v.name, at_most(limits::kNvrxSectionBytes));
    io("limit_ms", v.limit_ms, Bounds{0, 1LL << 53});
  }
};
using SectionLimits = std::vector<SectionLimit>;

// The limit of a section in milliseconds; nothing: it has none of its own.
std::optional<std::int64_t> limit_of(const SectionLimits& limits, std::string_view section);
// "setup:600 s, step:30 s"; "none" where there are none.
std::string text_of(const SectionLimits& limits);

}  // namespace elastic::hang
