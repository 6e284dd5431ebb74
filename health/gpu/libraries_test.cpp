#include "health/gpu/libraries.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace elastic::health;

namespace {

using Paths = std::vector<std::string>;

// Files by path. A path that begins with a link's path is resolved to the link's target.
class FakeFiles : public LibraryFiles {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> links;

  bool is_file(const std::string& path) const override { return files.contains(path); }

  std::vector<std::string> names_in(const std::string& directory) const override {
    std::set<std::string> names;
    for (const auto& [path, text] : files) {
      if (!path.starts_with(directory + "/")) continue;
      const std::string rest = path.substr(directory.size() + 1);
      names.insert(rest.substr(0, rest.find('/')));
    }
    return {names.begin(), names.end()};
  }

  std::optional<std::string> resolved(const std::string& path) const override {
    if (links.contains(path)) return links.at(path);
    return files.contains(path) ? std::optional(path) : std::nullopt;
  }

  std::optional<std::string> text_of_file(const std::string& path) const override {
    return files.contains(path) ? std::optional(files.at(path)) : std::nullopt;
  }

  void add(const Paths& paths) {
    for (const std::string& path : paths) files[path] = "";
  }
};

const Paths kLoadersCublaslt = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};

Paths with(Paths first, const Paths& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

}  // namespace

TEST_CASE("where nothing is known the loader is asked") {
  const LibraryCandidates found = library_candidates({}, FakeFiles());
  CHECK(found.nccl == Paths{"libnccl.so.2"});
  CHECK(found.cublaslt == kLoadersCublaslt);
  CHECK(found.cuda == Paths{"libcuda.so.1"});
  CHECK(found.nvml == Paths{"libnvidia-ml.so.1"});
}

TEST_CASE("a library of NCCL that is named is the only one, whether it is there or not") {
  FakeFiles files;
  files.add({"/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"});
  const LibraryCandidates found =
      library_candidates({.nccl_lib = "/mine/libnccl.so", .python = "/env/bin/python3.11"}, files);
  CHECK(found.nccl == Paths{"/mine/libnccl.so"});
  CHECK(found.cublaslt == kLoadersCublaslt);
}

TEST_CASE("the packages of the interpreter come first, in the layouts of CUDA 12 and 13, then the loader") {
  const std::string packages = "/env/lib/python3.11/site-packages/nvidia/";
  FakeFiles files;
  files.add({packages + "nccl/lib/libnccl.so.2", packages + "cublas/lib/libcublasLt.so.12",
             packages + "cublas/lib/libcublasLt.so.12.8.4", packages + "cublas/lib/libcublasLt.so.9",
             packages + "cublas/lib/libcublasLt.so.x", packages + "cu13/lib/libcublasLt.so.13",
             packages + "cu12/lib/libnccl.so.2", packages + "cu13/lib/libcuda.so.1"});
  const LibraryCandidates found = library_candidates({.python = "/env/bin/python3.11"}, files);
  CHECK(found.nccl == Paths{packages + "nccl/lib/libnccl.so.2", packages + "cu12/lib/libnccl.so.2", "libnccl.so.2"});
  CHECK(found.cublaslt == with({packages + "cublas/lib/libcublasLt.so.12", packages + "cublas/lib/libcublasLt.so.9",
                                packages + "cu13/lib/libcublasLt.so.13"},
                               kLoadersCublaslt));
  CHECK(found.cuda == Paths{"libcuda.so.1"});
}

TEST_CASE("a virtual environment has its own packages alone, unless it includes the system's") {
  const std::string own = "/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
  const std::string debian = "/usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2";
  const std::string apt = "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2";
  FakeFiles files;
  files.add({own, debian, apt});
  files.links["/venv/bin/python3"] = "/usr/bin/python3.11";
  files.files["/venv/pyvenv.cfg"] = "home = /usr/bin\ninclude-system-site-packages = false\n";
  const auto nccl = [&] { return library_candidates({.python = "/venv/bin/python3"}, files).nccl; };
  CHECK(nccl() == Paths{own, "libnccl.so.2"});
  files.files["/venv/pyvenv.cfg"] = "home = /usr/bin\nInclude-System-Site-Packages = TRUE\n";
  CHECK(nccl() == Paths{own, debian, apt, "libnccl.so.2"});
  files.files["/venv/pyvenv.cfg"] = "nonsense";
  CHECK(nccl() == Paths{own, "libnccl.so.2"});
}

TEST_CASE("the prefix of an interpreter's path counts before that of what it links to") {
  const std::string given = "/tools/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2";
  const std::string real = "/opt/conda/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2";
  FakeFiles files;
  files.add({given, real});
  files.links["/tools/bin/python"] = "/opt/conda/bin/python3.12";
  CHECK(library_candidates({.python = "/tools/bin/python"}, files).nccl == Paths{given, real, "libnccl.so.2"});
}

