#include "src/base/unique_fd.h"

#include <unistd.h>

namespace elastic {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace elastic
