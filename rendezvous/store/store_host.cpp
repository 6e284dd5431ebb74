#include "rendezvous/store/store_host.h"

#include <utility>

#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/process/port_holder.h"

namespace elastic::store {
namespace {

Error port_error(Error error, std::uint16_t port) {
  const auto holder = process::port_holder(port);
  if (!holder) return error;
  error.reason += " by " + *holder;
  error.remedy = "end it, choose another --master-port, or leave the port out (one node needs none)";
  return error;
}

}  // namespace

StoreHost::StoreHost(net::Loop& loop, StoreSettings settings) : loop_(loop), settings_(std::move(settings)) {}

Result<std::uint16_t> StoreHost::listen(const std::string& address) {
  const std::vector<std::uint16_t>& choices = settings_.port_choices;
  for (std::size_t i = 0; settings_.port == 0 && i < choices.size(); ++i) {
    auto server = store::Server::open(loop_, address, choices[next_choice_++ % choices.size()]);
    if (!server) continue;
    end_server();
    server_ = std::move(*server);
    return server_->port();
  }
  auto server = store::Server::open(loop_, address, settings_.port);
  if (!server) return std::unexpected(port_error(server.error(), settings_.port));
  end_server();
  server_ = std::move(*server);
  return server_->port();
}

// By the name `localhost` clients try each of its addresses, the one of IPv6 first.
Result<std::uint16_t> StoreHost::listen_at_fixed_port() {
  if (!settings_.of_loopback) return listen("");
  const bool by_name = !is_loopback(settings_.master_addr);
  auto port = listen(by_name ? kLoopback : settings_.master_addr);
  if (!port || !by_name || !net::has_address("::1")) return port;
  if (Status also = server_->listen_also("::1"); !also) {
    end_server();
    return std::unexpected(port_error(also.error(), settings_.port));
  }
  return port;
}

Result<protocol::StoreEndpoint> StoreHost::open(store::Admission admission) {
  Result<std::uint16_t> port = settings_.port;
  switch (settings_.kind) {
    case StoreSettings::Kind::kFreshLoopback: port = listen(kLoopback); break;
    case StoreSettings::Kind::kFixedPort:
      if (server_) {
        server_->reset();  // another client may have written since close()
      } else {
        port = listen_at_fixed_port();
      }
      if (server_ && !settings_.of_loopback && !settings_.admits_all) {
        server_->admit(store::Admission(net::own_addresses(), store::Admission::Whose::kHost));
      }
      break;
    case StoreSettings::Kind::kByWorker:
      // Another process may take the port before rank 0's worker does; torchrun has the same gap.
      port = listen(settings_.of_loopback ? kLoopback : "");
      server_.reset();  // it was opened only to find a free port
      break;
    case StoreSettings::Kind::kFreshPort:
      port = listen("");
      if (server_ && !settings_.admits_all) server_->admit(std::move(admission));
      break;
    case StoreSettings::Kind::kAtEndpoint:
      end_server();
      server_ = store::Server::without_port(loop_);
      if (!settings_.admits_all) server_->admit(std::move(admission));
      break;
  }
  if (!port) return std::unexpected(port.error());
  has_served_ = has_served_ || server_ != nullptr;
  return protocol::StoreEndpoint{settings_.master_addr, *port};
}

void StoreHost::adopt(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
  if (server_) return server_->adopt(std::move(stream), bytes);
  if (std::exchange(told_of_strangers_, true)) return;
  log::warning("store_stranger",
               format("{} speaks PyTorch's TCPStore protocol, but no round's store is open here: its connection is "
                      "closed (is it a torchrun, or a worker that has outlived its round?)",
                      stream->peer()));
}

void StoreHost::close() {
  if (server_ && settings_.kind == StoreSettings::Kind::kFixedPort) {
    server_->reset();
  } else {
    end_server();
  }
}

void StoreHost::end_server() {
  if (!server_) return;
  const store::Server::Stats stats = server_->stats();
  for (std::size_t i = 0; i < store::kOps; ++i) operations_[i] += stats.operations[i];
  server_.reset();
}

void StoreHost::ask_for_dumps() {
  if (server_) server_->ask_for_dumps();
}

std::optional<StoreView> StoreHost::view(int world_size) const {
  if (!server_) return {};
  return server_->view(world_size);
}

status::Store StoreHost::status() const {
  status::Store out;
  if (!has_served_) return out;
  const store::Server::Stats stats = server_ ? server_->stats() : store::Server::Stats{};
  for (std::size_t i = 0; i < store::kOps; ++i) {
    const auto op = static_cast<store::Op>(i);
    if (op == store::Op::kValidate) continue;  // it is no operation
    out.operations[std::string(store::name_of(op))] = static_cast<std::int64_t>(operations_[i] + stats.operations[i]);
  }
  out.connections = static_cast<std::int64_t>(stats.connections);
  out.keys = static_cast<std::int64_t>(stats.keys);
  out.bytes = static_cast<std::int64_t>(stats.store_bytes);
  return out;
}

}  // namespace elastic::store
