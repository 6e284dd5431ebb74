#include "cli/run/coordinator_only.h"

#include <signal.h>

#include <memory>
#include <span>
#include <utility>

#include "cli/run/check_reporter.h"
#include "cli/run/status_host.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/port_holder.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"

namespace elastic::run {

int serve_coordinator(const transport::RendezvousSettings& rendezvous) {
  if (const Status prepared = process::prepare_process("--coordinator-only", 0); !prepared) {
    log::critical(prepared.error().text());
    return 1;
  }
  net::Loop loop;
  auto server = transport::CoordinatorServer::open(
      loop,
      {.address = {}, .port = rendezvous.port, .secret = rendezvous.secret, .lease = {rendezvous.loss_timeout_ms}});
  if (!server) {
    Error error = server.error();
    if (const auto holder = process::port_holder(rendezvous.port)) error.reason += " by " + *holder;
    error.remedy = "end it, or choose another port with --rdzv-endpoint";
    log::critical(error.text());
    return 1;
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
  const process::SignalSource signals(loop, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                      [&](const process::ReceivedSignal&) { loop.stop(); });
  log::answer("coordinator_listens", format("the coordinator listens on port {}", (*server)->port()),
              {{"port", (*server)->port()}});
  loop.run();
  return 0;
}

}  // namespace elastic::run
