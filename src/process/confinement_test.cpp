#include "src/process/confinement.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>

using namespace elastic;
using namespace elastic::process;

#ifndef __SANITIZE_ADDRESS__  // with the sanitizer nothing is confined
namespace {

// How a child that does this ends: minus its signal, or its exit code.
int end_of(int (*work)()) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(work());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// 0, or the errno of a connection to a port at which nobody listens.
int try_to_connect() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return errno;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(1);
  return connect(made, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 ? 0 : errno;
}

bool takes(std::size_t bytes) {
  void* volatile memory = std::malloc(bytes);
  return memory != nullptr;
}

}  // namespace

TEST_CASE("a confined process reads files, and is killed when it does anything else") {
  CHECK(end_of([] {
          if (!confine({})) return 1;
          const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
          char text[64];
          if (read(file, text, sizeof text) <= 0) return 2;
          std::error_code error;
          if (std::filesystem::directory_iterator("/proc/self/fd", error) == std::filesystem::directory_iterator())
            return 3;
          return std::filesystem::read_symlink("/proc/self/exe", error).empty() ? 4 : 0;
        }) == 0);
  CHECK(end_of([] { return confine({}) ? socket(AF_INET, SOCK_STREAM, 0) : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({}) ? kill(getppid(), 0) : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({}) ? fork() : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({}) ? execl("/bin/true", "true", nullptr) : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({}) ? open("/dev/null", O_WRONLY) : 0; }) == -SIGSYS);
}

TEST_CASE("a confined process that may connect does so over the Internet's protocols only") {
  CHECK(end_of([] { return confine({.may_connect = true}) ? try_to_connect() : 0; }) == ECONNREFUSED);
  CHECK(end_of([] { return confine({.may_connect = true}) ? socket(AF_UNIX, SOCK_STREAM, 0) : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({.may_connect = true}) ? fork() : 0; }) == -SIGSYS);
  CHECK(end_of([] { return confine({.may_connect = true}) ? open("/dev/null", O_WRONLY) : 0; }) == -SIGSYS);
}

TEST_CASE("a confined process has no more memory than it is given") {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  // This process has much itself.
  CHECK(end_of([] { return confine({.memory_bytes = 64 * kBytes}) && takes(kBytes) ? 0 : 1; }) == 0);
  CHECK(end_of([] { return confine({.memory_bytes = kBytes}) && !takes(kBytes) ? 0 : 1; }) == 0);
}
#endif
