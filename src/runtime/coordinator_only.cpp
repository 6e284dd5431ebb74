#include "src/runtime/coordinator_only.h"

#include <signal.h>

#include <memory>
#include <span>
#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/port_holder.h"
#include "src/process/signal_source.h"
#include "src/runtime/check_reporter.h"
#include "src/runtime/coordinator_server.h"
#include "src/runtime/process_state.h"
#include "src/runtime/status_host.h"

namespace elastic::runtime {

int serve_coordinator(const MeetingSettings& meeting) {
  if (const Status prepared = prepare_process("--coordinator-only", 0); !prepared) {
    log::critical(prepared.error().text());
    return 1;
  }
  net::Loop loop;
  auto server = CoordinatorServer::open(
      loop, {.address = {}, .port = meeting.port, .secret = meeting.secret, .lease = {meeting.loss_timeout_ms}});
  if (!server) {
    Error error = server.error();
    if (const auto holder = process::port_holder(meeting.port)) error.reason += " by " + *holder;
    error.remedy = "end it, or choose another port with --rdzv-endpoint";
    log::critical(error.text());
    return 1;
  }
  CheckReporter reporter;
  StatusHost status(loop, meeting.secret);
  status.set_coordinator([&] { return (*server)->status(); });
  (*server)->on_judged([&](const std::string& job, const job::CheckJudged& check) {
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

}  // namespace elastic::runtime
