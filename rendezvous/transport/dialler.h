#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// Where a coordinator is to be reached.
struct Target {
  std::string address = {};  // numeric
  std::uint16_t port = 0;
};

// Tries targets one after the other until one takes the connection.
class Dialler {
 public:
  // None has; how the last ones have failed.
  struct Failure {
    std::string problem = {};            // of the last one
    bool all_refused = false;            // each of them; false where there was none
    bool session_place_refused = false;  // the place of note_session()
  };
  struct Handlers {
    std::function<void(const Target&, std::unique_ptr<net::Stream>)> on_connected;
    std::function<void(const Failure&)> on_failed;
  };
  Dialler(net::Loop& loop, Handlers handlers);

  // Tries each address at each port, port by port; where there are none, fails from within the call, with `problem`.
  void dial(const std::vector<std::string>& addresses, const std::vector<std::uint16_t>& ports, std::string problem);
  // The same in a later turn of the loop.
  void dial_later(std::vector<std::string> addresses, std::uint16_t port);
  // Tries the target that was connected to once more, and then those that were not tried yet.
  void dial_again(const Target& target);
  // No handler is called any more, until the next dial.
  void stop();

  // The last session with the job's coordinator is, or was, here.
  void note_session(const Target& target) { session_at_ = target; }
  bool is_session_place(const Target& target) const;

 private:
  void try_next();
  void refused_or_silent(const Target& target);

  net::Loop& loop_;
  Handlers handlers_;
  std::vector<Target> targets_;  // those that have not been tried; the next one is the last
  Failure failure_;
  Target session_at_;
  net::Timer later_;
  std::unique_ptr<net::Connector> connector_;
};

}  // namespace elastic::transport
