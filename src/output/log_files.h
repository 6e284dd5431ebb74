#pragma once

#include <optional>
#include <string>

#include "src/base/result.h"

namespace elastic::output {

// Where a run keeps its logs and error files, laid out as torchrun does it:
//   <base>/<run id>_<8 characters>/attempt_<restart count>/<local rank>/
class RunDirectory {
 public:
  // Makes the run's own directory (mode 0700). `base` is --log-dir, made if it is missing; without it a
  // new directory in `temporary` is the base. A '/' in the run id becomes '_'. Fails where the base is
  // a file or cannot be written.
  static Result<RunDirectory> create(const std::optional<std::string>& base,
                                     const std::string& temporary, const std::string& run_id);

  const std::string& path() const { return path_; }
  // False where --log-dir names the base.
  bool is_temporary() const { return base_is_ours_; }

  // Makes the directories of the local ranks below `ranks` in one attempt. Nothing in them is ever deleted.
  Status make_rank_directories(int restart_count, int ranks);
  // Makes the directories of a further attempt, as far as that can be done, under a hidden name that the
  // attempt takes over. remove_if_unused() removes them if none has.
  void prepare(int ranks);
  // "<run directory>/attempt_<restart count>/<local rank>/error.json"
  std::string error_file(int restart_count, int local_rank) const;

  // The end of the run. Removes what was made here and is still empty, if the base was made in the
  // temporary directory: a run that wrote nothing leaves nothing. Files, and a base that the user named,
  // stay. True if the run's own directory is gone then.
  bool remove_if_unused() const;

 private:
  bool make_attempt(int restart_count);
  bool make_run_again();
  std::string prepared_path() const;
  void remove_ranks(const std::string& attempt) const;

  std::string base_;
  std::string path_;
  bool base_is_ours_ = false;
  int made_attempt_ = -1;    // the restart count of the newest attempt's directory
  bool prepared_ = false;    // prepared_path() is there
  int prepared_ranks_ = 0;   // of the newest attempt: local ranks below it have their directories
  int ranks_ = 0;            // no attempt has a directory for a local rank of this or more
};

}  // namespace elastic::output
