#include "health/gpu/xid_aftermath.h"

namespace elastic::health {

XidAftermath aftermath_of(int number) {
  switch (number) {
    case 13:
    case 31:
    case 43:
    case 45: return XidAftermath::kNone;
    case 63:
    case 92:
    case 94: return XidAftermath::kSuspect;
    case 48:
    case 62:
    case 64:
    case 74:
    case 79:
    case 95:
    case 119:
    case 120: return XidAftermath::kUnhealthy;
    default: return XidAftermath::kUnknown;
  }
}

}  // namespace elastic::health
