#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/locate/claim.h"
#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/meeting_settings.h"
#include "rendezvous/transport/munge_gate.h"
#include "src/net/loop.h"

namespace elastic::transport {

// How long the endpoint's name may take to be resolved, in one attempt.
inline constexpr std::int64_t kResolveMs = 4'000;

// Where the nodes of a job meet. It says where the coordinator is, and opens it in this process where it is to be here.
class MeetingPlace {
 public:
  // Where a coordinator may be.
  struct Way {
    std::vector<std::string> addresses = {};  // numeric, in the order in which they are to be tried
    std::vector<std::uint16_t> ports = {};    // of each address, the same
    bool home = false;                        // 127.0.0.1 among them leads to the coordinator in this process
    std::string problem = {};                 // why there is none, as a clause
    bool hopeless = false;                    // and time won't mend that
  };
  using OnFound = std::function<void(Way)>;
  using ToStore = std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)>;
  using OnHosting = std::function<void(CoordinatorServer&)>;

  virtual ~MeetingPlace() = default;
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  // Looks for the coordinator; `on_found` is called once, in a later turn of the loop, unless stop() comes before.
  // `belongs`: this node is in a job that has had one.
  virtual void find(bool belongs, OnFound on_found) = 0;
  virtual void stop() = 0;
  // A connection to this port of the last way is there; what answers may still be somebody else.
  virtual void reached(std::uint16_t /*port*/) {}
  // How the attempt at the last way has ended.
  virtual void tried(locate::Tried) {}
  // Whether who answers at the way may be somebody else without the user having erred.
  virtual bool may_be_stale() const { return false; }
  // Takes back what says that the coordinator is in this process, as far as anything does; `done` is called when that
  // has been tried, perhaps at once.
  virtual void withdraw(std::function<void()> done) { done(); }
  // A thread of it waits for what does not answer, and keeps this process from ending.
  virtual bool hangs() const { return false; }

  // The coordinator in this process, if it is here.
  CoordinatorServer* server() { return server_.get(); }
  // Nodes are let in by it, from the next coordinator on; it outlives this, and knows whether munged answers.
  void trust(MungeTrust& munge) { gate_ = std::make_unique<MungeGate>(loop_, munge), munge_ = &munge; }

 protected:
  // Settings outlive it.
  MeetingPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting);
  // Opens the coordinator at a port of all addresses, 0: a free one. Fails as CoordinatorServer::open does.
  Status open_server(std::uint16_t port);
  // Nobody has been told of it.
  void close_server() { server_.reset(); }
  // Another has taken its place, says the clause. Who was told of it may ask it on, until another is told.
  void retire_server(const std::string& why);
  // Tells the user, and who wants to know, that it is here from now on: "this node hosts the coordinator at port 29400:
  // node0 is 10.0.0.5".
  void tell_hosting(const std::string& does, const std::string& where, const std::string& reason);

  net::Loop& loop_;
  const MeetingSettings& settings_;

 private:
  ToStore to_store_;
  OnHosting on_hosting_;
  MungeTrust* munge_ = nullptr;
  std::unique_ptr<MungeGate> gate_;
  std::unique_ptr<CoordinatorServer> server_;
  std::unique_ptr<CoordinatorServer> retired_;  // the last
};

// The one that the settings name.
std::unique_ptr<MeetingPlace> make_meeting_place(net::Loop& loop, const MeetingSettings& settings,
                                                 MeetingPlace::ToStore to_store, MeetingPlace::OnHosting on_hosting);

}  // namespace elastic::transport
