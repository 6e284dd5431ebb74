#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/locate/claim.h"
#include "rendezvous/protocol/frame_reader.h"
#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/meeting_place.h"
#include "rendezvous/transport/meeting_settings.h"
#include "rendezvous/transport/munge_exchange.h"
#include "rendezvous/transport/munge_trust.h"
#include "rendezvous/transport/store_probe.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// A node's connection to the coordinator, one at a time; and the coordinator itself, where this node is the one to
// host it: its meeting place says so anew with each attempt.
class CoordinatorConnection {
 public:
  struct Handlers {
    std::function<void(bool local)> on_connected;  // local: the coordinator is in this process
    std::function<void(std::string why)> on_broken;
    std::function<void(std::span<const std::uint8_t>)> on_received;
    // The coordinator listens here from now on.
    std::function<void(CoordinatorServer&)> on_hosting = {};
    // In place of on_broken, before the first connection: no attempt will do better, and why.
    std::function<void(std::string why)> on_hopeless = {};
  };
  using ToStore = MeetingPlace::ToStore;

  // Settings outlive it. `to_store`: see CoordinatorServer.
  CoordinatorConnection(net::Loop& loop, const MeetingSettings& settings, Handlers handlers, ToStore to_store = {});

  // Answered by on_connected or on_broken, in a later turn of the loop. `belongs`: this node is in a job that has had
  // a coordinator.
  void connect(bool belongs);
  // Nothing comes of the connection after it.
  void disconnect();
  void write(std::span<const std::uint8_t> bytes);
  // See MeetingPlace.
  void withdraw(std::function<void()> done) { place_->withdraw(std::move(done)); }
  bool hangs() const { return place_->hangs(); }

  // The coordinator in this process, if it is here.
  CoordinatorServer* server() { return place_->server(); }
  // The coordinator that was reached last is in this process.
  bool is_at_home() const { return at_home_; }
  // Where the coordinator was reached last: a numeric address, empty before.
  const std::string& reached_at() const { return reached_.address; }
  std::uint16_t reached_port() const { return reached_.port; }
  // The job's, where munge has brought it.
  std::optional<std::string> secret() const { return munge_ ? munge_->secret() : std::nullopt; }

 private:
  struct Target {
    std::string address;
    std::uint16_t port = 0;
  };

  void found(MeetingPlace::Way way);
  void try_next();
  void ask_by_munge(const Target& target, std::unique_ptr<net::Stream> stream);
  void connected(const Target& target, std::unique_ptr<net::Stream> stream);
  void received(std::span<const std::uint8_t> bytes);
  void ended(locate::Tried how);
  void doubt();
  void believe();
  void broken(std::string why);

  net::Loop& loop_;
  const MeetingSettings& settings_;
  Handlers handlers_;
  std::unique_ptr<MungeTrust> munge_;  // in a Slurm step without a secret of the user's
  std::unique_ptr<MeetingPlace> place_;
  MeetingPlace::Way way_;
  std::vector<Target> targets_;  // of the way, that have not been tried; the next one is the last
  Target reached_;
  bool at_home_ = false;
  bool was_connected_ = false;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  // Of who accepts us and says nothing, which PyTorch's store does.
  net::Timer doubt_;
  std::unique_ptr<StoreProbe> probe_;
  std::unique_ptr<protocol::FrameReader> first_words_;  // of who may be a stranger, until its first frame
  std::unique_ptr<MungeExchange> exchange_;
  std::uint64_t attempt_ = 0;
  net::LingeringConnections lingering_;
  // Of the way, until it is known how the attempt at it ends.
  bool trying_ = false;
  bool all_refused_ = true;
};

}  // namespace elastic::transport
