#include "cli/run/store_only.h"

#include <signal.h>

#include "rendezvous/store/store_host.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"

namespace elastic::run {

int serve_store(std::uint16_t port) {
  if (const Status prepared = process::prepare_process("--store-only", 0); !prepared) {
    log::critical(prepared.error().text());
    return 1;
  }
  net::Loop loop;
  store::StoreHost store(
      loop, {.kind = store::StoreSettings::Kind::kFixedPort, .port = port, .of_loopback = false, .admits_all = true});
  const auto endpoint = store.open();
  if (!endpoint) {
    Error error = endpoint.error();
    if (!error.remedy.empty()) error.remedy = "end it, or choose another --port";
    log::critical(error.text());
    return 1;
  }
  const process::SignalSource signals(loop, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                      [&](const process::ReceivedSignal&) { loop.stop(); });
  log::answer("store_listens", format("the worker store listens on port {}", endpoint->port),
              {{"port", endpoint->port}});
  loop.run();
  return 0;
}

}  // namespace elastic::run
