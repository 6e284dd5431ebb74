// Every request once, every reply looked at: --verify.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "src/base/text.h"
#include "tests/bench/store_load_connections.h"

namespace elastic::store_load {
namespace {

using store::test::made_by;
using store::test::Reply;
using store::test::ReplyReader;
using KeyList = std::vector<std::string>;
using PairList = std::vector<std::pair<std::string, std::string>>;

// A request that may have no reply of its own, one that has, and that reply: "number text[text]...".
struct Question {
  std::string name;
  std::string requests;
  Reply shape;
  std::string right;
  std::size_t texts = 1;  // of Reply::kTexts
};

// In their order; `at` begins every key.
std::vector<Question> questions(const std::string& at, const std::string& value) {
  using namespace store;
  using namespace store::test;
  const std::string a = at + "a", b = at + "b", c = at + "c", n = at + "n", q = at + "q", all = at + "all";
  return {
      {"PING", made_by(put_ping, 0xFFFFFFFFU), Reply::kU32, "4294967295 "},
      {"CHECK", made_by(put_check, KeyList{a}), Reply::kByte, "1 "},
      {"SET", made_by(put_set, a, value) + made_by(put_check, KeyList{a}), Reply::kByte, "0 "},
      {"GET", get(a), Reply::kText, "0 " + value},
      {"APPEND", made_by(put_append, a, "+") + get(a), Reply::kText, "0 " + value + "+"},
      {"COMPARE_SET", made_by(put_compare_set, a, value + "+", "new"), Reply::kText, "0 new"},
      {"COMPARE_SET", made_by(put_compare_set, a, "old", "newer"), Reply::kText, "0 new"},
      {"ADD", made_by(put_add, n, 5), Reply::kI64, "5 "},
      {"ADD", made_by(put_add, n, -7), Reply::kI64, "-2 "},
      {"MULTI_SET", made_by(put_multi_set, PairList{{b, ""}, {c, "last"}}) + get(c), Reply::kText, "0 last"},
      {"MULTI_GET", made_by(put_multi_get, KeyList{c, b, a}), Reply::kTexts, "0 [last][][new]", 3},
      {"WAIT", made_by(put_wait, KeyList{a, b}), Reply::kByte, "0 "},
      {"WAIT", made_by(put_wait, KeyList{at + "never"}) + made_by(put_ping, 1U), Reply::kU32, "1 "},
      {"CANCEL_WAIT", made_by(put_cancel_wait), Reply::kByte, "1 "},
      {"QUEUE_LEN", made_by(put_queue_len, q), Reply::kI64, "0 "},
      {"QUEUE_PUSH", made_by(put_queue_push, q, "job") + made_by(put_queue_len, q), Reply::kI64, "1 "},
      {"QUEUE_POP", made_by(put_queue_pop, q), Reply::kPopped, "1 job"},
      {"QUEUE_POP", made_by(put_queue_pop, q), Reply::kPopped, "0 "},
      {"BARRIER", made_by(put_barrier, all, 1), Reply::kByte, "0 "},
      {"DELETE_KEY", made_by(put_delete_key, n), Reply::kI64, "1 "},
      {"DELETE_KEY", made_by(put_delete_key, n), Reply::kI64, "0 "},
      {"DELETE_KEY", made_by(put_delete_key, all), Reply::kI64, "1 "},
  };
}

// A client that asks one thing after the other and compares what it hears.
class Questioner {
 public:
  Questioner(const Options& options, Figures& figures, std::vector<std::string>& verified)
      : options_(options), figures_(figures), verified_(verified) {}

  Status open() {
    auto sockets = open_greeted(options_, 1);
    if (!sockets) return std::unexpected(std::move(sockets.error()));
    socket_ = std::move((*sockets)[0]);
    return {};
  }

  Status send(std::string_view bytes) {
    if (!socket_.send(bytes)) return std::unexpected(lost(options_, "it closed the connection"));
    if (bytes.empty()) return {};
    return fail(format("--value-bytes={}", options_.value_bytes), "more than the kernel takes at once; take less");
  }

  Status ask(const Question& question) {
    if (auto sent = send(question.requests); !sent) return sent;
    return hear(question);
  }

  Status hear(const Question& question) {
    reader_.expect(question.shape, question.texts);
    if (auto read = receive(question.name); !read) return read;
    std::string told = format("{} {}", reader_.number(), reader_.text());
    for (const std::string& text : reader_.texts()) told += format("[{}]", text);
    judge(question.name, told == question.right, told);
    return {};
  }

