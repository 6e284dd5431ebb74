#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::output {

// Reads what workers append to regular files that are their stdout or stderr, whoever has opened these. A file may be
// on a file system that hangs, and that tells nothing of what other hosts write: so a thread looks at the files once a
// second. It keeps none of them open. Where no worker has such a file there is no thread.
class FileTails {
 public:
  struct Piece {
    std::optional<int> local_rank = {};  // nothing: several ranks write the file
    bool is_err = false;
    bool is_whole = false;     // the whole content of a file of watch_content()
    bool follows_gap = false;  // before these bytes there are others that are not given
    std::string bytes = {};
  };
  // `on_pieces` is called by the loop. Of what was appended between two looks the end is given, at most `most_bytes`.
  FileTails(net::Loop& loop, std::size_t most_bytes, std::function<void(const std::vector<Piece>&)> on_pieces);
  ~FileTails();

  // A worker was started. What its files hold already is not given.
  void watch(int local_rank, pid_t pid);
  // Looks for the content of a file that need not be there yet, whenever that has changed.
  void watch_content(int local_rank, std::string path);
  void end_round();

  // Whether the thread is blocked by a file, so that this process cannot end. Waits for the end of a look.
  bool hangs() { return !thread_.wait(kLookEndsMs); }

 private:
  static constexpr std::int64_t kLookEndsMs = 300;
  struct Place;
  struct Places;

  void plan_look();
  void read_files();
  static bool may_be_regular(const Place& place);
  static void read_all(Places& places);

  net::Loop& loop_;
  std::size_t most_bytes_;
  std::function<void(const std::vector<Piece>&)> on_pieces_;
  std::vector<Place> added_;        // since the thread began its look
  std::shared_ptr<Places> places_;  // the thread's while it looks
  bool is_looking_ = false;
  bool timer_runs_ = false;
  net::SideThread thread_;
  net::ReadWatch done_watch_;
  net::Timer timer_;
};

}  // namespace elastic::output
