#include "cli/run/commands.h"

#include <signal.h>
#include <unistd.h>

#include <string>

#include "cli/run/control_api.h"
#include "cli/run/proven_request.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/loop.h"
#include "src/output/write_all.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"

namespace elastic::run {
namespace {

class Errand {
 public:
  explicit Errand(const OrderRequest& request) : request_(request) {}

  int run() {
    const process::SignalSource signals(loop_, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                        [this](const process::ReceivedSignal& signal) {
                                          exit_status_ = 128 + signal.number;
                                          loop_.stop();
                                        });
    const ProvenRequest order(
        loop_,
        {.place = request_.place, .secret = request_.secret, .target = order_target(request_.order, request_.run_id)},
        [this](const Result<HttpAnswer>& answer) {
          if (!answer) return refuse(answer.error());
          if (answer->status != 200) return refuse(*answer);
          accepted(*answer);
        });
    loop_.run();
    return exit_status_;
  }

 private:
  void accepted(const HttpAnswer& answer) {
    const int error = output::write_all(STDOUT_FILENO, format("{}\n", shown(answer)));
    // The order stands, whether this is read or not.
    if (error != 0) log::warning(Error{"stdout", errno_text(error), ""}.text());
    exit_status_ = 0;
    loop_.stop();
  }

  void refuse(const HttpAnswer& answer) { refuse(Error{request_.input, shown(answer), ""}); }
  void refuse(const Error& error) {
    log::critical(error.text());
    loop_.stop();
  }
  static std::string shown(const HttpAnswer& answer) {
    constexpr std::size_t kMostText = 4000;
    return printable(trim(answer.body), kMostText);
  }

  const OrderRequest& request_;
  net::Loop loop_;
  int exit_status_ = 1;
};

}  // namespace

int give_order(const OrderRequest& request) {
  if (const Status prepared = process::prepare_process(request.input, 0); !prepared) {
    log::critical(prepared.error().text());
    return 1;
  }
  return Errand(request).run();
}

}  // namespace elastic::run
