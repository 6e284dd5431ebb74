#include "src/process/descriptors.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace elastic::process {
namespace {

// What getdents64 writes, one after the other; the name follows and ends with NUL (getdents64(2)).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
};
constexpr std::size_t kNameOffset = offsetof(DirectoryEntry, type) + 1;

// The number that a name of /proc/self/fd is; -1 for "." and "..".
int number_of(const char* name) {
  int number = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    number = number * 10 + (*name - '0');
  }
  return number;
}

bool close_those_listed(int first) {
  const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return false;
  alignas(DirectoryEntry) char buffer[2048];
  for (;;) {
    const long count = syscall(SYS_getdents64, list, buffer, sizeof buffer);
    if (count <= 0) break;
    for (long at = 0; at < count;) {
      DirectoryEntry entry;
      std::memcpy(&entry, buffer + at, sizeof entry);
      const int number = number_of(buffer + at + kNameOffset);
      if (number >= first && number != list) close(number);
      at += entry.size;
    }
  }
  close(list);
  return true;
}

}  // namespace

void close_descriptors_from(int first, rlim_t limit) {
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0) == 0) return;
  if (close_those_listed(first)) return;
  for (rlim_t fd = static_cast<rlim_t>(first); fd < limit; ++fd) close(static_cast<int>(fd));
}

}  // namespace elastic::process
