// libFuzzer's entry for the worker store: events (store_events.h) go to the decoder and the
// keyspace, as the server would hand them on, and to the model (store_model.h). Both must answer
// the same bytes to the same clients at the same moment. Beside that, for each connection:
// - its bytes give the same commands in one piece, and byte by byte;
// - the time is in proportion to the bytes;
// - an unfinished request holds no more memory than has come of it, and an idle client nearly none.
// ELASTIC_FUZZ_TRACE=1 in the environment tells each step on stderr.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/codec.h"
#include "rendezvous/store/keyspace.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/store_events.h"
#include "tests/fuzz/store_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace elastic {
namespace {

using fuzz::cpu_seconds;
using fuzz::tracing;
using store::Bytes;
using store::ClientId;
using store::Command;
using store::Decoder;
using store::Keyspace;
using store::Op;
using store::Refusal;
using store_model::Closed;
using store_model::Model;
using store_model::Outcome;
using store_model::Step;

// Bytes that the clients of one input send, and are answered, together; then it ends. The slow
// seeds need nearly as much.
constexpr std::size_t kMostBytes = 80 << 20;
constexpr std::size_t kMostReplyBytes = 160 << 20;
// Requests, and steps that the model takes for them: it reads an unfinished list anew with each piece, and counts all
// that it holds for each request. The slow seeds need a quarter of it; all of it takes seconds with sanitizers.
constexpr std::size_t kMostRequests = 16 << 10;
constexpr std::size_t kMostModelSteps = 4 << 20;
// An input that needs more is slow: it is no start for others, and may not pile up requests.
constexpr std::size_t kQuickBytes = 128 << 10;
// Above these, a connection is not decoded byte by byte, and a delivery has few pieces.
constexpr std::size_t kMostBytesToDrip = 2 << 20;
constexpr std::size_t kFewPieces = 64;
constexpr std::size_t kManyBytes = 16 << 10;

// What an idle client may hold: three small strings and two lists of eight.
constexpr std::size_t kIdleBytes = 3 * 257 + 2 * 8 * sizeof(std::string);
// And an unfinished request: twice what came, for growth; room for the first keys of a list; and a
// string for each 8 bytes of length, again twice.
constexpr std::size_t kFirstListBytes = 1024 * sizeof(std::string);
constexpr std::size_t kBytesHeldPerByte = 2 + 2 * sizeof(std::string) / 8;
// CPU time of decoding byte by byte, a hundred times what it takes with sanitizers.
constexpr double kSecondsPerByte = 10e-6;
constexpr double kSecondsForAny = 0.5;

[[noreturn]] void found(const std::string& what) { fuzz::end_with("store_fuzzer", what); }

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// A number that stands for a command: of the fields that its op has.
std::size_t digest(const Command& command) {
  auto digest = static_cast<std::size_t>(command.op);
  const auto add = [&](std::size_t part) { digest = (digest ^ part) * 0x9E3779B97F4A7C15 + part; };
  const auto add_text = [&](const std::string& text) { add(std::hash<std::string>{}(text)); };
  switch (command.op) {
    case Op::kCompareSet: add_text(command.expected); [[fallthrough]];
    case Op::kSet:
    case Op::kAppend:
    case Op::kQueuePush: add_text(command.value); [[fallthrough]];
    case Op::kGet:
    case Op::kDeleteKey:
    case Op::kQueuePop:
    case Op::kQueueLen: add_text(command.key); break;
    case Op::kAdd:
    case Op::kBarrier: add_text(command.key); [[fallthrough]];
    case Op::kPing: add(static_cast<std::size_t>(command.number)); break;
    case Op::kMultiSet: std::ranges::for_each(command.values, add_text); [[fallthrough]];
    case Op::kCheck:
    case Op::kWait:
    case Op::kMultiGet: std::ranges::for_each(command.keys, add_text); break;
    default: break;
  }
  return digest;
}

Closed as_closed(const Refusal& refusal) {
  using Kind = Refusal::Kind;
  switch (refusal.kind) {
    case Kind::kUnknownOp: return Closed::kUnknownRequest;
    case Kind::kSecondValidate: return Closed::kSecondValidate;
    case Kind::kKeyTooLong: return Closed::kKeyTooLong;
    case Kind::kValueTooLong: return Closed::kValueTooLong;
    case Kind::kTooManyKeys: return Closed::kTooManyKeys;
    case Kind::kNotANumber: return Closed::kNotANumber;
    case Kind::kOutOfRange: return Closed::kOutOfRange;
    case Kind::kStoreFull: return Closed::kStoreFull;
    case Kind::kTransitFull:
    case Kind::kNotAdmitted:
    case Kind::kSilent: found("a refusal for what only a server can know");
    default: return Closed::kStranger;
  }
}

// The reply to LIST_KEYS with its keys in order.
std::string with_sorted_keys(const std::string& reply) {
  const auto number_at = [&](std::size_t at) {
    if (reply.size() - at < 8) found("a reply to LIST_KEYS is cut off");
    std::uint64_t number = 0;
    for (std::size_t i = 8; i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(reply[at + i]);
    }
    return number;
  };
  std::vector<std::string> keys;
  std::size_t at = 8;
  for (std::uint64_t left = number_at(0); left > 0; --left) {
    const std::uint64_t size = number_at(at);
    if (reply.size() - at - 8 < size) found("a key in a reply to LIST_KEYS is cut off");
    keys.push_back(reply.substr(at + 8, size));
    at += 8 + size;
  }
  std::ranges::sort(keys);
  std::string sorted = reply.substr(0, 8);
  for (const std::string& key : keys) store::put_string(sorted, key);
  return sorted + reply.substr(at);
}

std::string told(const Outcome& outcome) {
  std::string text;
  for (const Step& step : outcome.steps) {
    text += format("\n    request {}:", step.number);
    for (const auto& [client, reply] : step.replies) {
      text += format(" to {} {} bytes [{}]", client, reply.size(), printable(reply, 80));
    }
  }
  if (outcome.closed) text += format("\n    closed, cause {}", static_cast<int>(*outcome.closed));
  return text.empty() ? "\n    nothing" : text;
}

// One client's connection. Its id is never used again.
struct Connection {
  ClientId id = 0;
  Decoder decoder;
  std::string unsent;                 // made, but not yet delivered
  std::string sent;                   // all of it
  std::vector<std::size_t> commands;  // digests of what the decoder made of it
  std::optional<Closed> refused;      // by the decoder
  bool refused_by_keyspace = false;
  bool is_new = true;
};

class Run final : public store::Outbox {
 public:
  explicit Run(std::size_t store_bytes) : keyspace_(store_bytes), model_(store_bytes) {}

