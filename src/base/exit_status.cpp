#include "src/base/exit_status.h"

#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic {

std::string ExitStatus::text() const {
  if (signal == 0) return format("exited with code {}", code);
  return format("was killed by {}{}", signal_name(signal), core_dumped ? " (core dumped)" : "");
}

}  // namespace elastic
