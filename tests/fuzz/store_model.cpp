#include "tests/fuzz/store_model.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace elastic::store_model {
namespace {

// The figures of docs/store-protocol.md, "What closes a connection".
constexpr std::uint64_t kKeyBytes = 8192;
constexpr std::uint64_t kValueBytes = 8 << 20;
constexpr std::uint64_t kKeys = 131072;

// Those of docs/limits.md: what is counted beside the bytes.
constexpr std::size_t kPerValue = 160;
constexpr std::size_t kPerAwaitedKey = 160;
constexpr std::size_t kPerQueue = 800;
constexpr std::size_t kPerItem = 64;
constexpr std::size_t kPerWait = 160;
constexpr std::size_t kPerKeyOfWait = 96;
constexpr std::size_t kPerNumber = 20;

constexpr std::string_view kHello("\x00\xCE\xF7\x85\x3C", 5);

std::string number_text(std::uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
  return out;
}

std::string i64(std::int64_t number) { return number_text(static_cast<std::uint64_t>(number), 8); }

std::string text(const std::string& content) { return number_text(content.size(), 8) + content; }

}  // namespace

// Reads a request from its start, each time anew. Once something is missing or wrong, the rest of
// what is read means nothing.
class Model::Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool good() const { return !too_short_ && !closed_; }
  std::size_t taken() const { return at_; }
  std::size_t texts() const { return texts_; }
  std::optional<Closed> closed() const { return closed_; }
  void close(Closed why) {
    if (good()) closed_ = why;
  }

  std::uint64_t number(std::size_t size) {
    const std::string_view part = take(size);
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    }
    return number;
  }
  std::uint64_t list_size() {
    const std::uint64_t size = number(8);
    if (size > kKeys) close(Closed::kTooManyKeys);
    return size;
  }
  std::string key() { return text_of(kKeyBytes, Closed::kKeyTooLong); }
  std::string value() { return text_of(kValueBytes, Closed::kValueTooLong); }

 private:
  std::string text_of(std::uint64_t limit, Closed why) {
    ++texts_;
    const std::uint64_t length = number(8);
    if (!good()) return {};
    if (length > limit) {
      close(why);
      return {};
    }
    return std::string(take(length));
  }
  std::string_view take(std::uint64_t size) {
    if (good() && bytes_.size() - at_ < size) too_short_ = true;
    if (!good()) return {};
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t texts_ = 0;
  bool too_short_ = false;
  std::optional<Closed> closed_;
};

void Model::read_request(Reader& reader, Request& request) {
  request.number = static_cast<std::uint8_t>(reader.number(1));
  if (!reader.good()) return;
  switch (request.number) {
    case 0: return reader.close(Closed::kSecondValidate);
    case 7:
    case 12:
    case 17: return;
    case 3:
    case 8:
    case 15:
    case 16: request.key = reader.key(); return;
    case 1:
    case 9:
    case 14:
      request.key = reader.key();
      request.value = reader.value();
      return;
    case 2:
      request.key = reader.key();
      request.expected = reader.value();
      request.value = reader.value();
      return;
    case 4:
    case 18:
      request.key = reader.key();
      request.amount = static_cast<std::int64_t>(reader.number(8));
      return;
    case 13: request.nonce = static_cast<std::uint32_t>(reader.number(4)); return;
    case 5:
    case 6:
    case 10:
    case 11: {
      const std::uint64_t size = reader.list_size();
      for (std::uint64_t i = 0; i < size && reader.good(); ++i) {
        request.keys.push_back(reader.key());
        if (request.number == 11) request.values.push_back(reader.value());
      }
      return;
    }
    default: return reader.close(Closed::kUnknownRequest);
  }
}

