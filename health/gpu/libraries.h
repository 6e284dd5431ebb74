#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/gpu/messages.h"

// Where the probe is to look for the libraries that workers will load.
namespace elastic::health {

// What of a host's files has to be known for it.
class LibraryFiles {
 public:
  virtual ~LibraryFiles() = default;
  virtual bool is_file(const std::string& path) const = 0;  // links are followed
  // The names in a directory, in any order; none where it cannot be read.
  virtual std::vector<std::string> names_in(const std::string& directory) const = 0;
  // The path without links; nothing where it leads nowhere.
  virtual std::optional<std::string> resolved(const std::string& path) const = 0;
  // A small text file; nothing where it cannot be read.
  virtual std::optional<std::string> text_of_file(const std::string& path) const = 0;
};

struct LibrarySearch {
  std::string nccl_lib = {};      // --nccl-lib; "": not given
  std::string python = {};        // the absolute path of the interpreter that starts the workers; "": none
  std::string conda_prefix = {};  // CONDA_PREFIX; "": not set
  std::string python_path = {};   // PYTHONPATH
  std::string user_base = {};     // where Python has the user's own packages: PYTHONUSERBASE, or ~/.local; "": nowhere
};

// The candidates, in this order, each file once, by whichever path comes first:
// 1. what --nccl-lib names, and then no other NCCL: a library that somebody has named is not replaced without a word;
// 2. NCCL and cuBLASLt of the interpreter's packages, nvidia/{nccl,cublas,cu13,cu12}/lib, newest cuBLASLt first, then
//    of the lib beside its bin;
// 3. the plain name, for the loader's path;
// 4. known places.
// Of 2 and 4 what is a file. An interpreter's packages are those that it would import from: of the prefix of its path
// as it was given, since that is what Python goes by; in a virtual environment (pyvenv.cfg beside it or one above)
// those alone, unless it includes the system's, which are then those of its `home`; outside of one also those of the
// prefix that its links lead to. Before them come PYTHONPATH's directories and, where the system's count, the user's.
// CUDA's driver and NVML come with the driver, so 2 is not for them.
LibraryCandidates library_candidates(const LibrarySearch& search, const LibraryFiles& files);

}  // namespace elastic::health
