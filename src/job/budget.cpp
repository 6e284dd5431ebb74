#include "src/job/budget.h"

namespace elastic::job {

bool RestartBudget::spend() {
  if (used_ >= limit_) return false;
  ++used_;
  return true;
}

}  // namespace elastic::job
