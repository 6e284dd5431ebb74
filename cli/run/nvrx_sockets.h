#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "health/progress/nvrx_message.h"
#include "health/progress/nvrx_session.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"

namespace elastic::run {

// The sockets to which workers' NVRx clients connect (docs/progress.md): one for each local rank, where its monitor
// would be, and one where NVRx's launcher would be.
class NvrxSockets {
 public:
  struct Handlers {
    // A rank has said that it makes progress.
    std::function<void(int local_rank, const progress::NvrxWord& word)> on_word;
    // A rank asks something of the launcher. Returns why it is not done; empty: it is.
    std::function<std::string(const progress::nvrx::Request& request)> on_request;
  };
  // `sections` outlive it: the names that clients may use.
  NvrxSockets(net::Loop& loop, const std::vector<std::string>& sections, Handlers handlers);
  ~NvrxSockets();

  // Makes them in the directory, once. Fails with the system's reason, and then there is none.
  Status open(const std::string& directory, int workers);
  bool is_open() const { return !listeners_.empty(); }
  // Closes the connections of the last round's workers.
  void close_connections();

  static std::string path(const std::string& directory, int local_rank);
  static std::string launcher_path(const std::string& directory);

 private:
  struct Connection {
    UniqueFd descriptor;
    std::unique_ptr<progress::NvrxSession> session;  // null: of the launcher
    std::string request;                             // to the launcher: what has arrived of it
    std::unique_ptr<net::ReadWatch> watch;           // last: it ends before its descriptor does
  };
  struct Listener {
    UniqueFd descriptor;
    std::list<Connection> connections;
    std::unique_ptr<net::ReadWatch> watch;
  };

  bool is_of_launcher(std::size_t listener) const { return listener + 1 == listeners_.size(); }
  void accept_one(std::size_t listener);
  void readable(std::size_t listener, std::list<Connection>::iterator connection);
  // Whether the connection goes on.
  bool feed_session(std::size_t listener, Connection& connection, std::string_view bytes);
  bool take_of_launcher(Connection& connection, std::string_view bytes);
  void tell_problem(const std::string& problem);

  net::Loop& loop_;
  const std::vector<std::string>& sections_;
  Handlers handlers_;
  std::vector<Listener> listeners_;  // by local rank; the last one is the launcher's
  bool has_told_problem_ = false;
};

}  // namespace elastic::run