Outcome Model::receive(Client client, std::string_view bytes) {
  Outcome outcome;
  Connection& connection = connections_[client];
  connection.bytes += bytes;
  if (!connection.greeted) {
    const std::size_t size = std::min(connection.bytes.size(), kHello.size());
    if (connection.bytes.compare(0, size, kHello, 0, size) != 0) {
      outcome.closed = Closed::kStranger;
      leave(client);
      return outcome;
    }
    if (size < kHello.size()) return outcome;
    connection.bytes.erase(0, size);
    connection.greeted = true;
  }
  std::size_t done = 0;  // bytes of requests that were carried out
  for (;;) {
    Reader reader(std::string_view(connection.bytes).substr(done));
    Request request;
    read_request(reader, request);
    steps_ += 1 + reader.texts();
    outcome.closed = reader.closed();
    if (reader.good()) {
      done += reader.taken();
      Step step{request.number, {}};
      outcome.closed = carry_out(client, request, step);
      if (!outcome.closed) outcome.steps.push_back(step);
    }
    if (outcome.closed) {
      leave(client);
      return outcome;
    }
    if (!reader.good()) {
      connection.bytes.erase(0, done);
      return outcome;
    }
  }
}

void Model::leave(Client client) {
  forget_wait(client);
  connections_.erase(client);
}

std::size_t Model::unfinished_bytes(Client client) const {
  const auto found = connections_.find(client);
  return found == connections_.end() ? 0 : found->second.bytes.size();
}

std::size_t Model::held_bytes() const {
  std::size_t bytes = 0;
  steps_ += values_.size() + queues_.size() + waits_.size();
  for (const auto& [key, value] : values_) bytes += key.size() + value.size() + kPerValue;
  for (const auto& [key, items] : queues_) {
    bytes += key.size() + kPerQueue;
    steps_ += items.size();
    for (const std::string& item : items) bytes += item.size() + kPerItem;
  }
  std::set<std::string> awaited;
  for (const Wait& wait : waits_) {
    awaited.insert(wait.missing.begin(), wait.missing.end());
    steps_ += wait.missing.size();
    bytes += kPerWait + wait.keys * kPerKeyOfWait;
  }
  for (const std::string& key : awaited) bytes += key.size() + kPerAwaitedKey;
  return bytes;
}

// As if all that it names were new.
bool Model::has_room_for(const Request& request) const {
  std::size_t bytes = 0;
  const std::size_t key = request.key.size();
  switch (request.number) {
    case 1:
    case 2:
    case 9: bytes = key + request.value.size() + kPerValue; break;
    case 4: bytes = key + kPerNumber + kPerValue; break;
    case 6:
      if (all_present(request.keys)) break;
      bytes = kPerWait;
      for (const std::string& awaited : request.keys) {
        bytes += awaited.size() + kPerAwaitedKey + kPerKeyOfWait;
      }
      break;
    case 11:
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        bytes += request.keys[i].size() + request.values[i].size() + kPerValue;
      }
      break;
    case 14: bytes = key + kPerQueue + request.value.size() + kPerItem; break;
    case 18: bytes = key + kPerNumber + kPerValue + kPerWait + key + kPerAwaitedKey + kPerKeyOfWait; break;
    default: break;
  }
  return bytes == 0 || held_bytes() + bytes <= most_bytes_;
}

