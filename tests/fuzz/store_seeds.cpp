// The seeds of the store's fuzzer: makes them, and plays files as the fuzzer does.
//
//   store_seeds --write DIRECTORY   writes the seeds, into DIRECTORY/quick and DIRECTORY/slow
//   store_seeds --check DIRECTORY   the files there are the seeds, and each of them plays
//   store_seeds FILE ...            plays files

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/store_events.h"

namespace elastic {
namespace {

using store::Op;
using store_events::kHold;
using store_events::Writer;

// The events' arguments: bytes by name. Keys and values by their index in the tables.
constexpr char kA = 0, kB = 1, kC = 2, kInit = 4, kNoKey = 5, kBinaryKey = 6;
constexpr char kEmpty = 0, kZero = 1, kOne = 2, kX = 4, kText = 5, kBlanks = 6, kMinus = 9;
constexpr char kMostText = 11, kTooMuchText = 13;
constexpr char kLongValue = '\xF0';  // 257 bytes
constexpr char kN0 = 0, kN1 = 1, kN2 = 2, kN3 = 3, kNMinus1 = 4, kNMost = 6, kNLeast = 7;
// Keys of 300, 8,192 and 8,193 bytes.
constexpr char kKey300 = '\xF0', kKeyMost = '\xF1', kKeyTooLong = '\xF2';
// Sizes of fillers, by their index.
constexpr std::uint8_t k64KiB = 1, kMiB = 2, k8MiBLess8 = 3, k8MiB = 4;

template <class... Chars>
std::string args(Chars... chars) {
  return {static_cast<char>(chars)...};
}
std::string word(std::string_view content) {
  return args(store_events::kInline + content.size()) + std::string(content);
}

class Story {
 public:
  Story& does(unsigned client, Op op, const std::string& arguments = {}, std::uint8_t cut = 0) {
    writer_.request(client, static_cast<std::uint8_t>(op), arguments, cut);
    return *this;
  }
  Story& sends(unsigned client, const std::string& bytes, std::uint8_t cut = 0) {
    writer_.raw(client, bytes, cut);
    return *this;
  }
  Story& fills(unsigned client, char byte, std::uint8_t size, std::uint8_t cut = 0) {
    writer_.filler(client, static_cast<std::uint8_t>(byte), size, cut);
    return *this;
  }
  // SET or APPEND of /a with so many bytes, of the filler's size of that index.
  Story& sends_value(unsigned client, Op op, std::int64_t bytes, std::uint8_t size) {
    using namespace store::test;
    return sends(client, store::test::op(op) + text("/a") + i64(bytes)).fills(client, 'v', size);
  }
  Story& patches(unsigned client, std::uint8_t place, std::uint8_t value) {
    writer_.patch(client, place, value);
    return *this;
  }
  Story& delivers(unsigned client, std::uint8_t cut = 0) {
    writer_.deliver(client, cut);
    return *this;
  }
  Story& has_small_store(std::uint8_t steps) {
    writer_.small_store(steps);
    return *this;
  }
  Story& leaves(unsigned client) {
    writer_.leave(client);
    return *this;
  }
  operator std::string() const { return writer_.input(); }

