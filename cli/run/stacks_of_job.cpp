#include "cli/run/stacks_of_job.h"

#include <signal.h>

#include <string>
#include <utility>

#include "cli/run/control_api.h"
#include "cli/run/proven_request.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/limits.h"
#include "src/net/loop.h"
#include "src/process/signal_source.h"

namespace elastic::run {
namespace {

Result<stacks::StacksDocument> document_of(const HttpAnswer& answer, const std::string& input) {
  constexpr std::size_t kMostText = 4000;
  if (answer.status == 404 && answer.body.starts_with("not found")) {
    return fail(input, "the elastic-run there is of a version without stacks", "ask with --status, or use a newer one");
  }
  if (answer.status != 200) return fail(input, printable(trim(answer.body), kMostText), "");
  auto document = stacks::read_document(answer.body);
  if (!document) return fail(input, document.error().reason, kNotOurs);
  return document;
}

}  // namespace

std::expected<stacks::StacksDocument, int> stacks_of_job(const StacksRequest& request) {
  net::Loop loop;
  std::expected<stacks::StacksDocument, int> out = std::unexpected(1);
  const process::SignalSource signals(loop, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                      [&](const process::ReceivedSignal& signal) {
                                        out = std::unexpected(128 + signal.number);
                                        loop.stop();
                                      });
  const ProvenRequest question(loop,
                               {.place = *request.place,
                                .secret = request.secret,
                                .target = stacks_target(request.run_id),
                                .by = {.option = "--stacks", .answer_ms = limits::kHttpLaterMs}},
                               [&](const Result<HttpAnswer>& answer) {
                                 auto document =
                                     answer ? document_of(*answer, request.input) : std::unexpected(answer.error());
                                 if (document) {
                                   out = std::move(*document);
                                 } else {
                                   log::critical(document.error().text());
                                 }
                                 loop.stop();
                               });
  loop.run();
  return out;
}

}  // namespace elastic::run
