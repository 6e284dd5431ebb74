#pragma once

#include <optional>

namespace elastic::agent {

// Stops a round before its first failed worker has ended: Python takes up to a second to die of an exception, and
// torch's @record writes the error file before that (docs/warm-workers.md). The file is no proof, since a script may
// catch the exception outside @record. So the worker that wrote it is left alone, and only its end says whether it has
// failed.
class EarlyStop {
 public:
  // `is_on`: error files stop rounds on this node.
  explicit EarlyStop(bool is_on) : is_on_(is_on) {}

  // A round begins. `may_restart`: another attempt may follow it. `is_over`: an error file of a worker that did not
  // fail has stopped a round of this job, so that no other file does.
  void round_began(bool may_restart, bool is_over);
  // A worker that runs has written a whole error file. `has_company`: others run, here or elsewhere. True: the others
  // are to be stopped, and this one is not.
  bool written(int local_rank, bool has_company);
  // All processes of the round are signalled, for another reason: the worker's end says nothing any more.
  void is_signalled_too() { is_spared_ = false; }
  // No process of the round is left.
  void round_ended() { is_over_ = is_over_ || false_alarm().has_value(); }
  // A worker of the round has failed. True: it is the one that stopped the round, and it has ended by itself.
  bool failed(int local_rank);
  // A worker has been killed by a signal that we did not send. A worker that lost its peer by that may write an error
  // file before the death is known here. True: this explains the error file that stopped the round. Its worker is no
  // suspect any more, and has to be signalled.
  bool is_explained_by_death_of(int local_rank);

  // The worker that stopped the round and is left alone; empty: there is none.
  std::optional<int> spared() const { return is_spared_ ? suspect_ : std::nullopt; }
  // When no process of the round is left: the worker that stopped it and has not failed; empty: there is none.
  std::optional<int> false_alarm() const { return has_failed_ ? std::nullopt : suspect_; }
  // There was a false alarm in this job, as far as this node knows.
  bool is_over() const { return is_over_; }

 private:
  bool is_on_;
  bool is_over_ = false;
  bool may_restart_ = false;
  std::optional<int> suspect_;  // the worker whose error file has stopped the round
  bool is_spared_ = false;      // it has got no signal
  bool has_failed_ = false;     // it has ended by itself, and not well
};

}  // namespace elastic::agent
