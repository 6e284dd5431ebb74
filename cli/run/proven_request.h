#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/run/http_exchange.h"
#include "cli/run/http_place.h"
#include "src/base/result.h"
#include "src/net/loop.h"

namespace elastic::run {

// A POST to an elastic-run that proves the job's secret, where there is one, and follows redirects to the job's
// coordinator: an operator's order, or a question for stacks.
class ProvenRequest {
 public:
  struct What {
    HttpPlace place = {};
    std::string secret = {};  // the job's; empty: the job has none
    std::string target = {};  // path and query
    AskedBy by = {};
  };
  // The last answer, whatever its status; or why there is none.
  using OnDone = std::function<void(const Result<HttpAnswer>&)>;

  // `on_done` is called once, in a later turn of the loop; it must not destroy this object.
  ProvenRequest(net::Loop& loop, What what, OnDone on_done);

 private:
  void send_to(const HttpPlace& place);
  void send(const HttpPlace& place, const std::string& proof);
  void ask(const HttpPlace& place, std::string request, AskedBy by, std::function<void(const HttpAnswer&)> answered);

  net::Loop& loop_;
  What what_;
  OnDone on_done_;
  std::vector<std::unique_ptr<HttpExchange>> exchanges_;
  int hops_ = 0;
};

}  // namespace elastic::run
