#include "src/output/log_files.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "src/base/text.h"
#include "src/output/lines/stream_plan.h"
#include "src/output/log_file.h"

namespace elastic::output {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;  // names that are tried before making a directory fails

std::string random_suffix() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "00000000";
  std::string out;
  for (const unsigned char byte : bytes) out += kAlphabet[byte % kAlphabet.size()];
  return out;
}

// Makes a directory of mode 0700 with a unique name.
Result<std::string> make_unique(const std::string& parent, const std::string& prefix) {
  int error = EEXIST;
  for (int i = 0; i < kAttempts && error == EEXIST; ++i) {
    std::string path = parent + "/" + prefix + random_suffix();
    if (mkdir(path.c_str(), 0700) == 0) return path;
    error = errno;
  }
  return fail_errno(format("cannot create a log directory in {}", printable(parent)), error,
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
              "name a directory that can be created and written");
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

std::string rank_path(const std::string& attempt, int local_rank) { return format("{}/{}", attempt, local_rank); }

bool make_directory(const std::string& path, mode_t mode = 0777) {
  return mkdir(path.c_str(), mode) == 0 || errno == EEXIST;
}

// Makes a directory within one that everybody may write to: if it exists already, it must be ours.
bool make_private_directory(const std::string& path) {
  struct stat status {};
  if (mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST || lstat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid()) return true;
  errno = EEXIST;
  return false;
}

}  // namespace

std::string Attempt::name() const {
  return round ? format("attempt_{}_round_{}", restart_count, *round) : format("attempt_{}", restart_count);
}

Result<RunDirectory> RunDirectory::create(const std::optional<std::string>& base, const std::string& temporary,
                                          const std::string& run_id) {
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

bool RunDirectory::make_attempt(const Attempt& attempt) {
  const std::string path = path_ + "/" + attempt.name();
  if (made_attempt_ == path) return true;
  const bool taken_over = prepared_ && rename(prepared_path().c_str(), path.c_str()) == 0;
  if (!taken_over) prepared_ranks_ = 0;
  prepared_ = prepared_ && !taken_over;
  if (!taken_over && !make_directory(path)) {
    // ENOENT: somebody has removed a directory above it.
    if (errno != ENOENT || !make_run_again() || !make_directory(path)) return false;
  }
  made_attempt_ = path;
  newest_restart_count_ = attempt.restart_count;
  if (attempt.round) further_rounds_.push_back(attempt);
  return true;
}

Status RunDirectory::make_rank_directories(const Attempt& attempt, int ranks) {
  const std::string attempt_path = path_ + "/" + attempt.name();
  ranks_ = std::max(ranks_, ranks);
  if (!make_attempt(attempt)) {
    return fail_errno(format("cannot make the log directory {}", printable(attempt_path)), errno);
  }
  for (int rank = prepared_ranks_; rank < ranks; ++rank) {
    const std::string path = rank_path(attempt_path, rank);
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

Result<RoundFiles> RunDirectory::open(const Attempt& attempt, const WantedFiles& wanted) {
  const Status made = make_rank_directories(attempt, static_cast<int>(wanted.ranks.size()));
  if (!made) return std::unexpected(made.error());
  RoundFiles files;
  Status status;
  const auto open_one = [&status](bool is_wanted, const std::string& path) {
    if (!is_wanted || !status) return UniqueFd();
    auto file = open_log_file(path);
    if (file) return std::move(*file);
    status = std::unexpected(std::move(file.error()));
    return UniqueFd();
  };
  for (std::size_t i = 0; i < wanted.ranks.size(); ++i) {
    const int rank = static_cast<int>(i);
    const unsigned streams = wanted.ranks[i];
    UniqueFd out = open_one(streams & kStdoutBit, rank_file(attempt, rank, "stdout.log"));
    UniqueFd err = open_one(streams & kStderrBit, rank_file(attempt, rank, "stderr.log"));
    files.ranks.push_back({std::move(out), std::move(err)});
  }
  files.filtered_out = open_one(wanted.filtered & kStdoutBit, filtered_file(attempt, "stdout"));
  files.filtered_err = open_one(wanted.filtered & kStderrBit, filtered_file(attempt, "stderr"));
  if (!status) return std::unexpected(status.error());
  return files;
}

std::string RunDirectory::rank_file(const Attempt& attempt, int local_rank, std::string_view name) const {
  return format("{}/{}/{}/{}", path_, attempt.name(), local_rank, name);
}

std::string RunDirectory::filtered_file(const Attempt& attempt, std::string_view stream) const {
  return format("{}/{}/filtered_{}.log", path_, attempt.name(), stream);
}

// Removes the deepest directories first; rmdir refuses those that are not empty.
void RunDirectory::remove_ranks(const std::string& attempt) const {
  for (int rank = 0; rank < ranks_; ++rank) rmdir(rank_path(attempt, rank).c_str());
  rmdir(attempt.c_str());
}

bool RunDirectory::remove_if_unused() const {
  if (prepared_) remove_ranks(prepared_path());
  if (!base_is_ours_) return false;
  for (const Attempt& attempt : further_rounds_) remove_ranks(path_ + "/" + attempt.name());
  for (int count = newest_restart_count_; count >= 0; --count) {
    remove_ranks(path_ + "/" + Attempt{.restart_count = count}.name());
  }
  rmdir(path_.c_str());
  return rmdir(base_.c_str()) == 0;
}

}  // namespace elastic::output