  // Whether the input is quick enough to be kept.
  bool play(store_events::Reader events) {
    while (!events.at_end() && !is_spent()) play_one(events);
    for (auto& connection : connections_) {
      if (connection) leave(connection);
    }
    compare_state();
    return is_quick();
  }

  store::Replies& replies_to(ClientId client) override { return replies_[client]; }

 private:
  // Whether this input has had its share: what it sends after that is heard by neither the store nor the model.
  bool is_spent() const {
    return made_bytes_ >= kMostBytes || reply_bytes_ >= kMostReplyBytes || requests_ >= kMostRequests ||
           model_.steps() >= kMostModelSteps;
  }
  bool is_quick() const { return made_bytes_ + reply_bytes_ <= kQuickBytes; }
  void play_one(store_events::Reader& events);
  std::string request(std::uint8_t number, store_events::Reader& events);
  void deliver(std::unique_ptr<Connection>& connection, std::uint8_t cut);
  bool receive(Connection& connection, std::string_view piece);
  Outcome receive_in_store(Connection& connection, std::string_view& piece);
  void leave(std::unique_ptr<Connection>& connection);
  void check_memory(const Connection& connection) const;
  static void check_cuts(const Connection& connection);
  void compare_counts() const;
  void compare_state();
  std::string ask(Op op, const std::string& key = {});

