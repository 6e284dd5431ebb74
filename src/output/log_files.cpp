#include "src/output/log_files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "src/base/text.h"

namespace elastic::output {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;  // names tried before giving up on a directory that has them all

std::string random_suffix() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "00000000";
  std::string out;
  for (const unsigned char byte : bytes) out += kAlphabet[byte % kAlphabet.size()];
  return out;
}

// A new directory of mode 0700 with a name that nobody else has.
Result<std::string> make_unique(const std::string& parent, const std::string& prefix) {
  int error = EEXIST;
  for (int i = 0; i < kAttempts && error == EEXIST; ++i) {
    std::string path = parent + "/" + prefix + random_suffix();
    if (mkdir(path.c_str(), 0700) == 0) return path;
    error = errno;
  }
  return fail_errno(format("cannot make a log directory in {}", printable(parent)), error,
                    "name another place with --log-dir, or --log-dir=/dev/null for none");
}

Status make_base(const std::string& base) {
  std::error_code error;
  const fs::file_status status = fs::status(base, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return fail(format("--log-dir={}", printable(base)), "it is a file", "name a directory");
  }
  fs::create_directories(base, error);
  if (!error) return {};
  return fail(format("--log-dir={}", printable(base)), errno_text(error.value()),
              "name a directory that can be made and written");
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

std::string attempt_path(const std::string& run, int restart_count) {
  return format("{}/attempt_{}", run, restart_count);
}

std::string rank_path(const std::string& attempt, int local_rank) { return format("{}/{}", attempt, local_rank); }

bool make_directory(const std::string& path, mode_t mode = 0777) {
  return mkdir(path.c_str(), mode) == 0 || errno == EEXIST;
}

// The same for a directory in one that everybody may write to: what is there already must be ours.
bool make_private_directory(const std::string& path) {
  struct stat status {};
  if (mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST || lstat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid()) return true;
  errno = EEXIST;
  return false;
}

}  // namespace

Result<RunDirectory> RunDirectory::create(const std::optional<std::string>& base,
                                          const std::string& temporary, const std::string& run_id) {
  RunDirectory run;
  if (base) {
    if (const Status made = make_base(*base); !made) return std::unexpected(made.error());
    run.base_ = absolute(*base);
  } else {
    auto made = make_unique(absolute(temporary), "torchelastic_");
    if (!made) return std::unexpected(made.error());
    run.base_ = std::move(*made);
    run.base_is_ours_ = true;
  }
  auto path = make_unique(run.base_, replace_all(run_id, "/", "_") + "_");
  if (!path) {
    run.remove_if_unused();
    return std::unexpected(path.error());
  }
  run.path_ = std::move(*path);
  return run;
}

std::string RunDirectory::prepared_path() const { return path_ + "/.next"; }

bool RunDirectory::make_run_again() {
  if (base_is_ours_) return make_private_directory(base_) && make_directory(path_, 0700);
  std::error_code error;
  fs::create_directories(base_, error);
  return make_directory(path_, 0700);
}

bool RunDirectory::make_attempt(int restart_count) {
  if (made_attempt_ == restart_count) return true;
  const std::string path = attempt_path(path_, restart_count);
  const bool taken_over = prepared_ && rename(prepared_path().c_str(), path.c_str()) == 0;
  if (!taken_over) prepared_ranks_ = 0;
  prepared_ = prepared_ && !taken_over;
  if (!taken_over && !make_directory(path)) {
    // Somebody may have cleared away what lay above it.
    if (errno != ENOENT || !make_run_again() || !make_directory(path)) return false;
  }
  made_attempt_ = restart_count;
  return true;
}

Status RunDirectory::make_rank_directories(int restart_count, int ranks) {
  const std::string attempt = attempt_path(path_, restart_count);
  ranks_ = std::max(ranks_, ranks);
  if (!make_attempt(restart_count)) return fail_errno(format("cannot make the log directory {}", printable(attempt)), errno);
  for (int rank = prepared_ranks_; rank < ranks; ++rank) {
    const std::string path = rank_path(attempt, rank);
    if (!make_directory(path)) return fail_errno(format("cannot make the log directory {}", printable(path)), errno);
  }
  return {};
}

void RunDirectory::prepare(int ranks) {
  const std::string path = prepared_path();
  prepared_ranks_ = 0;
  prepared_ = mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
  ranks_ = std::max(ranks_, ranks);
  while (prepared_ && prepared_ranks_ < ranks && make_directory(rank_path(path, prepared_ranks_))) ++prepared_ranks_;
}

std::string RunDirectory::error_file(int restart_count, int local_rank) const {
  return format("{}/error.json", rank_path(attempt_path(path_, restart_count), local_rank));
}

// The deepest first; rmdir refuses those that hold anything.
void RunDirectory::remove_ranks(const std::string& attempt) const {
  for (int rank = 0; rank < ranks_; ++rank) rmdir(rank_path(attempt, rank).c_str());
  rmdir(attempt.c_str());
}

bool RunDirectory::remove_if_unused() const {
  if (prepared_) remove_ranks(prepared_path());
  if (!base_is_ours_) return false;
  for (int attempt = made_attempt_; attempt >= 0; --attempt) remove_ranks(attempt_path(path_, attempt));
  rmdir(path_.c_str());
  return rmdir(base_.c_str()) == 0;
}

}  // namespace elastic::output
