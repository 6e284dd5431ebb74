#include "health/gpu/libraries.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// With these bounds a request with all candidates is no longer than a line may be.
constexpr std::size_t kMostCandidates = 16;
constexpr std::size_t kMostPathBytes = 1000;
constexpr std::size_t kMostPythonPaths = 64;

constexpr std::string_view kNccl = "libnccl.so.2";
constexpr std::string_view kCublaslt = "libcublasLt.so.";  // a version follows
constexpr std::string_view kCuda = "libcuda.so.1";
constexpr std::string_view kNvml = "libnvidia-ml.so.1";
constexpr std::array kCublasltVersions = {"13", "12", "11"};  // of the plain names, newest first

// The directories in which distributions, containers and WSL install the driver's libraries, and NVIDIA's packages
// CUDA's.
constexpr std::array kSystemPlaces = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                      "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"};

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "" : path.substr(0, slash);
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The numbers in a text; ordered by them, "python3.9" comes before "python3.12".
std::vector<int> numbers_in(std::string_view text) {
  std::vector<int> numbers;
  bool in_number = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !in_number) numbers.push_back(0);
    if (is_digit && numbers.back() < 100'000) numbers.back() = numbers.back() * 10 + (c - '0');
    in_number = is_digit;
  }
  return numbers;
}

// The names in a directory that are `start` followed by digits and dots, the highest number first.
std::vector<std::string> numbered_names(const LibraryFiles& files, const std::string& directory,
                                        std::string_view start) {
  std::vector<std::string> names;
  for (std::string& name : files.names_in(directory)) {
    if (!name.starts_with(start) || name.size() == start.size()) continue;
    if (name.find_first_not_of("0123456789.", start.size()) == std::string::npos) names.push_back(std::move(name));
  }
  std::ranges::sort(names, std::greater{}, numbers_in);
  return names;
}

bool is_new(const std::vector<std::string>& list, const std::string& path) {
  return std::ranges::find(list, path) == list.end();
}

void add(std::vector<std::string>& list, std::string path) {
  if (list.size() < kMostCandidates && path.size() <= kMostPathBytes) list.push_back(std::move(path));
}

// --- The interpreter

struct PythonConfig {
  std::string home;              // the directory of the interpreter with which the environment was made
  bool includes_system = false;  // that interpreter's packages can be imported, too
};

// Reads the "key = value" lines of pyvenv.cfg, as venv and virtualenv write them.
PythonConfig read_python_config(const std::string& text) {
  PythonConfig config;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key = lower(trim(line.substr(0, equals)));
    const std::string_view value = trim(line.substr(equals + 1));
    if (key == "home") config.home = value;
    if (key == "include-system-site-packages") config.includes_system = lower(value) == "true";
  }
  return config;
}

std::optional<PythonConfig> python_config(const LibraryFiles& files, const std::string& python) {
  const std::string bin = parent_of(python);
  for (const std::string& place : {bin, parent_of(bin)}) {
    if (const auto text = files.text_of_file(place + "/pyvenv.cfg")) return read_python_config(*text);
  }
  return {};
}

// The file name in the path if it has the form "python3.11", else "".
std::string versioned_name(std::string_view path) {
  const std::string_view name = last_of(path);
  constexpr std::string_view kStart = "python3.";
  const bool is_versioned = name.starts_with(kStart) && name.size() > kStart.size() &&
                            name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
  return is_versioned ? std::string(name) : std::string();
}

class PythonPackages {
 public:
  PythonPackages(const LibraryFiles& files, const LibrarySearch& search) : files_(files) {
    const std::string& python = search.python;
    if (!python.starts_with('/')) return;
    const std::string real = files.resolved(python).value_or(python);
    version_ = versioned_name(python);
    if (version_.empty()) version_ = versioned_name(real);
    const auto config = python_config(files, python);
    for (std::string& place : split(search.python_path, ':')) {
      if (place.starts_with('/') && packages_.size() < kMostPythonPaths) add_place(std::move(place));
    }
    if (!search.user_base.empty() && (!config || config->includes_system)) add_packages(search.user_base + "/lib");
    add_prefix(parent_of(parent_of(python)));
    if (!config) {
      add_prefix(parent_of(parent_of(real)));
    } else if (config->includes_system) {
      add_prefix(parent_of(config->home));
    }
  }

  // Directories that may contain NVIDIA's packages.
  const std::vector<std::string>& packages() const { return packages_; }
  const std::vector<std::string>& prefixes() const { return prefixes_; }

