#include "cli/run/http_exchange.h"

#include <algorithm>
#include <utility>

#include "src/base/screen_text.h"
#include "src/base/strangers.h"
#include "src/base/text.h"
#include "src/net/http/response.h"

namespace elastic::run {
namespace {

constexpr std::int64_t kResolveMs = 5'000;
constexpr std::int64_t kConnectMs = 5'000;

}  // namespace

HttpExchange::HttpExchange(net::Loop& loop, HttpPlace place, std::string request, OnDone on_done, AskedBy by)
    : loop_(loop),
      place_(std::move(place)),
      request_(std::move(request)),
      on_done_(std::move(on_done)),
      by_(std::move(by)),
      resolver_(loop),
      patience_(loop) {
  resolver_.resolve(place_.host, kResolveMs, [this](Result<std::vector<std::string>> found) {
    if (!found) return fail_with(found.error().reason, "name the host that has the coordinator, or --http-port");
    addresses_ = std::move(*found);
    std::ranges::reverse(addresses_);
    try_next();
  });
}

void HttpExchange::try_next() {
  if (addresses_.empty()) {
    return fail_with(problem_,
                     "is a job with that endpoint running? name its --rdzv-endpoint, or a node's --http-port");
  }
  const std::string address = std::move(addresses_.back());
  addresses_.pop_back();
  connector_ = std::make_unique<net::Connector>(loop_, address, place_.port, kConnectMs,
                                                [this](Result<std::unique_ptr<net::Stream>> stream) {
                                                  const std::unique_ptr<net::Connector> done = std::move(connector_);
                                                  if (stream) return ask(std::move(*stream));
                                                  problem_ = stream.error().reason;
                                                  try_next();
                                                });
}

void HttpExchange::ask(std::unique_ptr<net::Stream> stream) {
  stream_ = std::move(stream);
  stream_->start({.on_data = [this](std::span<const std::uint8_t> bytes) { read(bytes); },
                  .on_end = [this] { judge(reader_.end()); }});
  stream_->write(std::move(request_));
  patience_.start(by_.answer_ms, [this] {
    fail_with(format("it accepted the connection, and did not answer within {} s", by_.answer_ms / 1000), kNotOurs);
  });
}

void HttpExchange::read(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!std::exchange(has_spoken_, true)) {
    const auto stranger = recognised(text);
    if (stranger != Stranger::kHttpAnswer && stranger != Stranger::kHttp) {
      return fail_with(stranger ? format("it speaks {}", name_of(*stranger))
                                : "it does not speak HTTP (" + first_bytes_text(text) + ")",
                       kNotOurs);
    }
  }
  judge(reader_.read_bytes(bytes));
}

void HttpExchange::judge(net::http::ResponseReader::Step step) {
  using Step = net::http::ResponseReader::Step;
  if (step == Step::kNeedMore) return;
  if (step == Step::kRefused) return fail_with(reader_.problem(), kNotOurs);
  if (reader_.server() != net::http::kServerName) {
    return fail_with(format("it is not elastic-run (the HTTP server calls itself {})",
                            reader_.server().empty() ? "nothing" : printable(reader_.server(), 60)),
                     kNotOurs);
  }
  done(HttpAnswer{reader_.status(), reader_.location(), reader_.body()});
}

void HttpExchange::fail_with(std::string reason, std::string remedy) {
  done(fail(format("{}={}", by_.option, place_.text()), std::move(reason), std::move(remedy)));
}

void HttpExchange::done(Result<HttpAnswer> result) {
  patience_.stop();
  connector_.reset();
  stream_.reset();
  if (const OnDone call = std::exchange(on_done_, nullptr)) call(std::move(result));
}

}  // namespace elastic::run
