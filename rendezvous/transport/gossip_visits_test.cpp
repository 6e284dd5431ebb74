// What a server does with leader gossip, over real connections.
#include "rendezvous/transport/gossip_visits.h"

#include <doctest/doctest.h>

#include <span>
#include <variant>

#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/random_nonce.h"
#include "src/net/local_host.h"

using namespace elastic;
using namespace elastic::transport;
using protocol::Gossip;
using protocol::Introduction;

namespace {

constexpr std::int64_t kPatienceMs = 10'000;

// A process that has gossiped about its coordinator, and keeps the gossip that it gets.
struct Gossiped {
  explicit Gossiped(net::Loop& with_loop) : loop(with_loop) {
    auto opened = net::Listener::open(loop, std::string(kLoopback), 0,
                                      [this](std::unique_ptr<net::Stream> accepted) { take(std::move(accepted)); });
    REQUIRE(opened.has_value());
    listener = std::move(*opened);
  }
  void take(std::unique_ptr<net::Stream> accepted) {
    stream = std::move(accepted);
    stream->start({.on_data =
                       [this](std::span<const std::uint8_t> bytes) {
                         protocol::ByteString reply;
                         for (const auto& event : session.receive(bytes, reply)) {
                           const auto* found = std::get_if<protocol::CoordinatorSession::Introduced>(&event);
                           if (found == nullptr) continue;
                           heard = found->introduction;
                           loop.stop();
                         }
                         stream->write({reply.begin(), reply.end()});
                       },
                   .on_end = {}});
  }

  net::Loop& loop;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Stream> stream;
  protocol::CoordinatorSession session{"night", random_nonce()};
  std::optional<Introduction> heard;
};

Introduction announcing(protocol::Incarnation incarnation, std::uint16_t port, protocol::RoundNumber round) {
  return {"j", 5, incarnation, 3, Gossip{std::string(kLoopback), port, 500, round}};
}

}  // namespace

TEST_CASE("a server without a coordinator tells the weaker of two starts of a job where the other one is") {
  net::Loop loop;
  Gossiped weaker(loop);
  auto server = CoordinatorServer::open(loop, {.address = std::string(kLoopback), .secret = "night", .lease = {5'000}});
  REQUIRE(server.has_value());
  const Introduction stronger = announcing(77, 4711, 2);
  GossipVisits visits(loop);
  const auto say = [&](const Introduction& what) {
    visits.go({std::string(kLoopback)}, (*server)->port(), "night", [what] { return what; });
  };
  say(stronger);
  // One visit at a time: the second one begins when the first one is over.
  net::Timer again(loop);
  std::function<void()> repeat = [&] {
    say(announcing(78, weaker.listener->port(), 0));
    again.start(20, repeat);
  };
  again.start(20, repeat);
  net::Timer patience(loop);
  patience.start(kPatienceMs, [&] { loop.stop(); });
  loop.run();
  REQUIRE(weaker.heard.has_value());
  CHECK(*weaker.heard == stronger);
}
