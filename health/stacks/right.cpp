#include "health/stacks/right.h"

#include "src/base/text.h"

namespace elastic::stacks {

std::string no_right_because(const RightFacts& facts) {
  if (facts.its_user && *facts.its_user != facts.our_user) {
    return format("its memory may not be read, since it runs as user {} and not {}; ask as that user or as root",
                  *facts.its_user, facts.our_user);
  }
  // The files in /proc of a process that is not dumpable are root's.
  if (facts.files_user && facts.its_user && *facts.files_user != *facts.its_user) {
    return "its memory may not be read, since it is not dumpable: it was started from a setuid program or a file that "
           "may not be read, or has called prctl(PR_SET_DUMPABLE); ask as root";
  }
  if (facts.yama_scope == 1) {
    return "its memory may not be read, since Yama allows that only to a process that has started it "
           "(kernel.yama.ptrace_scope=1); ask as root";
  }
  if (facts.yama_scope == 2) {
    return "its memory may not be read, since Yama allows that only to root (kernel.yama.ptrace_scope=2); ask as root, "
           "or set it to 1";
  }
  if (facts.yama_scope >= 3) {
    return "its memory may not be read, since Yama allows that to nobody (kernel.yama.ptrace_scope=3); set it to 1, "
           "which needs a restart of the host";
  }
  return "its memory may not be read: the kernel forbids it (a security module, or a user namespace)";
}

}  // namespace elastic::stacks
