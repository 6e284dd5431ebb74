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

// Opens a log file for appending, and creates it if it is missing. The descriptor has a high number, so that spawn()
// need not copy it with those that a worker needs: closing a copy could block on the file system.
Result<UniqueFd> open_log_file(const std::string& path);

// Lets the thread close a file, for closing may block, too.
void close_later(net::SideThread& thread, const std::string& path, UniqueFd file);

// A log file that the launcher writes to, by the thread that does all work on the logs.
class LogFile {
 public:
  struct Handlers {
    std::function<void()> on_room;  // fewer bytes wait than before
    // The file cannot be written. Called once, perhaps after the end of the LogFile.
    std::function<void(std::string reason)> on_lost;
  };

  // `thread` outlives the file, and its owner calls run_done(). Where `max_bytes` is not 0 the file never has
  // more bytes: it is renamed to "<path>.1", which replaces an older one, and a new file begins (Rotation).
  LogFile(net::SideThread& thread, std::string path, UniqueFd file, std::uint64_t max_bytes, Handlers handlers);
  // Bytes that wait are still written.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void add(std::string_view bytes);

  // True while many bytes wait: then the caller should read less from workers.
  bool is_behind() const;
  // From now on nothing is written: bytes that wait for a file system that hangs would grow for ever.
  void give_up();
  const std::string& path() const;

 private:
  struct State;
  static void write_next(const std::shared_ptr<State>& state);
  static std::string write_part(State& state, std::string_view bytes);

  std::shared_ptr<State> state_;
};

}  // namespace elastic::output
