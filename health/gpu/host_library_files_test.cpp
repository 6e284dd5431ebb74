#include "health/gpu/host_library_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace elastic::health;

namespace {

// A temporary directory that is removed at the end.
struct Directory {
  std::string path;

  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "library-files-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = std::filesystem::canonical(name).string();
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { std::filesystem::remove_all(path); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
};

}  // namespace

TEST_CASE("this host's files are seen as they are, and what is none is not there") {
  const Directory directory;
  const std::string file = directory.write("lib/libnccl.so.2.28", "abc");
  const std::string link = directory.path + "/lib/libnccl.so.2";
  std::filesystem::create_symlink("libnccl.so.2.28", link);
  std::filesystem::create_symlink("nowhere", directory.path + "/lib/broken");
  const std::string pipe = directory.path + "/lib/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const HostLibraryFiles files;
  CHECK(files.is_file(file));
  CHECK(files.is_file(link));
  CHECK(!files.is_file(directory.path + "/lib"));
  CHECK(!files.is_file(directory.path + "/lib/broken"));
  auto names = files.names_in(directory.path + "/lib");
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"broken", "libnccl.so.2", "libnccl.so.2.28", "pipe"});
  CHECK(files.names_in(file).empty());
  CHECK(files.names_in(directory.path + "/none").empty());
  CHECK(files.resolved(link) == file);
  CHECK(!files.resolved(directory.path + "/lib/broken"));
  CHECK(files.text_of_file(link) == "abc");
  CHECK(!files.text_of_file(pipe));
  CHECK(!files.text_of_file(directory.path));
  CHECK(files.text_of_file(directory.write("large", std::string(100'000, 'x')))->size() == 64 * 1024);
}

TEST_CASE("the libraries of a virtual environment on this host are found through its links") {
  const Directory directory;
  directory.write("base/bin/python3.11", "");
  const std::string nccl = directory.write("venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", "");
  directory.write("venv/pyvenv.cfg", "home = " + directory.path + "/base/bin\n");
  std::filesystem::create_directories(directory.path + "/venv/bin");
  std::filesystem::create_symlink(directory.path + "/base/bin/python3.11", directory.path + "/venv/bin/python3");
  const LibraryCandidates found =
      library_candidates({.python = directory.path + "/venv/bin/python3"}, HostLibraryFiles());
  REQUIRE(found.nccl.size() >= 2);
  CHECK(found.nccl[0] == nccl);
  CHECK(found.nccl[1] == "libnccl.so.2");
}
