// As libc.c, of libdl.so.2, where these were until glibc 2.34.
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}

FUNCTION(dladdr)
FUNCTION(dlclose)
FUNCTION(dlerror)
FUNCTION(dlopen)
FUNCTION(dlsym)
