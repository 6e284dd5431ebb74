#include "rendezvous/coordinator/budget.h"

namespace elastic::coordinator {

bool RestartBudget::spend() {
  if (used_ >= limit_) return false;
  ++used_;
  return true;
}

}  // namespace elastic::coordinator
