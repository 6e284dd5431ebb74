// A static program has no name service switch. libuv refers to this function (for a home directory that
// nobody here asks for); with glibc's own, the linker would pull in NSS and warn that it cannot work.
#include <errno.h>
#include <pwd.h>
#include <stddef.h>

int getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, struct passwd** result) {
  (void)uid;
  (void)entry;
  (void)buffer;
  (void)size;
  *result = NULL;
  return ENOENT;
}