std::optional<Closed> Model::carry_out(Client client, const Request& request, Step& step) {
  if (!has_room_for(request)) return Closed::kStoreFull;
  const std::string& key = request.key;
  std::string reply;
  // What a request wakes comes before the answer to it, also where both are of one client.
  const auto answer = [&](const std::string& bytes) { step.replies[client] += bytes; };
  switch (request.number) {
    case 1: set(key, request.value, step); break;
    case 2:
      if (!values_.contains(key) && !request.expected.empty()) {
        answer(text(request.expected));
      } else if (!values_.contains(key) || values_[key] == request.expected) {
        set(key, request.value, step);
        answer(text(request.value));
      } else {
        came(key, step);
        answer(text(values_[key]));
      }
      break;
    case 3: answer(text(values_.contains(key) ? values_[key] : "")); break;
    case 4: {
      std::int64_t sum = 0;
      if (const auto closed = count(key, request.amount, sum)) return closed;
      set(key, std::to_string(sum), step);
      answer(i64(sum));
      break;
    }
    case 5: answer(all_present(request.keys) ? std::string(1, 0) : std::string(1, 1)); break;
    case 6:
      if (all_present(request.keys)) {
        answer(std::string(1, 0));
      } else {
        forget_wait(client);
        Wait wait{client, {}, false, 0};
        for (const std::string& awaited : request.keys) {
          if (!present(awaited)) wait.missing.insert(awaited);
        }
        wait.keys = wait.missing.size();
        waits_.push_back(wait);
      }
      break;
    case 7: answer(i64(static_cast<std::int64_t>(values_.size()))); break;
    case 8: answer(i64(static_cast<std::int64_t>(values_.erase(key)))); break;
    case 9: set(key, (values_.contains(key) ? values_[key] : "") + request.value, step); break;
    case 10:
      for (const std::string& asked : request.keys) {
        reply += text(values_.contains(asked) ? values_[asked] : "");
      }
      if (!reply.empty()) answer(reply);
      break;
    case 11:
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        set(request.keys[i], request.values[i], step);
      }
      break;
    case 12:
      forget_wait(client);
      answer(std::string(1, 1));
      break;
    case 13: answer(number_text(request.nonce, 4)); break;
    case 14:
      queues_[key].push_back(request.value);
      pushed(key, step);
      break;
    case 15:
      if (!queues_.contains(key)) {
        answer(i64(0));
      } else {
        answer(i64(static_cast<std::int64_t>(queues_[key].size())) + text(queues_[key].front()));
        queues_[key].pop_front();
        if (queues_[key].empty()) queues_.erase(key);
      }
      break;
    case 16: answer(i64(queues_.contains(key) ? static_cast<std::int64_t>(queues_[key].size()) : 0)); break;
    case 17:
      reply = i64(static_cast<std::int64_t>(values_.size()));
      for (const auto& [name, value] : values_) reply += text(name);
      answer(reply);
      break;
    case 18: {
      std::int64_t there = 0;
      if (const auto closed = count(key, 1, there)) return closed;
      values_[key] = std::to_string(there);
      if (there >= request.amount) {
        answer(std::string(1, 0));
        came(key, step);
      } else {
        forget_wait(client);
        waits_.push_back({client, {key}, true, 1});
      }
      break;
    }
    default: std::abort();
  }
  return {};
}

// The number that the key has, a missing one being 0, and `delta`.
std::optional<Closed> Model::count(const std::string& key, std::int64_t delta, std::int64_t& sum) const {
  std::int64_t before = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    const char* const digits = found->second.c_str();
    char* end = nullptr;
    errno = 0;
    before = std::strtoll(digits, &end, 10);
    if (end == digits || errno == ERANGE) return Closed::kNotANumber;
  }
  if (delta > 0 && before > INT64_MAX - delta) return Closed::kOutOfRange;
  if (delta < 0 && before < INT64_MIN - delta) return Closed::kOutOfRange;
  sum = before + delta;
  return {};
}

bool Model::present(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

bool Model::all_present(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) { return present(key); });
}

void Model::set(const std::string& key, const std::string& value, Step& step) {
  values_[key] = value;
  came(key, step);
}

void Model::came(const std::string& key, Step& step) {
  std::vector<Wait> still;
  for (Wait& wait : waits_) {
    wait.missing.erase(key);
    if (wait.missing.empty()) {
      step.replies[wait.client] += '\0';
    } else {
      still.push_back(wait);
    }
  }
  waits_ = still;
}

void Model::pushed(const std::string& key, Step& step) {
  const std::set<std::string> only = {key};
  for (const Wait& wait : waits_) {
    if (wait.is_barrier || wait.missing != only) continue;
    step.replies[wait.client] += '\0';
    forget_wait(wait.client);
    return;
  }
  for (Wait& wait : waits_) {
    if (!wait.is_barrier) wait.missing.erase(key);
  }
}

void Model::forget_wait(Client client) {
  std::erase_if(waits_, [&](const Wait& wait) { return wait.client == client; });
}

}  // namespace elastic::store_model
