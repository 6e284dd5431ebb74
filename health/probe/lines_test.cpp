#include "health/probe/lines.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "src/base/check.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;

namespace {

struct Pair {
  Pair() {
    int ends[2];
    ELASTIC_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  void say(const std::string& text) const {
    REQUIRE(send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  UniqueFd ours, theirs;
};

}  // namespace

TEST_CASE("lines are read one after the other, in whatever pieces they come, and one without an end is none") {
  Pair pair;
  Lines lines(pair.ours.get(), 100);
  pair.say("one\ntw");
  CHECK(lines.read() == "one");
  pair.say("o\n\nthree");
  CHECK(lines.read() == "two");
  CHECK(lines.read() == "");
  pair.theirs = UniqueFd();
  CHECK(!lines.read());
  CHECK(lines.is_closed());
  CHECK(lines.why() == "it closed the connection");
}

TEST_CASE("a line is as long as agreed, and no longer, whether its end has come or not") {
  for (const bool has_end : {true, false}) {
    Pair pair;
    Lines lines(pair.ours.get(), 4);
    pair.say("1234\n");
    CHECK(lines.read() == "1234");
    pair.say(has_end ? "12345\n" : "12345");
    CHECK(!lines.read());
    CHECK(lines.why() == "it sent a line that is too long");
    CHECK(!lines.is_closed());
  }
  Pair pair;
  CHECK(Lines(pair.theirs.get(), 4).write("123456"));
  CHECK(Lines(pair.ours.get(), 100).read() == "1234");
}

TEST_CASE("who says nothing, and who takes nothing, is waited for until the deadline") {
  Pair pair;
  const Deadline deadline(20);
  Lines lines(pair.ours.get(), 1 << 24);
  CHECK(!lines.read(&deadline));
  CHECK(lines.why() == "it did not answer within " + deadline.span());
  CHECK(!lines.is_closed());
  CHECK(!lines.write(std::string(1 << 24, 'x'), &deadline));
}

TEST_CASE("what does not fit at once is written as the other end takes it") {
  Pair pair;
  const std::string text(1 << 22, 'x');
  std::thread writer([&] { CHECK(Lines(pair.theirs.get(), text.size()).write(text)); });
  CHECK(Lines(pair.ours.get(), text.size()).read() == text);
  writer.join();
}

TEST_CASE("a line for nobody is not written") {
  Pair pair;
  Lines lines(pair.ours.get(), 100);
  pair.theirs = UniqueFd();
  CHECK(!lines.write("x"));
  CHECK(lines.is_closed());
}
