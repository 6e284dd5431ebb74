#include "rendezvous/store/client.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

template <class... Parameters, class... Arguments>
std::string made_by(void (*put)(std::string&, Parameters...), const Arguments&... arguments) {
  std::string out;
  put(out, arguments...);
  return out;
}

std::string too_long(std::string_view what, std::size_t size, std::size_t limit) {
  return format("a {} of {} bytes; at most {} are allowed", what, size, limit);
}

// A handler that passes a reply on to `done`. `read` makes the value from the reply; nothing if it makes no sense.
template <class T, class Read>
auto passing_on(std::function<void(Result<T>)> done, Read read) {
  return [done = std::move(done), read = std::move(read)](const Error* error) {
    if (error != nullptr) return done(std::unexpected(*error)), true;
    std::optional<Result<T>> value = read();
    if (!value) return false;
    done(std::move(*value));
    return true;
  };
}

}  // namespace

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

Status Client::set(std::string_view key, std::string_view value) {
  return ask_nothing(made_by(put_set, key, value), {1, key.size(), value.size()});
}

Status Client::append(std::string_view key, std::string_view value) {
  return ask_nothing(made_by(put_append, key, value), {1, key.size(), value.size()});
}

Status Client::queue_push(std::string_view key, std::string_view value) {
  return ask_nothing(made_by(put_queue_push, key, value), {1, key.size(), value.size()});
}

Status Client::multi_set(Pairs pairs) {
  Size size{pairs.size()};
  for (const auto& [key, value] : pairs) {
    size.longest_key = std::max(size.longest_key, key.size());
    size.longest_value = std::max(size.longest_value, value.size());
  }
  return ask_nothing(made_by(put_multi_set, pairs), size);
}

void Client::get(std::string_view key, Done<std::string> done) {
  const auto read = [this] { return std::optional<Result<std::string>>(std::move(reader_.text())); };
  ask({made_by(put_get, key), Reply::kText, passing_on(std::move(done), read)}, {1, key.size()});
}

void Client::compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                         Done<std::string> done) {
  const auto read = [this] { return std::optional<Result<std::string>>(std::move(reader_.text())); };
  ask({made_by(put_compare_set, key, expected, desired), Reply::kText, passing_on(std::move(done), read)},
      {1, key.size(), std::max(expected.size(), desired.size())});
}

void Client::add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) {
  const auto read = [this] { return std::optional<Result<std::int64_t>>(reader_.number()); };
  ask({made_by(put_add, key, delta), Reply::kI64, passing_on(std::move(done), read)}, {1, key.size()});
}

void Client::check(Keys keys, Done<bool> done) {
  const auto read = [this]() -> std::optional<Result<bool>> {
    if (reader_.number() != kReady && reader_.number() != kNotReady) return {};
    return Result<bool>(reader_.number() == kReady);
  };
  ask({made_by(put_check, keys), Reply::kByte, passing_on(std::move(done), read)}, size_of(keys));
}

void Client::delete_key(std::string_view key, Done<bool> done) {
  const auto read = [this]() -> std::optional<Result<bool>> {
    if (reader_.number() != 0 && reader_.number() != 1) return {};
    return Result<bool>(reader_.number() == 1);
  };
  ask({made_by(put_delete_key, key), Reply::kI64, passing_on(std::move(done), read)}, {1, key.size()});
}

void Client::num_keys(Done<std::int64_t> done) {
  const auto read = [this] { return std::optional<Result<std::int64_t>>(reader_.number()); };
  ask({made_by(put_get_num_keys), Reply::kI64, passing_on(std::move(done), read)}, {});
}

void Client::list_keys(Done<std::vector<std::string>> done) {
  const auto read = [this] { return std::optional<Result<std::vector<std::string>>>(std::move(reader_.texts())); };
  ask({made_by(put_list_keys), Reply::kList, passing_on(std::move(done), read)}, {});
}

void Client::multi_get(Keys keys, Done<std::vector<std::string>> done) {
  const auto read = [this] { return std::optional<Result<std::vector<std::string>>>(std::move(reader_.texts())); };
  ask({made_by(put_multi_get, keys), Reply::kTexts, passing_on(std::move(done), read), keys.size()}, size_of(keys));
}

