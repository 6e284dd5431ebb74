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

// The same, opened for writing at their ends; those that were not wanted are empty.
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
  // False where --log-dir names the base.
  bool is_temporary() const { return base_is_ours_; }

  // Makes the directories of all local ranks in one attempt, and the log files that are wanted. Nothing that is
  // there is ever deleted.
  Result<RoundFiles> open(const Attempt& attempt, const WantedFiles& wanted);
  // Makes the directories of a further attempt, as far as that can be done, under a hidden name that the
  // attempt takes over. remove_if_unused() removes them if none has.
  void prepare(int ranks);
  // "<run directory>/attempt_<restart count>/<local rank>/error.json", "stdout.log", "stderr.log"
  std::string rank_file(const Attempt& attempt, int local_rank, std::string_view name) const;
  // "<run directory>/attempt_<restart count>/filtered_stdout.log"
  std::string filtered_file(const Attempt& attempt, std::string_view stream) const;

  // The end of the run. Removes what was made here and is still empty, if the base was made in the
  // temporary directory: a run that wrote nothing leaves nothing. Files, and a base that the user named,
  // stay. True if the run's own directory is gone then.
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
  std::vector<Attempt> further_rounds_;  // those that kept the restart count of the one before
  bool prepared_ = false;                // prepared_path() is there
  int prepared_ranks_ = 0;               // of the newest attempt: local ranks below it have their directories
  int ranks_ = 0;                        // no attempt has a directory for a local rank of this or more
};

}  // namespace elastic::output
