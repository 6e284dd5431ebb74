#include "src/process/job_directory.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

using namespace elastic::process;

TEST_CASE("a job's directory is ours alone, and goes with all files in it") {
  const auto path = make_job_directory("/tmp");
  REQUIRE(path);
  struct stat facts {};
  REQUIRE(stat(path->c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0700);
  CHECK(mkfifo((*path + "/0").c_str(), 0600) == 0);
  std::ofstream(*path + "/file") << "text";
  remove_job_directory(*path, 5000);
  CHECK(access(path->c_str(), F_OK) != 0);
  remove_job_directory(*path, 5000);  // it is gone already
}

TEST_CASE("where no directory can be made the reason is told") {
  const auto path = make_job_directory("/proc");
  REQUIRE_FALSE(path);
  CHECK(path.error().text().find("cannot make a directory in /proc") == 0);
}