void Client::queue_pop(std::string_view key, Done<Popped> done) {
  const auto read = [this]() -> std::optional<Result<Popped>> {
    if (reader_.number() < 0) return {};
    return Result<Popped>(Popped{reader_.number(), std::move(reader_.text())});
  };
  ask({made_by(put_queue_pop, key), Reply::kPopped, passing_on(std::move(done), read)}, {1, key.size()});
}

void Client::queue_len(std::string_view key, Done<std::int64_t> done) {
  const auto read = [this] { return std::optional<Result<std::int64_t>>(reader_.number()); };
  ask({made_by(put_queue_len, key), Reply::kI64, passing_on(std::move(done), read)}, {1, key.size()});
}

void Client::ping(Done<void> done) {
  const auto read = [this, nonce = ++nonce_]() -> std::optional<Status> {
    if (reader_.number() != nonce) return {};
    return Status();
  };
  ask({made_by(put_ping, nonce_), Reply::kU32, passing_on(std::move(done), read)}, {});
}

void Client::wait(Keys keys, std::int64_t timeout_ms, Done<void> done) {
  const auto read = [this, timeout_ms]() -> std::optional<Status> {
    if (reader_.number() == kStopWaiting) return Status();
    if (!canceling_) return {};
    return Status(std::unexpected(error(format("not all keys came within {} ms", timeout_ms))));
  };
  Request request{made_by(put_wait, keys), Reply::kByte, passing_on(std::move(done), read)};
  request.is_wait = true;
  request.deadline_ms = loop_.now_ms() + timeout_ms;
  ask(std::move(request), size_of(keys));
}

Client::Size Client::size_of(Keys keys) {
  Size size{keys.size()};
  for (const std::string& key : keys) size.longest_key = std::max(size.longest_key, key.size());
  return size;
}

Status Client::admit(std::size_t bytes, const Size& size) const {
  const auto refused = [this](std::string reason) { return Status(std::unexpected(error(std::move(reason)))); };
  if (ended_) return std::unexpected(*ended_);
  if (size.longest_key > limits::kStoreKeyBytes) {
    return refused(too_long("key", size.longest_key, limits::kStoreKeyBytes));
  }
  if (size.longest_value > limits::kStorePayloadBytes) {
    return refused(too_long("value", size.longest_value, limits::kStorePayloadBytes));
  }
  if (size.keys > limits::kStoreKeysPerCommand) {
    return refused(format("a request with {} keys; at most {} are allowed", size.keys, limits::kStoreKeysPerCommand));
  }
  if (bytes > limits::kStoreClientBytes) return refused(too_long("request", bytes, limits::kStoreClientBytes));
  const std::size_t unsent = unsent_bytes_ + (stream_ ? stream_->unsent_bytes() : 0);
  if (unsent + bytes > bounds_.unsent_bytes) {
    return refused(format("it does not take what it is sent; {} bytes are waiting", unsent));
  }
  return {};
}

Status Client::ask_nothing(std::string bytes, const Size& size) {
  if (auto admitted = admit(bytes.size(), size); !admitted) return admitted;
  ask({std::move(bytes)}, size);
  return {};
}

void Client::ask(Request request, const Size& size) {
  if (auto admitted = admit(request.bytes.size(), size); !admitted) {
    return fail_later(std::move(request.on_reply), std::move(admitted.error()));
  }
  unsent_bytes_ += request.bytes.size();
  unsent_.push_back(std::move(request));
  send_what_may_be_sent();
}

void Client::connected(Result<std::unique_ptr<net::Stream>> stream) {
  connector_.reset();
  if (!stream) return end(std::move(stream.error()));
  stream_ = std::move(*stream);
  stream_->start({.on_data = [this](Bytes bytes) { deliver(bytes); },
                  .on_end = [this] { end(error("it closed the connection")); }});
  stream_->write(made_by(put_hello));
  send_what_may_be_sent();
}

