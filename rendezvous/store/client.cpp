#include "rendezvous/store/client.h"

#include <algorithm>

#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::store {

Client::Client(net::Loop& loop, const std::string& address, std::uint16_t port, const ClientBounds& bounds)
    : loop_(loop),
      bounds_(bounds),
      what_(format("store at port {} of {}", port, printable(address))),
      timer_(loop),
      soon_(loop) {
  connector_ = std::make_unique<net::Connector>(loop, address, port, bounds.connect_ms,
                                                [this](auto stream) { connected(std::move(stream)); });
}

Client::~Client() { *alive_ = false; }

void Client::get(std::string_view key, Done done) {
  std::string request;
  put_get(request, key);
  ask(std::move(request), key.size(), 0, std::move(done));
}

void Client::compare_set(std::string_view key, std::string_view expected, std::string_view desired, Done done) {
  std::string request;
  put_compare_set(request, key, expected, desired);
  ask(std::move(request), key.size(), std::max(expected.size(), desired.size()), std::move(done));
}

std::optional<Error> Client::why_refused(std::size_t bytes, std::size_t key_bytes, std::size_t value_bytes) const {
  if (ended_) return ended_;
  const auto too_long = [this](std::string_view what, std::size_t size, std::size_t limit) {
    return error(format("a {} of {} bytes; at most {} are allowed", what, size, limit));
  };
  if (key_bytes > limits::kStoreKeyBytes) return too_long("key", key_bytes, limits::kStoreKeyBytes);
  if (value_bytes > limits::kStorePayloadBytes) return too_long("value", value_bytes, limits::kStorePayloadBytes);
  const std::size_t unsent = stream_ ? stream_->unsent_bytes() : unsent_.size();
  if (unsent + bytes <= bounds_.unsent_bytes) return {};
  return error(format("it does not take what it is sent; {} bytes are waiting", unsent));
}

void Client::ask(std::string request, std::size_t key_bytes, std::size_t value_bytes, Done done) {
  if (auto refused = why_refused(request.size(), key_bytes, value_bytes)) {
    return fail_later(std::move(done), std::move(*refused));
  }
  if (asked_.empty()) heard_ms_ = loop_.now_ms();
  asked_.push_back(std::move(done));
  reader_.expect();
  if (!stream_) {
    unsent_ += request;
    return;
  }
  stream_->write(std::move(request));
  start_timer();
}

void Client::connected(Result<std::unique_ptr<net::Stream>> stream) {
  connector_.reset();
  if (!stream) return end(std::move(stream.error()));
  stream_ = std::move(*stream);
  stream_->start({.on_data = [this](Bytes bytes) { deliver(bytes); },
                  .on_end = [this] { end(error("it closed the connection")); }});
  std::string hello;
  put_hello(hello);
  stream_->write(hello + std::exchange(unsent_, {}));
  heard_ms_ = loop_.now_ms();
  start_timer();
}

void Client::deliver(Bytes bytes) {
  const auto alive = alive_;
  heard_ms_ = loop_.now_ms();
  for (;;) {
    const ReplyReader::Step step = reader_.next(bytes);
    if (step == ReplyReader::Step::kNeedMore) break;
    if (step == ReplyReader::Step::kNonsense) return end(error("its answer makes no sense: " + reader_.reason()));
    const Done done = std::move(asked_.front());
    asked_.pop_front();
    done(std::move(reader_.text()));
    if (!*alive || !stream_) return;
  }
  start_timer();
}

void Client::look_at_time() {
  if (loop_.now_ms() - heard_ms_ < bounds_.answer_ms) return start_timer();
  end(error(format("it has not answered for {} ms", bounds_.answer_ms)));
}

void Client::start_timer() {
  if (asked_.empty()) return timer_.stop();
  const std::int64_t late_ms = heard_ms_ + bounds_.answer_ms;
  timer_.start(std::max<std::int64_t>(0, late_ms - loop_.now_ms()), [this] { look_at_time(); });
}

void Client::end(Error error) {
  const auto alive = alive_;
  ended_ = std::move(error);
  stream_.reset();
  connector_.reset();
  timer_.stop();
  const Error told = *ended_;
  const std::deque<Done> open = std::exchange(asked_, {});
  for (const Done& done : open) {
    done(std::unexpected(told));
    if (!*alive) return;
  }
}

void Client::fail_later(Done done, Error error) {
  failed_.emplace_back(std::move(done), std::move(error));
  soon_.start(0, [this] { tell_failed(); });
}

void Client::tell_failed() {
  const auto alive = alive_;
  while (!failed_.empty()) {
    const auto [done, error] = std::move(failed_.front());
    failed_.pop_front();
    done(std::unexpected(error));
    if (!*alive) return;
  }
}

}  // namespace elastic::store