 private:
  Writer writer_;
};

using seed_files::Seeds;

std::string number(Op op) { return store::test::op(op); }

void add_values(Seeds& seeds) {
  seeds["quick/every_request"] = Story()
                                     .does(0, Op::kPing, args(kN3))
                                     .does(0, Op::kAdd, args(kInit, kN1))
                                     .does(0, Op::kSet, args(kA, kText))
                                     .does(0, Op::kGet, args(kA))
                                     .does(0, Op::kCompareSet, args(kA, kText, kX))
                                     .does(0, Op::kCheck, args(2, kA, kB))
                                     .does(0, Op::kWait, args(1, kA))
                                     .does(0, Op::kGetNumKeys)
                                     .does(0, Op::kAppend, args(kA, kText))
                                     .does(0, Op::kMultiSet, args(2, kB, kOne, kC, kEmpty))
                                     .does(0, Op::kMultiGet, args(3, kA, kC, kNoKey))
                                     .does(0, Op::kQueuePush, args(kB, kX))
                                     .does(0, Op::kQueueLen, args(kB))
                                     .does(0, Op::kQueuePop, args(kB))
                                     .does(0, Op::kListKeys)
                                     .does(0, Op::kDeleteKey, args(kB))
                                     .does(0, Op::kBarrier, args(kC + 1, kN1))
                                     .does(0, Op::kCancelWait)
                                     .leaves(0);
  seeds["quick/values_of_any_bytes"] = Story()
                                           .does(0, Op::kSet, args(kNoKey) + word("a\xFF"))
                                           .does(0, Op::kSet, args(kBinaryKey, kEmpty))
                                           .does(1, Op::kGet, args(kNoKey))
                                           .does(1, Op::kGet, args(kBinaryKey))
                                           .does(1, Op::kGet, args(kA))
                                           .does(1, Op::kListKeys);
  seeds["quick/compare_set"] = Story()
                                   .does(1, Op::kWait, args(1, kA))
                                   .does(0, Op::kCompareSet, args(kA, kText, kX))
                                   .does(0, Op::kCheck, args(1, kA))
                                   .does(0, Op::kCompareSet, args(kA, kEmpty, kX))
                                   .does(1, Op::kWait, args(2, kA, kB))
                                   .does(0, Op::kCompareSet, args(kA, kText, kOne))
                                   .does(0, Op::kCompareSet, args(kA, kX, kEmpty))
                                   .does(0, Op::kCompareSet, args(kB, kEmpty, kEmpty));
  seeds["quick/counters"] = Story()
                                .does(0, Op::kAdd, args(kA, kN0))
                                .does(0, Op::kAdd, args(kA, kN3))
                                .does(0, Op::kAdd, args(kA, kNMinus1))
                                .does(0, Op::kGet, args(kA))
                                .does(0, Op::kSet, args(kB, kBlanks))
                                .does(0, Op::kAdd, args(kB, kN1))
                                .does(0, Op::kAdd, args(kC, kNLeast))
                                .does(0, Op::kAdd, args(kC, kNMinus1))
                                .does(0, Op::kGet, args(kC));
  for (const char value : {kEmpty, kText, kMinus, kTooMuchText}) {
    seeds["quick/no_counter_" + std::to_string(value)] = Story()
                                                             .does(0, Op::kSet, args(kA, value))
                                                             .does(1, Op::kWait, args(1, kB))
                                                             .does(0, Op::kAdd, args(kA, kN1))
                                                             .does(1, Op::kBarrier, args(kA, kN2))
                                                             .does(2, Op::kGet, args(kA));
  }
  seeds["quick/counter_out_of_range"] = Story()
                                            .does(0, Op::kAdd, args(kA, kNMost))
                                            .does(0, Op::kAdd, args(kA, kN1))
                                            .does(0, Op::kGet, args(kA))
                                            .does(1, Op::kSet, args(kB, kMostText))
                                            .does(1, Op::kBarrier, args(kB, kN2))
                                            .does(2, Op::kMultiGet, args(2, kA, kB));
  seeds["quick/append_and_delete"] = Story()
                                         .does(0, Op::kAppend, args(kA, kText))
                                         .does(1, Op::kAppend, args(kA, kX))
                                         .does(0, Op::kDeleteKey, args(kA))
                                         .does(0, Op::kDeleteKey, args(kA))
                                         .does(0, Op::kAppend, args(kA, kEmpty))
                                         .does(1, Op::kGet, args(kA));
  seeds["quick/lists_of_none_and_doubles"] = Story()
                                                 .does(0, Op::kMultiSet, args(0))
                                                 .does(0, Op::kMultiGet, args(0))
                                                 .does(0, Op::kCheck, args(0))
                                                 .does(0, Op::kWait, args(0))
                                                 .does(0, Op::kMultiSet, args(3, kA, kOne, kB, kX, kA, kText))
                                                 .does(0, Op::kMultiGet, args(2, kA, kA))
                                                 .does(0, Op::kWait, args(3, kC, kC, kC))
                                                 .does(1, Op::kSet, args(kC, kX));
}

// Requests that do and do not fit into a store of 400 to 1,600 bytes.
void add_full_stores(Seeds& seeds) {
  seeds["quick/store_full_of_values"] = Story()
                                            .has_small_store(12)
                                            .does(1, Op::kWait, args(1, kC))
                                            .does(0, Op::kSet, args(kA, kText))
                                            .does(0, Op::kSet, args(kC, kText))
                                            .does(0, Op::kSet, args(kA, kLongValue))
                                            .does(2, Op::kMultiSet, args(2, kA, kX, kB, kX))
                                            .does(3, Op::kDeleteKey, args(kA))
                                            .does(3, Op::kAdd, args(kB, kN1))
                                            .does(3, Op::kAppend, args(kB, kLongValue))
                                            .does(4, Op::kGet, args(kB));
  seeds["quick/store_full_of_waits"] = Story()
                                           .has_small_store(20)
                                           .does(0, Op::kWait, args(1, kA))
                                           .does(1, Op::kWait, args(2, kA, kB))
                                           .does(0, Op::kCancelWait)
                                           .does(2, Op::kBarrier, args(kC, kN2))
                                           .leaves(2)
                                           .does(3, Op::kBarrier, args(kC, kN3))
                                           .does(4, Op::kCompareSet, args(kA, kEmpty, kX))
                                           .does(5, Op::kListKeys);
  seeds["quick/store_full_of_items"] = Story()
                                           .has_small_store(40)
                                           .does(0, Op::kQueuePush, args(kA, kX))
                                           .does(1, Op::kQueuePush, args(kB, kX))
                                           .does(2, Op::kQueuePop, args(kA))
                                           .does(3, Op::kQueuePush, args(kB, kX))
                                           .does(3, Op::kQueueLen, args(kB))
                                           .does(3, Op::kQueuePop, args(kB))
                                           .does(3, Op::kQueuePush, args(kA, kLongValue));
}

void add_waits(Seeds& seeds) {
  seeds["quick/wait_for_two"] = Story()
                                    .does(0, Op::kWait, args(2, kA, kB))
                                    .does(1, Op::kSet, args(kA, kX))
                                    .does(1, Op::kDeleteKey, args(kA))
                                    .does(1, Op::kAdd, args(kB, kN1))
                                    .does(0, Op::kGet, args(kA));
  seeds["quick/one_set_wakes_all"] = Story()
                                         .does(0, Op::kWait, args(1, kA))
                                         .does(1, Op::kWait, args(2, kA, kB))
                                         .does(2, Op::kWait, args(1, kA))
                                         .does(3, Op::kAppend, args(kA, kEmpty))
                                         .does(3, Op::kMultiSet, args(2, kA, kX, kB, kX));
  seeds["quick/wait_replaced"] = Story()
                                     .does(0, Op::kWait, args(1, kA))
                                     .does(0, Op::kWait, args(1, kB))
                                     .does(1, Op::kSet, args(kA, kX))
                                     .does(0, Op::kWait, args(1, kA))
                                     .does(1, Op::kSet, args(kB, kX))
                                     .does(0, Op::kBarrier, args(kC, kN2))
                                     .does(0, Op::kWait, args(1, kInit))
                                     .does(1, Op::kBarrier, args(kC, kN2));
  seeds["quick/wait_cancelled"] = Story()
                                      .does(0, Op::kCancelWait)
                                      .does(0, Op::kWait, args(2, kA, kB))
                                      .does(0, Op::kCancelWait)
                                      .does(1, Op::kMultiSet, args(2, kA, kX, kB, kX))
                                      .does(0, Op::kWait, args(1, kC))
                                      .does(1, Op::kSet, args(kC, kX))
                                      .does(0, Op::kCancelWait);
  seeds["quick/waiting_client_leaves"] = Story()
                                             .does(0, Op::kWait, args(3, kA, kB, kA))
                                             .does(1, Op::kWait, args(1, kB))
                                             .does(2, Op::kBarrier, args(kC, kN3))
                                             .leaves(0)
                                             .leaves(2)
                                             .does(3, Op::kSet, args(kB, kX))
                                             .does(0, Op::kWait, args(1, kA))
                                             .does(3, Op::kSet, args(kA, kX));
  seeds["quick/own_request_ends_own_wait"] = Story()
                                                 .does(0, Op::kWait, args(1, kA))
                                                 .does(0, Op::kSet, args(kA, kX))
                                                 .does(0, Op::kWait, args(1, kB))
                                                 .does(0, Op::kQueuePush, args(kB, kX))
                                                 .does(0, Op::kWait, args(1, kC))
                                                 .does(0, Op::kPing, args(kN1));
  seeds["quick/queue"] = Story()
                             .does(0, Op::kQueuePop, args(kA))
                             .does(0, Op::kQueuePush, args(kA, kX))
                             .does(1, Op::kQueuePush, args(kA, kEmpty))
                             .does(0, Op::kCheck, args(1, kA))
                             .does(0, Op::kSet, args(kA, kText))
                             .does(0, Op::kQueuePop, args(kA))
                             .does(0, Op::kQueuePop, args(kA))
                             .does(0, Op::kQueueLen, args(kA))
                             .does(0, Op::kDeleteKey, args(kA))
                             .does(0, Op::kCheck, args(1, kA));
  seeds["quick/queue_wakes_the_longest"] = Story()
                                               .does(0, Op::kWait, args(2, kA, kB))
                                               .does(1, Op::kWait, args(1, kA))
                                               .does(2, Op::kWait, args(1, kA))
                                               .does(3, Op::kWait, args(1, kA))
                                               .leaves(1)
                                               .does(4, Op::kQueuePush, args(kA, kX))
                                               .does(4, Op::kQueuePush, args(kA, kX))
                                               .does(4, Op::kQueuePush, args(kA, kX))
                                               .does(4, Op::kQueuePush, args(kB, kX));
  seeds["quick/queue_named_twice"] = Story()
                                         .does(0, Op::kWait, args(3, kA, kB, kA))
                                         .does(1, Op::kWait, args(2, kB, kB))
                                         .does(2, Op::kQueuePush, args(kB, kX))
                                         .does(2, Op::kQueuePush, args(kA, kX))
                                         .does(2, Op::kQueuePush, args(kB, kX));
  seeds["quick/queue_item_for_nobody"] = Story()
                                             .does(0, Op::kWait, args(2, kA, kB))
                                             .does(1, Op::kWait, args(2, kA, kC))
                                             .does(2, Op::kBarrier, args(kA, kN3))
                                             .does(4, Op::kQueuePush, args(kA, kX))
                                             .leaves(0)
                                             .does(4, Op::kQueuePop, args(kA))
                                             .does(4, Op::kSet, args(kC, kX))
                                             .does(4, Op::kSet, args(kB, kX));
  seeds["quick/barrier"] = Story()
                               .does(0, Op::kBarrier, args(kA, kN3))
                               .does(1, Op::kBarrier, args(kA, kN3))
                               .does(3, Op::kWait, args(1, kA))
                               .does(3, Op::kGet, args(kA))
                               .does(2, Op::kBarrier, args(kA, kN3))
                               .does(3, Op::kBarrier, args(kA, kN3))
                               .does(3, Op::kBarrier, args(kB, kN1))
                               .does(3, Op::kBarrier, args(kC, kNLeast));
  seeds["quick/barrier_and_waits"] = Story()
                                         .does(0, Op::kWait, args(1, kA))
                                         .does(1, Op::kBarrier, args(kA, kN2))
                                         .does(2, Op::kWait, args(2, kA, kB))
                                         .does(1, Op::kQueuePush, args(kA, kX))
                                         .does(3, Op::kBarrier, args(kA, kN2))
                                         .does(0, Op::kBarrier, args(kB, kN3))
                                         .does(1, Op::kSet, args(kB, kZero))
                                         .does(0, Op::kBarrier, args(kC, kN3))
                                         .does(1, Op::kCompareSet, args(kC, kText, kX));
  seeds["quick/barrier_given_up"] = Story()
                                        .does(0, Op::kBarrier, args(kA, kN2))
                                        .does(0, Op::kCancelWait)
                                        .does(0, Op::kWait, args(1, kB))
                                        .does(1, Op::kBarrier, args(kA, kN2))
                                        .does(1, Op::kSet, args(kB, kX));
}

void add_bytes(Seeds& seeds) {
  using namespace store::test;
  seeds["quick/byte_by_byte"] = Story()
                                    .does(0, Op::kMultiSet, args(2, kA, kText, kB, kEmpty), 1)
                                    .does(0, Op::kAdd, args(kC, kN2), 1)
                                    .does(1, Op::kWait, args(2, kA, kInit), 3)
                                    .does(0, Op::kCompareSet, args(kInit, kEmpty, kX), 5)
                                    .does(1, Op::kPing, args(kN1), 2);
  seeds["quick/pipelined"] = Story()
                                 .does(0, Op::kSet, args(kA, kText), kHold)
                                 .does(0, Op::kWait, args(1, kB), kHold)
                                 .does(0, Op::kGet, args(kA), kHold)
                                 .does(0, Op::kSet, args(kB, kX), kHold)
                                 .does(0, Op::kCancelWait, {}, kHold)
                                 .does(0, Op::kGetNumKeys);
  seeds["quick/halves_of_two_clients"] = Story()
                                             .does(0, Op::kSet, args(kA) + word("one"), kHold + 12)
                                             .does(1, Op::kGet, args(kA), kHold + 9)
                                             .delivers(0, kHold + 4)
                                             .delivers(1, kHold + 1)
                                             .delivers(0)
                                             .delivers(1);
  seeds["quick/half_a_request_then_gone"] = Story()
                                                .does(0, Op::kMultiSet, args(2, kA, kX, kB, kX), kHold + 40)
                                                .leaves(0)
                                                .does(0, Op::kMultiGet, args(2, kA, kB))
                                                .does(1, Op::kWait, args(2, kA, kB), kHold + 20)
                                                .leaves(1);
  seeds["quick/raw_requests"] = Story()
                                    .sends(0, kHello + ping("\x39\x30") + std::string(2, 0) + add("init/", 1))
                                    .sends(0, set("/a", "bar") + wait({"/a", "/b"}) + get("/a"), 7)
                                    .sends(1, kHello.substr(0, 3))
                                    .sends(1, kHello.substr(3) + number(Op::kListKeys))
                                    .sends(1, set("/b", ""));
  seeds["quick/unknown_request"] = Story()
                                       .does(0, Op::kSet, args(kA, kX), kHold)
                                       .sends(0, std::string(1, 19) + get("/a"))
                                       .does(1, Op::kGet, args(kA))
                                       .sends(1, "\xFF");
  seeds["quick/validate_again"] =
      Story().does(0, Op::kWait, args(1, kA)).does(0, Op::kValidate).does(1, Op::kSet, args(kA, kX));
  const std::map<std::string, std::string> strangers = {
      {"http", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"tls", "\x16\x03\x01\x02"},
      {"ssh", "SSH-2.0-OpenSSH_9.2"},
      {"old_torch", number(Op::kSet) + text("/a") + text("x")},
      {"query_magic", std::string("\xCE\xF7\x85\x3C\x01", 5)},
      {"wrong_magic", std::string("\0\xCE\xF7\x85\x3D", 5)},
  };
  for (const auto& [name, bytes] : strangers) {
    seeds["quick/stranger_" + name] = Story().sends(0, bytes).sends(1, bytes, 1).does(2, Op::kListKeys);
  }
  seeds["quick/key_of_most_bytes"] =
      Story().does(0, Op::kSet, args(kKeyMost, kX)).does(0, Op::kGet, args(kKeyMost), 127).does(0, Op::kListKeys);
  seeds["quick/key_too_long"] = Story()
                                    .does(0, Op::kSet, args(kA, kX), kHold)
                                    .does(0, Op::kGet, args(kKeyTooLong))
                                    .does(1, Op::kCheck, args(2, kKey300, kA));
  seeds["quick/value_of_64_kib"] = Story()
                                       .does(0, Op::kCancelWait)
                                       .sends_value(0, Op::kAppend, 64 << 10, k64KiB)
                                       .does(1, Op::kAppend, args(kA, kX))
                                       .does(0, Op::kCompareSet, args(kA, kEmpty, kX), 100);
  seeds["quick/value_too_long"] = Story()
                                      .sends(0, kHello + number(Op::kSet) + text("/a") + i64((8 << 20) + 1))
                                      .sends(1, kHello + number(Op::kCompareSet) + text("/a") + i64(8 << 20))
                                      .sends(1, std::string(40, 'v'), 20)
                                      .does(2, Op::kGet, args(kA));
  seeds["quick/too_many_keys"] = Story()
                                     .sends(0, kHello + number(Op::kWait) + i64(131073))
                                     .sends(1, kHello + number(Op::kMultiSet) + i64(131072) + text("/a") + text("x"))
                                     .does(2, Op::kGet, args(kA));
  seeds["quick/patched_length"] = Story()
                                      .does(0, Op::kSet, args(kA, kText), kHold)
                                      .patches(0, 16, 2)
                                      .delivers(0)
                                      .does(1, Op::kCheck, args(1, kA), kHold)
                                      .patches(1, 6, 2)
                                      .delivers(1);
}

// What reaches the large limits; too slow to be varied.
void add_slow(Seeds& seeds) {
  using namespace store::test;
  seeds["slow/value_of_most_bytes"] = Story()
                                          .does(0, Op::kCancelWait)
                                          .sends_value(0, Op::kSet, 8 << 20, k8MiB)
                                          .does(0, Op::kGet, args(kA))
                                          .sends_value(0, Op::kSet, (8 << 20) + 1, k8MiB)
                                          .does(1, Op::kGetNumKeys);
  Story append;
  append.does(0, Op::kCancelWait);
  for (int i = 0; i < 7; ++i) append.sends_value(0, Op::kAppend, 8 << 20, k8MiB);
  append.sends_value(0, Op::kAppend, (8 << 20) - 8, k8MiBLess8);
  seeds["slow/append_beyond_64_mib"] =
      append.does(0, Op::kAppend, args(kA, kX)).does(1, Op::kCheck, args(1, kA)).does(1, Op::kGet, args(kA));
  seeds["slow/multi_get_beyond_64_mib"] =
      Story()
          .does(0, Op::kCancelWait)
          .sends_value(0, Op::kSet, 8 << 20, k8MiB)
          .does(0, Op::kMultiGet, args(7, kA, kA, kA, kA, kA, kA, kA))
          .sends(0, number(Op::kMultiGet) + key_list(std::vector<std::string>(8, "/a")))
          .does(1, Op::kGetNumKeys);
  for (const std::string key : {"", "k"}) {
    Story most;
    most.sends(0, kHello + number(Op::kMultiSet) + i64(8));
    for (int i = 0; i < 8; ++i) {
      most.sends(0, text(i == 7 ? key : "") + i64(8 << 20)).fills(0, 'v', k8MiB);
    }
    seeds[key.empty() ? "slow/request_of_64_mib" : "slow/request_beyond_64_mib"] = most.does(1, Op::kListKeys);
  }
  seeds["slow/check_of_most_keys"] = Story()
                                         .sends(0, kHello + number(Op::kCheck) + i64(131072))
                                         .fills(0, '\0', kMiB, 100)
                                         .does(0, Op::kPing, args(kN1));
  seeds["slow/multi_set_of_many"] =
      Story().sends(0, kHello + number(Op::kMultiSet) + i64(65536)).fills(0, '\0', kMiB).does(0, Op::kListKeys);
  // More than an input's share: of requests, of bytes in replies, of a list that is read anew for each byte.
  seeds["slow/too_many_requests"] = Story()
                                        .does(0, Op::kSet, args(kA, kX))
                                        .fills(0, static_cast<char>(Op::kCancelWait), k8MiB)
                                        .does(1, Op::kListKeys);
  seeds["slow/too_many_replies"] = Story()
                                       .does(0, Op::kSet, args(kKeyMost, kX))
                                       .does(0, Op::kSet, args(kKey300, kX))
                                       .fills(0, static_cast<char>(Op::kListKeys), kMiB)
                                       .does(1, Op::kListKeys);
  Story list;
  list.sends(0, kHello + number(Op::kCheck) + i64(131072));
  for (int i = 0; i < 15; ++i) list.fills(0, '\0', k64KiB);
  for (int i = 0; i < 300; ++i) list.sends(0, std::string(40, '\0'), 1);
  seeds["slow/list_byte_by_byte"] = list;
}

Seeds make_seeds() {
  Seeds seeds;
  add_values(seeds);
  add_full_stores(seeds);
  add_waits(seeds);
  add_bytes(seeds);
  add_slow(seeds);
  return seeds;
}

}  // namespace
}  // namespace elastic

int main(int count, char** arguments) {
  return elastic::seed_files::run("store_seeds", elastic::make_seeds(), count, arguments);
}
