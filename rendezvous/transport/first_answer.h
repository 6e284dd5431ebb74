#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rendezvous/protocol/frame_reader.h"
#include "rendezvous/transport/dialler.h"
#include "rendezvous/transport/store_probe.h"
#include "src/net/loop.h"

namespace elastic::transport {

// Watches for the first bytes of a server that has taken a connection: whether it is a coordinator at all.
class FirstAnswer {
 public:
  explicit FirstAnswer(net::Loop& loop) : loop_(loop), first_bytes_(loop), silence_(loop) {}

  // A stale entry may have led to any kind of server. `on_silent` is called where nothing comes in time.
  void doubt(std::function<void()> on_silent);
  // A coordinator answers at once. If nothing has come after a second, a PyTorch store may listen there: it is asked on
  // a connection of its own, and if it answers, `on_store` gets a store's first bytes, by which the session names it.
  void probe_if_silent(const Target& target, std::function<void(std::span<const std::uint8_t>)> on_store);
  // These bytes have come. Returns who the server is, as a clause, if it was doubted and is no coordinator.
  std::optional<std::string> stranger_in(std::span<const std::uint8_t> bytes);
  // A server that was doubted has sent a frame, and believe() was not called since.
  bool has_come() const { return has_come_; }
  // The server is doubted no more.
  void believe();
  void stop_probing();

 private:
  net::Loop& loop_;
  std::unique_ptr<protocol::FrameReader> frame_;  // while the server is doubted
  net::Timer first_bytes_;
  bool has_come_ = false;
  net::Timer silence_;
  std::unique_ptr<StoreProbe> probe_;
};

}  // namespace elastic::transport
