#include "src/net/loop.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "src/base/check.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::net;

TEST_CASE("a watch may be ended by its own callback, which goes on") {
  int ends[2];
  ELASTIC_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  Loop loop;
  std::optional<ReadWatch> watch;
  std::string told;
  const std::string text(1000, 'x');  // kept by the callback, on the heap
  watch.emplace(loop, ours.get(), [&loop, &watch, &told, text] {
    watch.reset();
    told = text;
    loop.stop();
  });
  REQUIRE(send(theirs.get(), "x", 1, 0) == 1);
  loop.run();
  CHECK(told == text);
}
