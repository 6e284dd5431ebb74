#include "health/hang/hang_judge.h"

#include <utility>

#include "src/base/check.h"

namespace elastic::hang {

HangVerdict judge(const HangPicture& picture, const JudgeSettings& settings) {
  for (const HangRule& rule : hang_rules()) {
    std::optional<HangVerdict> found = rule.find(picture, settings);
    if (!found) continue;
    found->rule = rule.number;
    found->name = rule.name;
    found->without_evidence = picture.without_facts();
    if (found->culprits.size() > bounds::kCulprits) found->culprits.resize(bounds::kCulprits);
    ELASTIC_CHECK(found->culprits.empty() == (found->fault == Fault::kNone || found->fault == Fault::kScript));
    return *std::move(found);
  }
  ELASTIC_CHECK(false);  // the last rule holds always
  return {};
}

}  // namespace elastic::hang
