// --store-only and --coordinator-only.
#include <signal.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cli/run/check_reporter.h"
#include "cli/run/commands.h"
#include "cli/run/status_host.h"
#include "rendezvous/store/store_host.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/port_holder.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"

namespace elastic::run {
namespace {

int refuse(const Error& error) {
  log::critical(error.text());
  return 1;
}

process::SignalSource stop_on_signal(net::Loop& loop) {
  return {loop, {SIGTERM, SIGINT, SIGHUP, SIGQUIT}, [&loop](const process::ReceivedSignal&) { loop.stop(); }};
}

}  // namespace

int serve_store(std::uint16_t port) {
  if (const Status prepared = process::prepare_process("--store-only", 0); !prepared) return refuse(prepared.error());
  net::Loop loop;
  store::StoreHost store(
      loop, {.kind = store::StoreSettings::Kind::kFixedPort, .port = port, .of_loopback = false, .admits_all = true});
  const auto endpoint = store.open();
  if (!endpoint) {
    Error error = endpoint.error();
    if (!error.remedy.empty()) error.remedy = "end it, or choose another --port";
    return refuse(error);
  }
  const process::SignalSource signals = stop_on_signal(loop);
  log::answer("store_listens", format("the worker store listens on port {}", endpoint->port),
              {{"port", endpoint->port}});
  loop.run();
  return 0;
}

int serve_coordinator(const transport::RendezvousSettings& rendezvous) {
  if (const Status prepared = process::prepare_process("--coordinator-only", 0); !prepared) {
    return refuse(prepared.error());
  }
  net::Loop loop;
  auto server = transport::CoordinatorServer::open(
      loop,
      {.address = {}, .port = rendezvous.port, .secret = rendezvous.secret, .lease = {rendezvous.loss_timeout_ms}});
  if (!server) {
    Error error = server.error();
    if (const auto holder = process::port_holder(rendezvous.port)) error.reason += " by " + *holder;
    error.remedy = "end it, or choose another port with --rdzv-endpoint";
    return refuse(error);
  }
  CheckReporter reporter;
  StatusHost status(loop, rendezvous.secret, rendezvous.status_open);
  status.set_coordinator(server->get());
  (*server)->on_judged([&](const std::string& job, const coordinator::CheckJudged& check) {
    status.checked(job, reporter.judged(job, check));
  });
  (*server)->on_http([&](std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
    status.adopt(std::move(stream), bytes);
  });
  const process::SignalSource signals = stop_on_signal(loop);
  log::answer("coordinator_listens", format("the coordinator listens on port {}", (*server)->port()),
              {{"port", (*server)->port()}});
  loop.run();
  return 0;
}

}  // namespace elastic::run