  // Whatever other keys a server has, it must name these; GETNUMKEYS is as many as it names.
  Status ask_for_keys(const KeyList& keys) {
    if (auto asked = one("LIST_KEYS", made_by(store::test::put_list_keys), Reply::kList); !asked) return asked;
    const KeyList named = reader_.texts();
    const bool all = std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return std::find(named.begin(), named.end(), key) != named.end();
    });
    judge("LIST_KEYS", all, format("{} keys without ours", named.size()));
    if (auto asked = one("GETNUMKEYS", made_by(store::test::put_get_num_keys), Reply::kI64); !asked) return asked;
    judge("GETNUMKEYS", reader_.number() == static_cast<std::int64_t>(named.size()),
          format("{}, but LIST_KEYS {}", reader_.number(), named.size()));
    return {};
  }

 private:
  Status one(const std::string& name, const std::string& request, Reply shape) {
    if (auto sent = send(request); !sent) return sent;
    reader_.expect(shape);
    return receive(name);
  }

  Status receive(const std::string& name) {
    for (;;) {
      const auto step = reader_.next(unread_);
      if (step == ReplyReader::Step::kReply) return {};
      if (step == ReplyReader::Step::kNonsense) return std::unexpected(lost(options_, name + ": " + reader_.reason()));
      pollfd readable{socket_.fd(), POLLIN, 0};
      if (poll(&readable, 1, kPatienceMs) != 1) {
        return std::unexpected(lost(options_, name + " was not answered within ten seconds"));
      }
      if (!socket_.receive(unread_)) return std::unexpected(lost(options_, name + ": it closed the connection"));
    }
  }

  void judge(const std::string& name, bool right, const std::string& told) {
    ++figures_.operations;
    if (!right) {
      figures_.error(format("{} was answered wrongly: {}", name, printable(told)));
    } else if (std::find(verified_.begin(), verified_.end(), name) == verified_.end()) {
      verified_.push_back(name);
    }
  }

  const Options& options_;
  Figures& figures_;
  std::vector<std::string>& verified_;
  Socket socket_;
  store::Bytes unread_;  // of the last receive(); a question has one reply, so none is left for another
  ReplyReader reader_;
};

// A WAIT and a BARRIER that another client ends.
Status ask_two(Questioner& first, Questioner& second, const std::string& at) {
  using namespace store;
  using namespace store::test;
  const std::string key = at + "w", barrier = at + "both";
  const std::string then_ping = made_by(put_ping, 7U);
  const Question stands{"WAIT", made_by(put_wait, KeyList{key}) + then_ping, Reply::kU32, "7 "};
  if (auto asked = first.ask(stands); !asked) return asked;
  if (auto sent = second.send(made_by(put_set, key, "")); !sent) return sent;
  if (auto heard = first.hear({"WAIT", {}, Reply::kByte, "0 "}); !heard) return heard;
  const Question alone{"BARRIER", made_by(put_barrier, barrier, 2) + then_ping, Reply::kU32, "7 "};
  if (auto asked = first.ask(alone); !asked) return asked;
  if (auto asked = second.ask({"BARRIER", made_by(put_barrier, barrier, 2), Reply::kByte, "0 "}); !asked) return asked;
  return first.hear({"BARRIER", {}, Reply::kByte, "0 "});
}

Status ask_all(const Options& options, Figures& figures, std::vector<std::string>& verified) {
  if (auto allowed = allow_sockets(2); !allowed) return allowed;
  const std::string at = format("/verify/{}/", getpid());
  Questioner first(options, figures, verified), second(options, figures, verified);
  for (Questioner* const each : {&first, &second}) {
    if (auto opened = each->open(); !opened) return opened;
  }
  for (const Question& question : questions(at, std::string(options.value_bytes, 'v'))) {
    if (auto asked = first.ask(question); !asked) return asked;
  }
  if (auto asked = ask_two(first, second, at); !asked) return asked;
  if (auto asked = first.ask_for_keys({at + "a", at + "b", at + "c"}); !asked) return asked;
  for (const char* key : {"a", "b", "c", "w", "both"}) {  // nothing is left behind
    if (auto asked = first.ask({"DELETE_KEY", made_by(store::test::put_delete_key, at + key), Reply::kI64, "1 "});
        !asked) {
      return asked;
    }
  }
  return {};
}

}  // namespace

Result<Figures> run_verify(const Options& options, std::vector<std::string>& verified) {
  Figures figures;
  if (auto done = ask_all(options, figures, verified); !done) return std::unexpected(std::move(done.error()));
  return figures;
}

}  // namespace elastic::store_load
