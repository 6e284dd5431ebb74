#pragma once

#include "health/gpu/libraries.h"

namespace elastic::health {

// This host's files, as they are. A file system that hangs makes these wait: not for a loop.
class HostLibraryFiles : public LibraryFiles {
 public:
  bool is_file(const std::string& path) const override;
  // The first 10,000.
  std::vector<std::string> names_in(const std::string& directory) const override;
  std::optional<std::string> resolved(const std::string& path) const override;
  // Its first 64 KiB.
  std::optional<std::string> text_of_file(const std::string& path) const override;
};

}  // namespace elastic::health
