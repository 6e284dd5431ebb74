#include "cli/run/proven_request.h"

#include <utility>

#include "cli/run/control_api.h"
#include "rendezvous/protocol/proof.h"
#include "src/base/text.h"
#include "src/net/http/response.h"

namespace elastic::run {
namespace {

// The header of a request that nothing has to be proven for.
constexpr const char* kNoProof = "1";

}  // namespace

ProvenRequest::ProvenRequest(net::Loop& loop, What what, OnDone on_done)
    : loop_(loop), what_(std::move(what)), on_done_(std::move(on_done)) {
  send_to(what_.place);
}

// Each place has a challenge of its own.
void ProvenRequest::send_to(const HttpPlace& place) {
  if (what_.secret.empty()) return send(place, kNoProof);
  ask(place, net::http::get_request(place.text(), kChallengePath, ""), {.option = what_.by.option},
      [this, place](const HttpAnswer& answer) {
        if (answer.status != 200) return on_done_(answer);
        send(place, protocol::order_proof(what_.secret, trim(answer.body), what_.target));
      });
}

void ProvenRequest::send(const HttpPlace& place, const std::string& proof) {
  ask(place, net::http::post_request(place.text(), what_.target, proof), what_.by, [this](const HttpAnswer& answer) {
    const auto led_to = answer.status == 307 ? place_of_url(answer.location) : std::nullopt;
    if (led_to && hops_++ < kMostHops) return send_to(*led_to);
    on_done_(answer);
  });
}

void ProvenRequest::ask(const HttpPlace& place, std::string request, AskedBy by,
                        std::function<void(const HttpAnswer&)> answered) {
  // An exchange must not be destroyed by its own answer.
  exchanges_.push_back(std::make_unique<HttpExchange>(
      loop_, place, std::move(request),
      [this, answered = std::move(answered)](const Result<HttpAnswer>& answer) {
        if (!answer) return on_done_(answer);
        answered(*answer);
      },
      std::move(by)));
}

}  // namespace elastic::run
