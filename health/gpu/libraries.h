#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/gpu/messages.h"

// Where the probe looks for the libraries that the workers will load.
namespace elastic::health {

// The access to a host's files that the search needs.
class LibraryFiles {
 public:
  virtual ~LibraryFiles() = default;
  virtual bool is_file(const std::string& path) const = 0;  // links are followed
  // The names in a directory, in any order; none where it cannot be read.
  virtual std::vector<std::string> names_in(const std::string& directory) const = 0;
  // The path with all links resolved; nothing where a link is broken.
  virtual std::optional<std::string> resolved(const std::string& path) const = 0;
  // The text of a small file; nothing where it cannot be read.
  virtual std::optional<std::string> text_of_file(const std::string& path) const = 0;
};

struct LibrarySearch {
  std::string nccl_lib = {};      // --nccl-lib; "": not given
  std::string python = {};        // the absolute path of the interpreter that runs the workers; "": none
  std::string conda_prefix = {};  // CONDA_PREFIX; "": not set
  std::string python_path = {};   // PYTHONPATH
  std::string user_base = {};     // Python's user base directory: PYTHONUSERBASE, or ~/.local; "": none
};

// The candidates for each library, in this order; a file that has several paths is listed once, by the first of them:
// 1. the file of --nccl-lib; there is then no other candidate for NCCL, so that a named library is never replaced
// silently;
// 2. for NCCL and cuBLASLt, files in the packages of the interpreter, nvidia/{nccl,cublas,cu13,cu12}/lib, the newest
//    cuBLASLt first, then in the directory lib beside its bin;
// 3. the plain name, for the loader's search path;
// 4. files in well-known directories.
// 2 follows Python's own search for packages. The directories of PYTHONPATH come first, then the user's packages, then
// those of the prefix in the interpreter's path as it was given. In a virtual environment (pyvenv.cfg is beside the
// interpreter or one directory above) the user's packages count only if the environment includes the system's, and
// those are then the packages of its `home`. Outside of one, the prefix that the interpreter's links lead to counts as
// well. libcuda and NVML come with the driver, so 2 does not apply to them.
LibraryCandidates library_candidates(const LibrarySearch& search, const LibraryFiles& files);

}  // namespace elastic::health
