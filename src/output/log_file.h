#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/side_thread.h"

namespace elastic::output {

// Opens a log file for writing at its end, made if it is missing. The descriptor is a high one, so that spawn() need
// not copy it with those that a worker needs: to close a copy would wait for the file system.
Result<UniqueFd> open_log_file(const std::string& path);

// Has a file closed by the thread: that may block, too.
void close_later(net::SideThread& thread, const std::string& path, UniqueFd file);

// A log file that the launcher writes to, by the thread for all that touches the logs.
class LogFile {
 public:
  struct Handlers {
    std::function<void()> on_room;  // what waits has shrunk
    // It cannot be written; told once, perhaps after the end of the LogFile.
    std::function<void(std::string reason)> on_lost;
  };

  // `thread` outlives the file; its run_done() is called by somebody. Where `max_bytes` is not 0 the file never
  // grows over it: it is renamed to "<path>.1", in the place of an older one, and a new one begins (Rotation).
  LogFile(net::SideThread& thread, std::string path, UniqueFd file, std::uint64_t max_bytes, Handlers handlers);
  // What waits is still written.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void add(std::string_view bytes);

  // True while much waits: who can should hold back.
  bool is_behind() const;
  // Nothing is kept from now on: what waits for a file system that hangs would grow for ever.
  void give_up();
  const std::string& path() const;

 private:
  struct State;
  static void write_next(const std::shared_ptr<State>& state);
  static std::string write_part(State& state, std::string_view bytes);

  std::shared_ptr<State> state_;
};

}  // namespace elastic::output
