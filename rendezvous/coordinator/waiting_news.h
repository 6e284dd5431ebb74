#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// What the nodes that are in no round wait for at present. Times are milliseconds of the coordinator's clock.
struct News {
  int here = 0;  // `here`, `least`, `most` and `what` as in protocol::Awaiting
  int least = 0;
  int most = 0;
  std::optional<std::int64_t> since_ms = {};  // since when the job has waited; empty: it does not
  std::optional<std::int64_t> until_ms = {};  // when the round begins or the wait fails; empty: no time is set
  std::string what = {};
  bool names_gone = false;  // the message says which nodes were lost or have left
  bool operator==(const News&) const = default;
};

// Decides when nodes that wait are told what they wait for, and which of them. A change is held back for a second: most
// waits are over by then, and when many nodes join together each of them gets one message. It is told which nodes go
// and come back, and, after each event, what is awaited; it answers with the message that is due, if one is.
class WaitingNews {
 public:
  // The node was lost or has left, as the sentence `text` says. It is named until it is back or a round has formed.
  void has_gone(protocol::AgentId node, std::string text, std::int64_t now_ms);
  void is_back(protocol::AgentId node);
  // A round has formed: what was told before is over, and no node is missed any more.
  void round_has_formed();
  // Nodes await nothing that they are told of. A change that was held back is dropped.
  void drop_change() { tell_at_ms_.reset(); }

  // A message that is due goes to all waiting nodes whose number in the order of joining is at least `from_arrival`:
  // the others have got it.
  struct Due {
    std::optional<protocol::Awaiting> message = {};
    std::uint64_t from_arrival = 0;
    std::optional<std::int64_t> look_again_ms = {};  // no message is due yet: ask again then
  };
  // `waiting` nodes wait, and `arrivals` nodes have joined so far.
  Due news_due(News news, std::size_t waiting, std::uint64_t arrivals, std::int64_t now_ms);

  // Called after each event.
  void check_invariants(std::uint64_t arrivals) const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  struct Gone {
    protocol::AgentId node = 0;
    std::string text;
    std::int64_t at_ms = 0;
  };
  struct Told {
    News news;
    std::string because = {};
    std::int64_t because_at_ms = 0;
    bool operator==(const Told&) const = default;
  };

  std::vector<Gone> gone_;
  std::optional<Told> told_;         // what was sent last
  std::uint64_t told_arrivals_ = 0;  // how many nodes had joined at that time
  std::optional<std::int64_t> tell_at_ms_;
};

}  // namespace elastic::coordinator
