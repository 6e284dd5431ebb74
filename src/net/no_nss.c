// A static program has no name service switch. libuv refers to getpwuid_r (for a home directory that nobody
// here asks for), c-ares to getservby...() (for the names of services, which nobody here gives it); with
// glibc's own, the linker would pull in NSS and warn that it cannot work.
#include <errno.h>
#include <netdb.h>
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

struct servent* getservbyname(const char* name, const char* protocol) {
  (void)name;
  (void)protocol;
  return NULL;
}

int getservbyport_r(int port, const char* protocol, struct servent* entry, char* buffer, size_t size,
                    struct servent** result) {
  (void)port;
  (void)protocol;
  (void)entry;
  (void)buffer;
  (void)size;
  *result = NULL;
  return ENOENT;
}
