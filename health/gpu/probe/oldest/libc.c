// elastic-gpu-probe is linked with this library instead of the C library. It has all functions that the probe may use,
// and the first glibc for x86-64, 2.2.5, has them as well. A call of another function does not link, whatever glibc the
// build system has. Nothing in here ever runs.
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}

FUNCTION(__errno_location)
FUNCTION(__libc_start_main)
FUNCTION(_exit)
FUNCTION(access)
FUNCTION(dup2)
FUNCTION(fcntl)
FUNCTION(fprintf)
FUNCTION(free)
FUNCTION(getenv)
FUNCTION(malloc)
FUNCTION(memchr)
FUNCTION(memcmp)
FUNCTION(memcpy)
FUNCTION(memmove)
FUNCTION(memset)
FUNCTION(qsort)
FUNCTION(read)
FUNCTION(setenv)
FUNCTION(signal)
FUNCTION(snprintf)
FUNCTION(sprintf)
FUNCTION(strchr)
FUNCTION(strcmp)
FUNCTION(strdup)
FUNCTION(strerror)
FUNCTION(strlen)
FUNCTION(strrchr)
FUNCTION(strspn)
FUNCTION(strtok_r)
FUNCTION(syscall)
FUNCTION(vsnprintf)
FUNCTION(write)

void* stderr;
