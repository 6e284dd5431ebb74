#include "cli/run/whole_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "src/base/unique_fd.h"
#include "src/output/write_all.h"

namespace elastic::run {
namespace {

// A time of access that no reader causes.
constexpr timespec kNever{.tv_sec = 0, .tv_nsec = 0};

int replace(const std::string& path, std::string_view text, const timespec& accessed) {
  // Programs of the user that write the same file may call theirs path.new, or path.tmp.
  const std::string unfinished = path + ".elastic-run";
  const UniqueFd file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return errno;
  if (const int error = output::write_all(file.get(), text); error != 0) return error;
  const timespec times[] = {accessed, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  if (futimens(file.get(), times) != 0) return errno;
  return rename(unfinished.c_str(), path.c_str()) == 0 ? 0 : errno;
}

}  // namespace

int replace_file(const std::string& path, std::string_view text) {
  return replace(path, text, {.tv_sec = 0, .tv_nsec = UTIME_OMIT});
}

int replace_unread_file(const std::string& path, std::string_view text) { return replace(path, text, kNever); }

bool was_read(const struct stat& facts) { return facts.st_atim.tv_sec != kNever.tv_sec; }

}  // namespace elastic::run
