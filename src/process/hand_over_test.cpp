#include "src/process/spawn.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

using namespace elastic;
using namespace elastic::process;

namespace {

// Opens a descriptor; it gets the lowest free number.
UniqueFd lowest() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

}  // namespace

TEST_CASE("a descriptor that is handed over takes the place of another and is inherited") {
  const auto way = HandOver::make();
  REQUIRE(way);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const UniqueFd high(fcntl(writing.get(), F_DUPFD_CLOEXEC, 500));
  REQUIRE(way->put(high.get()));
  const UniqueFd target = lowest();
  REQUIRE(take_descriptor(way->out(), target.get()) == 0);
  CHECK((fcntl(target.get(), F_GETFD) & FD_CLOEXEC) == 0);
  REQUIRE(write(target.get(), "here", 4) == 4);
  char bytes[8]{};
  CHECK(read(reading.get(), bytes, sizeof bytes) == 4);
  CHECK(std::string(bytes) == "here");
}

TEST_CASE("descriptors are taken in the order in which they were put in") {
  const auto way = HandOver::make();
  REQUIRE(way);
  const UniqueFd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd second(open("/dev/null", O_WRONLY | O_CLOEXEC));
  REQUIRE(way->put(first.get()));
  REQUIRE(way->put(second.get()));
  const UniqueFd one = lowest();
  const UniqueFd other = lowest();
  REQUIRE(take_descriptor(way->out(), one.get()) == 0);
  REQUIRE(take_descriptor(way->out(), other.get()) == 0);
  CHECK((fcntl(one.get(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  CHECK((fcntl(other.get(), F_GETFL) & O_ACCMODE) == O_WRONLY);
}

TEST_CASE("where nothing was put in there is an error and no wait") {
  const auto way = HandOver::make();
  REQUIRE(way);
  const int target = open("/dev/null", O_RDONLY | O_CLOEXEC);  // take_descriptor() closes it
  CHECK(take_descriptor(way->out(), target) == EAGAIN);
}

TEST_CASE("what is no descriptor is not handed over") {
  const auto way = HandOver::make();
  REQUIRE(way);
  const Status put = way->put(999'999);
  REQUIRE(!put);
  CHECK(put.error().reason == "Bad file descriptor");
}
