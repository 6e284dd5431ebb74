#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

// Several elastic-runs on one host, started together, of which one launches: the others learn of its end by Unix
// sockets with abstract names, which leave nothing behind. Nobody polls: the launching one listens and calls at those
// that are there already; who comes later calls at it. A connection waits in its queue until its end, and whatever
// becomes of it, the kernel ends the connection with it. Sockets of other users are passed over.
namespace elastic::process {

struct LocalTaskPlace {
  std::string name;  // the same for all, and on this host for no others
  int index = 0;     // 0 launches
  int members = 1;
};

// How long after its start the launching one still waits for those that have not come yet; how long a waiting one waits
// for it.
inline constexpr std::int64_t kLocalTasksMeetMs = 10'000;
inline constexpr std::int64_t kLocalTasksPatienceMs = 30'000;

// The launching side. Fails where the name is taken, or there can be no socket.
class LocalTasksHost {
 public:
  static Result<LocalTasksHost> open(const LocalTaskPlace& place);

  int descriptor() const { return listener_.get(); }
  // Moves to a place of the owner's choice.
  UniqueFd& socket() { return listener_; }
  // Tells all others this exit status. Those that are not there yet are waited for until kLocalTasksMeetMs after
  // open().
  void tell(int status) const;

 private:
  UniqueFd listener_;
  int others_ = 0;
  std::int64_t opened_ms_ = 0;
};

// A waiting one's part. Returns the exit status that it was told. From when it has met the launching one, signals that
// end a process are ignored: those of a whole job reach the launching one, too, which needs its time to end. `on_met`
// is called then. Fails where there is none within the patience, or where it has ended without a word.
Result<int> wait_for_local_tasks(const LocalTaskPlace& place, const std::function<void()>& on_met);

}  // namespace elastic::process
