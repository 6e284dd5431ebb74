#include "cli/run/order_only.h"

#include <signal.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/http_exchange.h"
#include "cli/run/order_desk.h"
#include "rendezvous/protocol/proof.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/http/response.h"
#include "src/output/write_all.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"

namespace elastic::run {
namespace {

// The header of an order that nothing has to be proven for.
constexpr const char* kNoProof = "1";

class Errand {
 public:
  explicit Errand(const OrderRequest& request) : request_(request) {}

  int run() {
    const process::SignalSource signals(loop_, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                        [this](const process::ReceivedSignal& signal) {
                                          exit_status_ = 128 + signal.number;
                                          loop_.stop();
                                        });
    order_at(request_.place);
    loop_.run();
    exchanges_.clear();
    return exit_status_;
  }

 private:
  // Each place has a challenge of its own.
  void order_at(const HttpPlace& place) {
    if (request_.secret.empty()) return send(place, kNoProof);
    ask(place, net::http::get_request(place.text(), kChallengePath, ""), [this, place](const HttpAnswer& answer) {
      if (answer.status != 200) return refuse(answer);
      const std::string target = order_target(request_.order, request_.run_id);
      send(place, protocol::order_proof(request_.secret, trim(answer.body), target));
    });
  }

  void send(const HttpPlace& place, const std::string& proof) {
    const std::string target = order_target(request_.order, request_.run_id);
    ask(place, net::http::post_request(place.text(), target, proof), [this](const HttpAnswer& answer) {
      const auto led_to = answer.status == 307 ? place_of_url(answer.location) : std::nullopt;
      if (led_to && hops_++ < kMostHops) return order_at(*led_to);
      if (answer.status != 200) return refuse(answer);
      accepted(answer);
    });
  }

  void ask(const HttpPlace& place, std::string request, std::function<void(const HttpAnswer&)> answered) {
    // An exchange must not be destroyed by its own answer.
    exchanges_.push_back(std::make_unique<HttpExchange>(
        loop_, place, std::move(request), [this, answered = std::move(answered)](const Result<HttpAnswer>& answer) {
          if (!answer) return refuse(answer.error());
          answered(*answer);
        }));
  }

  void accepted(const HttpAnswer& answer) {
    const int error = output::write_all(STDOUT_FILENO, format("{}\n", shown(answer)));
    // The order stands, whoever reads of it.
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
  std::vector<std::unique_ptr<HttpExchange>> exchanges_;
  int hops_ = 0;
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