  Keyspace keyspace_;
  Model model_;
  std::unique_ptr<Connection> connections_[8];
  std::map<ClientId, store::Replies> replies_;
  ClientId last_id_ = 0;
  std::size_t made_bytes_ = 0;
  std::size_t reply_bytes_ = 0;
  std::size_t requests_ = 0;
};

void Run::play_one(store_events::Reader& events) {
  using namespace store_events;
  const std::uint8_t head = events.byte();
  const auto kind = static_cast<std::uint8_t>(head >> 3);
  std::unique_ptr<Connection>& connection = connections_[head & 7];
  if (!connection) {
    connection = std::make_unique<Connection>();
    connection->id = ++last_id_;
  }
  std::string& unsent = connection->unsent;
  const std::size_t before = unsent.size();
  if (kind == kLeave) return leave(connection);
  if (kind == kPatch) {
    const std::uint8_t place = events.byte();
    const std::uint8_t value = events.byte();
    if (!unsent.empty()) unsent[place % unsent.size()] = static_cast<char>(value);
    return;
  }
  const std::uint8_t cut = events.byte();
  if (kind == kFiller) {
    const auto value = static_cast<char>(events.byte());
    unsent.append(events.filler_size(), value);
  } else if (kind < kRaw) {
    if (connection->is_new && kind != 0) unsent += request(0, events);
    unsent += request(kind, events);
  } else if (kind != kDeliver) {
    const std::uint8_t count = events.byte();
    unsent += events.bytes(count);
  }
  connection->is_new = false;
  made_bytes_ += unsent.size() - before;
  deliver(connection, is_quick() || cut < kFirst ? cut : kAtOnce);
}

std::string Run::request(std::uint8_t number, store_events::Reader& events) {
  std::string out(1, static_cast<char>(number));
  switch (static_cast<Op>(number)) {
    case Op::kValidate: return out + "\xCE\xF7\x85\x3C";
    case Op::kPing: store::put_u32(out, static_cast<std::uint32_t>(events.number())); break;
    case Op::kGet:
    case Op::kDeleteKey:
    case Op::kQueuePop:
    case Op::kQueueLen: store::put_string(out, events.key()); break;
    case Op::kCompareSet:
    case Op::kSet:
    case Op::kAppend:
    case Op::kQueuePush:
      store::put_string(out, events.key());
      if (number == static_cast<std::uint8_t>(Op::kCompareSet)) {
        store::put_string(out, events.value());
      }
      store::put_string(out, events.value());
      break;
    case Op::kAdd:
    case Op::kBarrier:
      store::put_string(out, events.key());
      store::put_i64(out, events.number());
      break;
    case Op::kCheck:
    case Op::kWait:
    case Op::kMultiGet:
    case Op::kMultiSet: {
      const std::size_t size = events.list_size();
      store::put_i64(out, static_cast<std::int64_t>(size));
      for (std::size_t i = 0; i < size; ++i) {
        store::put_string(out, events.key());
        if (number == static_cast<std::uint8_t>(Op::kMultiSet)) {
          store::put_string(out, events.value());
        }
      }
      break;
    }
    default: break;
  }
  return out;
}

void Run::deliver(std::unique_ptr<Connection>& connection, std::uint8_t cut) {
  const std::string unsent = std::exchange(connection->unsent, {});
  std::string_view left = unsent;
  if (cut >= store_events::kFirst) {
    const std::size_t size = std::min<std::size_t>(cut - store_events::kFirst, left.size());
    connection->unsent = left.substr(size);
    left = left.substr(0, size);
  }
  const std::size_t most_pieces = left.size() > kManyBytes ? kFewPieces : kManyBytes;
  for (std::size_t pieces = 1; !left.empty(); ++pieces) {
    const bool in_pieces = cut != store_events::kAtOnce && cut < store_events::kFirst;
    const bool is_last = !in_pieces || pieces == most_pieces;
    const std::string_view piece = left.substr(0, is_last ? left.size() : cut);
    left.remove_prefix(piece.size());
    if (!receive(*connection, piece) || is_spent()) return leave(connection);
  }
}

// Whether the connection stays open.
bool Run::receive(Connection& connection, std::string_view piece) {
  const Outcome got = receive_in_store(connection, piece);
  const Outcome expected = model_.receive(connection.id, piece);
  if (tracing()) {
    std::fprintf(stderr, "client %llu sends %zu bytes [%s]:%s\n", static_cast<unsigned long long>(connection.id),
                 piece.size(), printable(piece, 160).c_str(), told(got).c_str());
  }
  if (got != expected) {
    found(format("client {} sent {} bytes [{}]\n  the store:{}\n  the model:{}", connection.id, piece.size(),
                 printable(piece, 400), told(got), told(expected)));
  }
  if (got.closed) return false;
  compare_counts();
  check_memory(connection);
  return true;
}

// Cuts `piece` behind the request with which the input has had its share.
Outcome Run::receive_in_store(Connection& connection, std::string_view& piece) {
  // Memory of its own: what is read beyond the piece is seen.
  const std::vector<std::uint8_t> copy(piece.begin(), piece.end());
  Bytes bytes(copy);
  Outcome outcome;
  while (!is_spent()) {
    const Decoder::Step next = connection.decoder.next(bytes);
    if (next == Decoder::Step::kRefused) {
      outcome.closed = connection.refused = as_closed(connection.decoder.refusal());
      if (connection.decoder.refusal().reason.empty()) found("a refusal has no reason");
      if (connection.decoder.next(bytes) != next) found("a decoder goes on after a refusal");
    }
    if (next == Decoder::Step::kNeedMore && !bytes.empty()) found("the decoder left bytes");
    if (next != Decoder::Step::kCommand) break;
    Command& command = connection.decoder.command();
    const Op op = command.op;
    connection.commands.push_back(digest(command));
    replies_.clear();
    const auto done = keyspace_.apply(connection.id, command, *this);
    if (keyspace_.held_bytes() < 128 * 1024) keyspace_.check_invariants();
    std::erase_if(replies_, [](const auto& entry) { return entry.second.empty(); });
    if (!done) {
      outcome.closed = as_closed(done.error());
      connection.refused_by_keyspace = true;
      if (!replies_.empty()) found("a refused command was answered");
      break;
    }
    Step step{static_cast<std::uint8_t>(op), {}};
    for (const auto& [client, replies] : replies_) step.replies[client] = replies.whole();
    replies_.clear();
    if (keyspace_.loose()->count > 0) found("a reply that has gone leaves something");
    if (op == Op::kListKeys && step.replies.contains(connection.id)) {
      std::string& reply = step.replies[connection.id];
      reply = with_sorted_keys(reply);
    }
    ++requests_;
    for (const auto& [client, reply] : step.replies) reply_bytes_ += reply.size();
    outcome.steps.push_back(std::move(step));
  }
  if (!outcome.closed) piece.remove_suffix(bytes.size());
  connection.sent += piece;
  if (outcome.closed) keyspace_.drop(connection.id);
  return outcome;
}

void Run::leave(std::unique_ptr<Connection>& connection) {
  if (tracing()) {
    std::fprintf(stderr, "client %llu leaves\n", static_cast<unsigned long long>(connection->id));
  }
  keyspace_.drop(connection->id);
  model_.leave(connection->id);
  compare_counts();
  check_cuts(*connection);
  connection.reset();
}

// What a decoder's command holds, seen from outside.
void Run::check_memory(const Connection& connection) const {
  const Command& command = const_cast<Connection&>(connection).decoder.command();
  std::size_t held = 0;
  for (const std::string* text : {&command.key, &command.value, &command.expected}) {
    held += text->capacity();
  }
  for (const std::vector<std::string>* list : {&command.keys, &command.values}) {
    held += list->capacity() * sizeof(std::string);
    for (const std::string& text : *list) held += text.capacity();
  }
  const std::size_t came = model_.unfinished_bytes(connection.id);
  const std::size_t most = kIdleBytes + (came == 0 ? 0 : kFirstListBytes + kBytesHeldPerByte * came);
  if (held > most) {
    found(format("client {} holds {} bytes, with {} of an unfinished request", connection.id, held, came));
  }
}

// Decodes the connection's bytes in pieces of one size: what the decoder made of them before, in
// whatever pieces they came, must come again.
void decode_again(const Connection& connection, std::size_t piece_size) {
  Decoder decoder;
  std::size_t commands = 0;
  std::optional<Closed> refused;
  std::string_view left = connection.sent;
  while (!left.empty() && !refused) {
    Bytes bytes = bytes_of(left.substr(0, piece_size));
    left.remove_prefix(bytes.size());
    Decoder::Step step = decoder.next(bytes);
    for (; step == Decoder::Step::kCommand; step = decoder.next(bytes)) {
      if (commands == connection.commands.size() || connection.commands[commands] != digest(decoder.command())) {
        found(
            format("client {}'s command {} is another one in pieces of {} bytes", connection.id, commands, piece_size));
      }
      ++commands;
      // After a command that the keyspace refused nothing was decoded.
      if (connection.refused_by_keyspace && commands == connection.commands.size()) return;
    }
    if (step == Decoder::Step::kRefused) refused = as_closed(decoder.refusal());
  }
  if (commands != connection.commands.size() || refused != connection.refused) {
    found(format("client {}'s bytes end otherwise in pieces of {} bytes", connection.id, piece_size));
  }
}

void Run::check_cuts(const Connection& connection) {
  decode_again(connection, std::string::npos);
  if (connection.sent.size() > kMostBytesToDrip) return;
  const double begin = cpu_seconds();
  decode_again(connection, 1);
  const double seconds = cpu_seconds() - begin;
  const auto size = static_cast<double>(connection.sent.size());
  if (seconds > kSecondsForAny + kSecondsPerByte * size) {
    found(format("client {}'s {} bytes took {} s, one by one", connection.id, size, seconds));
  }
}

void Run::compare_counts() const {
  const auto same = [](const char* what, std::size_t got, std::size_t expected) {
    if (got != expected) found(format("{}: the store has {}, the model {}", what, got, expected));
  };
  same("keys", keyspace_.keys(), model_.values().size());
  same("bytes held", keyspace_.held_bytes(), model_.held_bytes());
}

std::string Run::ask(Op op, const std::string& key) {
  Command command;
  command.op = op;
  command.key = key;
  replies_.clear();
  if (!keyspace_.apply(0, command, *this)) found("a question at the end is refused");
  return replies_[0].whole();
}

// At the end, when all clients have left.
void Run::compare_state() {
  const auto same = [](const std::string& what, const std::string& got, const std::string& expected) {
    if (got != expected) {
      found(format("{} is [{}] in the store, [{}] in the model", what, printable(got), printable(expected)));
    }
  };
  for (const auto& [key, value] : model_.values()) {
    std::string expected;
    store::put_string(expected, value);
    same("the value of " + key, ask(Op::kGet, key), expected);
    ask(Op::kDeleteKey, key);
  }
  for (const auto& [key, queue] : model_.queues()) {
    for (std::size_t left = queue.size(); left > 0; --left) {
      std::string expected;
      store::put_i64(expected, static_cast<std::int64_t>(left));
      store::put_string(expected, queue[queue.size() - left]);
      same("the queue " + key, ask(Op::kQueuePop, key), expected);
    }
  }
  for (const std::string_view key : store_events::kKeys) {
    same("the emptied queue " + std::string(key), ask(Op::kQueueLen, std::string(key)), std::string(8, '\0'));
  }
  if (keyspace_.held_bytes() != 0) {
    found(format("{} bytes are held of an empty store that all have left", keyspace_.held_bytes()));
  }
}

}  // namespace
}  // namespace elastic

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::store_events::Reader events(data, size);
  const bool is_quick = elastic::Run(events.store_bytes()).play(events);
  return is_quick ? 0 : -1;
}
