#include "src/net/interfaces.h"

#include <doctest/doctest.h>
#include <ifaddrs.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace elastic::net {
namespace {

TEST_CASE("the loopback interface is among the interfaces, up, with its address") {
  const std::vector<Interface> all = interfaces();
  const auto loopback = std::ranges::find_if(all, [](const Interface& one) { return one.address == "127.0.0.1"; });
  REQUIRE(loopback != all.end());
  CHECK(loopback->loopback);
  CHECK(loopback->up);
  CHECK_FALSE(loopback->name.empty());
}

TEST_CASE("every interface has a numeric address without a scope, and only loopback has loopback's") {
  for (const Interface& one : interfaces()) {
    CAPTURE(one.name);
    CAPTURE(one.address);
    CHECK_FALSE(one.address.empty());
    CHECK(one.address.find_first_not_of("0123456789abcdef:.") == std::string::npos);
    if (is_loopback(one.address)) CHECK(one.loopback);
  }
}

TEST_CASE("where no descriptor is left there are no interfaces, and no crash") {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    _exit(setrlimit(RLIMIT_NOFILE, &none) == 0 && interfaces().empty() && interfaces().empty() ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace elastic::net
