#include "rendezvous/store/test_requests.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "rendezvous/store/keyspace.h"

namespace elastic::store {
namespace {

using namespace test;

Bytes bytes_of(std::string_view data) { return {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}; }

// A server without sockets: a decoder and a keyspace, which turn the requests of clients into replies.
class InMemoryServer final : public Outbox {
 public:
  Replies& replies_to(ClientId client) override { return replies_[client]; }

  // The replies to the requests of client 1; VALIDATE is sent for it.
  std::string answers(const std::string& requests) {
    Decoder decoder;
    const std::string sent = kHello + requests;
    Bytes bytes = bytes_of(sent);
    Decoder::Step step = decoder.next(bytes);
    for (; step == Decoder::Step::kCommand; step = decoder.next(bytes)) {
      CHECK(keyspace_.apply(1, decoder.command(), *this).has_value());
    }
    CHECK(step == Decoder::Step::kNeedMore);
    return std::exchange(replies_[1], {}).whole();
  }

 private:
  Keyspace keyspace_;
  std::map<ClientId, Replies> replies_;
};

// Each reply in one line, and why the reader stopped.
std::vector<std::string> read(ReplyReader& reader, const std::string& data, std::size_t piece_size = 1 << 20) {
  std::vector<std::string> told;
  for (std::size_t at = 0; at < data.size(); at += piece_size) {
    Bytes bytes = bytes_of(std::string_view(data).substr(at, piece_size));
    ReplyReader::Step step = reader.next(bytes);
    for (; step == ReplyReader::Step::kReply; step = reader.next(bytes)) {
      std::string line = std::to_string(reader.number()) + " " + reader.text();
      for (const std::string& text : reader.texts()) line += "[" + text + "]";
      told.push_back(line);
    }
    if (step == ReplyReader::Step::kNonsense) {
      told.push_back("nonsense: " + reader.reason());
      return told;
    }
    CHECK(bytes.empty());
  }
  return told;
}

TEST_CASE("requests are the bytes that PyTorch's client sends") {
  CHECK(kHello == std::string("\x00\xCE\xF7\x85\x3C", 5));
  CHECK(made_by(put_ping, 12345U) == std::string("\x0d\x39\x30\x00\x00", 5));
  CHECK(set("/foo", "bar") == std::string("\x01\x04\0\0\0\0\0\0\0/foo\x03\0\0\0\0\0\0\0bar", 24));
  CHECK(add("init/", 1) == std::string("\x04\x05\0\0\0\0\0\0\0init/\x01\0\0\0\0\0\0\0", 22));
  CHECK(wait({"/foo"}) == std::string("\x06\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0/foo", 21));
  CHECK(made_by(put_barrier, "/foo", 2) == std::string("\x12\x04\0\0\0\0\0\0\0/foo\x02\0\0\0\0\0\0\0", 21));
}

TEST_CASE("each request is understood by our own store, and its reply is what PyTorch's client reads") {
  using List = std::vector<std::string>;
  using PairList = std::vector<std::pair<std::string, std::string>>;
  const List both{"/a", "/b"};
  std::string requests;
  ReplyReader whole;
  ReplyReader in_pieces;
  std::vector<std::string> expected;
  const auto ask = [&](const std::string& request) { requests += request; };
  const auto answered = [&](Reply shape, const std::string& line, std::size_t count = 1) {
    whole.expect(shape, count);
    in_pieces.expect(shape, count);
    expected.push_back(line);
  };
  ask(set("/a", "one"));
  ask(get("/a")), answered(Reply::kText, "0 one");
  ask(made_by(put_append, "/a", "+")), ask(get("/a")), answered(Reply::kText, "0 one+");
  ask(made_by(put_compare_set, "/a", "one+", "two")), answered(Reply::kText, "0 two");
  ask(add("/n", -7)), answered(Reply::kI64, "-7 ");
  ask(get("/a")), answered(Reply::kText, "0 two");
  ask(made_by(put_check, both)), answered(Reply::kByte, "1 ");
  ask(made_by(put_multi_set, PairList{{"/b", ""}, {"/c", "three"}}));
  ask(made_by(put_check, both)), answered(Reply::kByte, "0 ");
  ask(wait(both)), answered(Reply::kByte, "0 ");
  ask(made_by(put_multi_get, List{"/c", "/b", "/none"})), answered(Reply::kTexts, "0 [three][][]", 3);
  ask(made_by(put_multi_get, List{})), answered(Reply::kTexts, "0 ", 0);
  ask(made_by(put_get_num_keys)), answered(Reply::kI64, "4 ");
  ask(made_by(put_delete_key, "/n")), answered(Reply::kI64, "1 ");
  ask(made_by(put_ping, 0xFFFFFFFF)), answered(Reply::kU32, "4294967295 ");
  ask(made_by(put_queue_push, "/q", "job"));
  ask(made_by(put_queue_len, "/q")), answered(Reply::kI64, "1 ");
  ask(made_by(put_queue_pop, "/q")), answered(Reply::kPopped, "1 job");
  ask(made_by(put_queue_pop, "/q")), answered(Reply::kPopped, "0 ");
  ask(made_by(put_cancel_wait)), answered(Reply::kByte, "1 ");
  ask(made_by(put_delete_key, "/b") + made_by(put_delete_key, "/c"));
  answered(Reply::kI64, "1 "), answered(Reply::kI64, "1 ");
  ask(made_by(put_list_keys)), answered(Reply::kList, "1 [/a]");
  ask(made_by(put_barrier, "/all", 1)), answered(Reply::kByte, "0 ");

  InMemoryServer server;
  const std::string replies = server.answers(requests);
  CHECK(read(whole, replies) == expected);
  CHECK(read(in_pieces, replies, 1) == expected);
  CHECK(whole.expected() == 0);
}

TEST_CASE("bytes that nobody asked for are nonsense, and so is all that follows") {
  ReplyReader reader;
  reader.expect(Reply::kText);
  const std::vector<std::string> expected{"0 one", "nonsense: 2 bytes came although nothing was asked"};
  CHECK(read(reader, text("one") + "xx") == expected);
  reader.expect(Reply::kText);
  CHECK(read(reader, "x").back().starts_with("nonsense"));
}

TEST_CASE("a reply longer than any can be is nonsense when its length has come") {
  const auto most = static_cast<std::int64_t>(kReplyBytes);
  for (const std::int64_t length : {most + 1, std::int64_t{-1}}) {
    ReplyReader reader;
    reader.expect(Reply::kText);
    CHECK(read(reader, i64(length)).back().starts_with("nonsense: a text of "));
  }
  ReplyReader enough;
  enough.expect(Reply::kText);
  CHECK(read(enough, i64(most)).empty());
}

}  // namespace
}  // namespace elastic::store
