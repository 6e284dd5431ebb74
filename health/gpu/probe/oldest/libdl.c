// The same as libc.c for libdl.so.2, which had these functions until glibc 2.34.
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}

FUNCTION(dladdr)
FUNCTION(dlclose)
FUNCTION(dlerror)
FUNCTION(dlopen)
FUNCTION(dlsym)