void Client::send_what_may_be_sent() {
  std::string bytes;
  while (stream_ && !unsent_.empty() && (sent_.empty() || !sent_.back().is_wait)) {
    Request request = std::move(unsent_.front());
    unsent_.pop_front();
    unsent_bytes_ -= request.bytes.size();
    bytes += std::exchange(request.bytes, {});
    if (!request.reply) continue;
    if (sent_.empty()) heard_ms_ = loop_.now_ms();
    // A reply of no bytes is complete at once.
    if (sent_.empty() && request.texts == 0) soon_.start(0, [this] { deliver({}); });
    reader_.expect(*request.reply, request.texts);
    sent_.push_back(std::move(request));
  }
  if (!bytes.empty()) stream_->write(std::move(bytes));
  start_timer();
}

void Client::deliver(Bytes bytes) {
  const auto alive = alive_;
  for (; !failed_.empty(); failed_.pop_front()) {
    const auto [on_reply, error] = failed_.front();
    on_reply(&error);
    if (!*alive) return;
  }
  if (!stream_) return;
  if (!bytes.empty()) heard_ms_ = loop_.now_ms();
  for (;;) {
    const ReplyReader::Step step = reader_.next(bytes);
    if (step == ReplyReader::Step::kNeedMore) break;
    if (step == ReplyReader::Step::kNonsense) return end(error("its answer makes no sense: " + reader_.reason()));
    OnReply on_reply = std::move(sent_.front().on_reply);
    const bool was_canceled = sent_.front().is_wait && canceling_;
    const bool sensible = on_reply(nullptr);
    if (!*alive) return;
    if (!sensible) {
      sent_.front().on_reply = std::move(on_reply);
      return end(error("its answer makes no sense"));
    }
    if (was_canceled) canceling_ = false;
    sent_.pop_front();
    if (!stream_) return;
  }
  send_what_may_be_sent();
}

void Client::look_at_time() {
  const std::int64_t now = loop_.now_ms();
  for (auto request = unsent_.begin(); request != unsent_.end();) {
    if (!request->is_wait || request->deadline_ms > now) {
      ++request;
      continue;
    }
    unsent_bytes_ -= request->bytes.size();
    fail_later(std::move(request->on_reply),
               error(stream_ ? "it was still busy with what was asked before" : "it was not connected in time"));
    request = unsent_.erase(request);
  }
  if (!sent_.empty()) {
    const Request& next = sent_.front();
    if (next.is_wait && !canceling_) {
      if (next.deadline_ms <= now) {
        canceling_ = true;
        heard_ms_ = now;
        reader_.cancel_wait();
        stream_->write(made_by(put_cancel_wait));
      }
    } else if (now - heard_ms_ >= bounds_.answer_ms) {
      return end(error(format("it has not answered for {} ms", bounds_.answer_ms)));
    }
  }
  start_timer();
}

void Client::start_timer() {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t next_ms = kNever;
  for (const Request& request : unsent_) {
    if (request.is_wait) next_ms = std::min(next_ms, request.deadline_ms);
  }
  if (!sent_.empty()) {
    const bool waits = sent_.front().is_wait && !canceling_;
    next_ms = std::min(next_ms, waits ? sent_.front().deadline_ms : heard_ms_ + bounds_.answer_ms);
  }
  if (next_ms == kNever) return timer_.stop();
  timer_.start(std::max<std::int64_t>(0, next_ms - loop_.now_ms()), [this] { look_at_time(); });
}

void Client::end(Error error) {
  const auto alive = alive_;
  ended_ = std::move(error);
  stream_.reset();
  connector_.reset();
  timer_.stop();
  std::deque<Request> open = std::exchange(sent_, {});
  std::move(unsent_.begin(), unsent_.end(), std::back_inserter(open));
  unsent_.clear();
  unsent_bytes_ = 0;
  const Error told = *ended_;
  for (const Request& request : open) {
    if (request.on_reply) request.on_reply(&told);
    if (!*alive) return;
  }
}

void Client::fail_later(OnReply on_reply, Error error) {
  failed_.emplace_back(std::move(on_reply), std::move(error));
  soon_.start(0, [this] { deliver({}); });
}

}  // namespace elastic::store