TEST_CASE("only packages of the interpreter's version count; of an unknown one the newest first") {
  const auto at = [](const std::string& version) {
    return "/env/lib/python3." + version + "/site-packages/nvidia/nccl/lib/libnccl.so.2";
  };
  FakeFiles files;
  files.add({at("9"), at("11"), at("12"), "/env/lib/python3.x/site-packages/nvidia/nccl/lib/libnccl.so.2"});
  CHECK(library_candidates({.python = "/env/bin/python3.11"}, files).nccl == Paths{at("11"), "libnccl.so.2"});
  CHECK(library_candidates({.python = "/env/bin/python"}, files).nccl ==
        Paths{at("12"), at("11"), at("9"), "libnccl.so.2"});
  files.links["/env/bin/python3"] = "/usr/bin/python3.11";
  files.files["/env/pyvenv.cfg"] = "";
  CHECK(library_candidates({.python = "/env/bin/python3"}, files).nccl == Paths{at("11"), "libnccl.so.2"});
}

TEST_CASE("an interpreter without a path has no packages that are known") {
  FakeFiles files;
  files.add({"/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"});
  CHECK(library_candidates({.python = "python3.11"}, files).nccl == Paths{"libnccl.so.2"});
}

TEST_CASE("an environment's own lib, then the loader, then conda, the system and CUDA's toolkits, newest first") {
  FakeFiles files;
  files.add({"/env/lib/libnccl.so.2", "/conda/lib/libnccl.so.2", "/conda/lib/libcublasLt.so.12",
             "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
             "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/local/cuda-9.2/lib64/libcublasLt.so.9",
             "/usr/local/cuda-13.0/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libnccl.so.2"});
  const LibraryCandidates found =
      library_candidates({.python = "/env/bin/python3.11", .conda_prefix = "/conda"}, files);
  CHECK(found.nccl == Paths{"/env/lib/libnccl.so.2", "libnccl.so.2", "/conda/lib/libnccl.so.2",
                            "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"});
  CHECK(found.cublaslt ==
        with(kLoadersCublaslt, {"/conda/lib/libcublasLt.so.12", "/usr/local/cuda-13.0/lib64/libcublasLt.so.13",
                                "/usr/local/cuda-9.2/lib64/libcublasLt.so.9"}));
  CHECK(found.cuda == Paths{"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"});
  CHECK(found.nvml == Paths{"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"});
}

TEST_CASE("each candidate is named once, and all of them fit into a line for the probe") {
  FakeFiles files;
  const std::string prefix = "/" + std::string(800, 'e');
  for (int i = 0; i < 100; ++i) {
    files.add({prefix + "/lib/python3." + std::to_string(i) + "/site-packages/nvidia/nccl/lib/libnccl.so.2",
               prefix + "/lib/libcublasLt.so." + std::to_string(i)});
  }
  const LibraryCandidates found = library_candidates({.python = prefix + "/bin/python"}, files);
  CHECK(text_of(GpuOpen{.device = 0, .libraries = found}).size() < kProbeLineBytes);
  const std::string too_long = "/" + std::string(1000, 'c');
  FakeFiles deep;
  deep.add({too_long + "/lib/libnccl.so.2"});
  CHECK(library_candidates({.conda_prefix = too_long}, deep).nccl == Paths{"libnccl.so.2"});
  FakeFiles linked;
  linked.add({"/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
              "/env/lib64/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"});
  for (const auto& [path, text] : linked.files) linked.links[path] = "/cache/libnccl.so.2.28.9";
  CHECK(library_candidates({.python = "/env/bin/python3.11"}, linked).nccl ==
        Paths{"/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"});
  FakeFiles twice;
  twice.add({"/conda/lib/libnccl.so.2"});
  CHECK(library_candidates({.python = "/conda/bin/python3", .conda_prefix = "/conda"}, twice).nccl ==
        Paths{"/conda/lib/libnccl.so.2", "libnccl.so.2"});
}

TEST_CASE(
    "PYTHONPATH comes before the user's own packages and these before the interpreter's, as Python imports them") {
  const std::string nccl = "/nvidia/nccl/lib/libnccl.so.2";
  FakeFiles files;
  files.add({"/extra" + nccl, "/home/me/.local/lib/python3.11/site-packages" + nccl,
             "/usr/lib/python3.11/site-packages" + nccl, "/home/me/.local/lib/python3.12/site-packages" + nccl,
             "relative" + nccl});
  const LibrarySearch search{
      .python = "/usr/bin/python3.11", .python_path = "relative::/extra:/nowhere", .user_base = "/home/me/.local"};
  CHECK(library_candidates(search, files).nccl == Paths{"/extra" + nccl,
                                                        "/home/me/.local/lib/python3.11/site-packages" + nccl,
                                                        "/usr/lib/python3.11/site-packages" + nccl, "libnccl.so.2"});
  LibrarySearch without = search;
  without.user_base = "";
  CHECK(library_candidates(without, files).nccl ==
        Paths{"/extra" + nccl, "/usr/lib/python3.11/site-packages" + nccl, "libnccl.so.2"});
}

TEST_CASE("the user's own packages are not those of a virtual environment, unless it includes the system's") {
  const std::string nccl = "/home/me/.local/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
  FakeFiles files;
  files.add({nccl});
  files.files["/env/pyvenv.cfg"] = "home = /usr/bin\n";
  const LibrarySearch search{.python = "/env/bin/python3.11", .user_base = "/home/me/.local"};
  CHECK(library_candidates(search, files).nccl == Paths{"libnccl.so.2"});
  files.files["/env/pyvenv.cfg"] = "home = /usr/bin\ninclude-system-site-packages = true\n";
  CHECK(library_candidates(search, files).nccl == Paths{nccl, "libnccl.so.2"});
}
