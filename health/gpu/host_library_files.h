#pragma once

#include "health/gpu/libraries.h"

namespace elastic::health {

// The files of this host. A call may block where a file system hangs, so it must not be made on the event loop.
class HostLibraryFiles : public LibraryFiles {
 public:
  bool is_file(const std::string& path) const override;
  // At most 10,000 names.
  std::vector<std::string> names_in(const std::string& directory) const override;
  std::optional<std::string> resolved(const std::string& path) const override;
  // At most the first 64 KiB.
  std::optional<std::string> text_of_file(const std::string& path) const override;
};

}  // namespace elastic::health