 private:
  void add_prefix(const std::string& prefix) {
    if (!is_new(prefixes_, prefix)) return;
    prefixes_.push_back(prefix);
    for (const char* lib : {"/lib", "/lib64"}) add_packages(prefix + lib);
    // Debian's own Python has pip's packages for all users here, and apt's there.
    if (prefix == "/usr") add_packages("/usr/local/lib");
    if (prefix == "/usr") add_place("/usr/lib/python3/dist-packages");
  }

  // Only for the interpreter's own version, where that is known.
  void add_packages(const std::string& lib) {
    std::vector<std::string> versions = {version_};
    if (version_.empty()) versions = numbered_names(files_, lib, "python3.");
    for (const std::string& version : versions) {
      for (const char* packages : {"/site-packages", "/dist-packages"}) add_place(lib + "/" + version + packages);
    }
  }

  void add_place(std::string place) {
    if (is_new(packages_, place)) packages_.push_back(std::move(place));
  }

  const LibraryFiles& files_;
  std::string version_;
  std::vector<std::string> prefixes_;
  std::vector<std::string> packages_;
};

// --- The libraries

class Search {
 public:
  Search(const LibrarySearch& search, const LibraryFiles& files) : search_(search), files_(files) {}

  LibraryCandidates candidates() {
    add_packages();
    add(found_.nccl, std::string(kNccl));
    for (const char* version : kCublasltVersions) add(found_.cublaslt, std::string(kCublaslt) + version);
    add(found_.cuda, std::string(kCuda));
    add(found_.nvml, std::string(kNvml));
    add_known_places();
    if (!search_.nccl_lib.empty()) found_.nccl = {search_.nccl_lib};
    return std::move(found_);
  }

 private:
  void add_packages() {
    const PythonPackages python(files_, search_);
    for (const std::string& place : python.packages()) {
      add_nccl(place + "/nvidia/nccl/lib");
      add_cublaslt(place + "/nvidia/cublas/lib");
      for (const char* together : {"/nvidia/cu13/lib", "/nvidia/cu12/lib"}) {
        add_nccl(place + together);
        add_cublaslt(place + together);
      }
    }
    for (const std::string& prefix : python.prefixes()) {
      add_nccl(prefix + "/lib");
      add_cublaslt(prefix + "/lib");
    }
  }

  void add_known_places() {
    if (!search_.conda_prefix.empty()) {
      add_nccl(search_.conda_prefix + "/lib");
      add_cublaslt(search_.conda_prefix + "/lib");
    }
    for (const char* place : kSystemPlaces) {
      add_nccl(place);
      add_cublaslt(place);
      add_file(found_.cuda, place, kCuda);
      add_file(found_.nvml, place, kNvml);
    }
    std::vector<std::string> toolkits = numbered_names(files_, "/usr/local", "cuda-");
    toolkits.insert(toolkits.begin(), "cuda");
    for (const std::string& toolkit : toolkits) {
      add_nccl("/usr/local/" + toolkit + "/lib64");
      add_cublaslt("/usr/local/" + toolkit + "/lib64");
    }
  }

  void add_nccl(const std::string& directory) { add_file(found_.nccl, directory, kNccl); }

  // Only names with the major version alone: "libcublasLt.so.12", not "libcublasLt.so.12.8.4.1", which is the same
  // library.
  void add_cublaslt(const std::string& directory) {
    for (const std::string& name : numbered_names(files_, directory, kCublaslt)) {
      if (name.find('.', kCublaslt.size()) == std::string::npos) add_file(found_.cublaslt, directory, name);
    }
  }

  void add_file(std::vector<std::string>& list, const std::string& directory, std::string_view name) {
    std::string path = directory + "/" + std::string(name);
    if (!files_.is_file(path)) return;
    const std::string real = files_.resolved(path).value_or(path);
    const bool is_there = std::ranges::any_of(list, [&](const std::string& other) {
      return other.starts_with('/') && files_.resolved(other).value_or(other) == real;
    });
    if (!is_there) add(list, std::move(path));
  }

  const LibrarySearch& search_;
  const LibraryFiles& files_;
  LibraryCandidates found_;
};

}  // namespace

LibraryCandidates library_candidates(const LibrarySearch& search, const LibraryFiles& files) {
  return Search(search, files).candidates();
}

}  // namespace elastic::health
