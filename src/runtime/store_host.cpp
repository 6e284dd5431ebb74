#include "src/runtime/store_host.h"

#include "src/base/text.h"
#include "src/process/port_holder.h"

namespace elastic::runtime {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

Error port_error(Error error, std::uint16_t port) {
  const auto holder = process::port_holder(port);
  if (!holder) return error;
  error.reason += " by " + *holder;
  error.remedy = "end it, choose another --master-port, or leave the port out (one node needs none)";
  return error;
}

}  // namespace

StoreHost::StoreHost(net::Loop& loop, StoreSettings settings)
    : loop_(loop), settings_(std::move(settings)) {}

Result<protocol::StoreEndpoint> StoreHost::open() {
  const auto open_server = [&](const char* address) -> Result<std::uint16_t> {
    auto server = store::Server::open(loop_, address, settings_.port);
    if (!server) return std::unexpected(port_error(server.error(), settings_.port));
    server_ = std::move(*server);
    return server_->port();
  };
  Result<std::uint16_t> port = settings_.port;
  switch (settings_.kind) {
    case StoreSettings::Kind::kFreshLoopback:
      port = open_server(kLoopback);
      break;
    case StoreSettings::Kind::kFixedPort:
      if (server_) {
        server_->reset();  // a stranger may have written since close()
      } else {
        port = open_server("");
      }
      break;
    case StoreSettings::Kind::kByWorker:
      // Whoever takes the port before rank 0's worker does, wins; torchrun has the same gap.
      port = open_server(kLoopback);
      server_.reset();
      break;
  }
  if (!port) return std::unexpected(port.error());
  return protocol::StoreEndpoint{settings_.master_addr, *port};
}

void StoreHost::close() {
  if (server_ && settings_.kind == StoreSettings::Kind::kFixedPort) {
    server_->reset();
  } else {
    server_.reset();
  }
}

}  // namespace elastic::runtime
