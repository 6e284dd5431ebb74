#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::output {

// Which log files a round needs.
struct WantedFiles {
  std::vector<unsigned> ranks;  // by local rank: kStdoutBit, kStderrBit
  unsigned filtered = 0;        // those of --duplicate-*-filters, the same bits
};

// The same files, opened for appending; those that were not wanted are empty.
struct RoundFiles {
  struct Rank {
    UniqueFd out;
    UniqueFd err;
  };
  std::vector<Rank> ranks;
  UniqueFd filtered_out;
  UniqueFd filtered_err;
};

// One round's place in a run directory.
struct Attempt {
  int restart_count = 0;
  // Set where a round keeps the restart count of the one before it: a change of membership.
  std::optional<unsigned> round = {};

  // "attempt_2", "attempt_2_round_5"
  std::string name() const;
};

// Where a run keeps its logs and error files, laid out as torchrun does it:
//   <base>/<run id>_<8 characters>/attempt_<restart count>/<local rank>/
class RunDirectory {
 public:
  // Makes the run's own directory (mode 0700). `base` is --log-dir, made if it is missing; without it a
  // new directory in `temporary` is the base. A '/' in the run id becomes '_'. Fails where the base is
  // a file or cannot be written.
  static Result<RunDirectory> create(const std::optional<std::string>& base, const std::string& temporary,
                                     const std::string& run_id);

  const std::string& path() const { return path_; }
  // Whether the base is a directory that was made for this run; false where --log-dir names it.
  bool is_temporary() const { return base_is_ours_; }

  // Makes the directories of all local ranks in one attempt, and the log files that are wanted. Existing files are
  // never deleted.
  Result<RoundFiles> open(const Attempt& attempt, const WantedFiles& wanted);
  // Makes the directories of a further attempt in advance, as far as that is possible, under a hidden name; open()
  // renames them. remove_if_unused() removes them if no attempt has used them.
  void prepare(int ranks);
  // "<run directory>/attempt_<restart count>/<local rank>/error.json", "stdout.log", "stderr.log"
  std::string rank_file(const Attempt& attempt, int local_rank, std::string_view name) const;
  // "<run directory>/attempt_<restart count>/filtered_stdout.log"
  std::string filtered_file(const Attempt& attempt, std::string_view stream) const;

  // Ends the run. Removes directories that were made here and are still empty, if the base was made in the
  // temporary directory: a run that wrote nothing leaves nothing. Files, and a base that the user named,
  // stay. Returns whether the run's own directory is gone.
  bool remove_if_unused() const;

 private:
  bool make_attempt(const Attempt& attempt);
  Status make_rank_directories(const Attempt& attempt, int ranks);
  bool make_run_again();
  std::string prepared_path() const;
  void remove_ranks(const std::string& attempt) const;

  std::string base_;
  std::string path_;
  bool base_is_ours_ = false;
  std::string made_attempt_;             // the newest attempt's directory
  int newest_restart_count_ = -1;        // of the attempts
  std::vector<Attempt> further_rounds_;  // rounds with the restart count of the round before
  bool prepared_ = false;                // prepared_path() exists
  int prepared_ranks_ = 0;               // local ranks below this have their directories in the newest attempt
  int ranks_ = 0;                        // no attempt has a directory for a local rank of this or more
};

}  // namespace elastic::output
