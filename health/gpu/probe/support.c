#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "health/gpu/probe/probe.h"

// glibc has clock_gettime in libc since 2.17 only; the system call is older.
double now_ms(void) {
  struct timespec now = {0, 0};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void pause_us(long microseconds) {
  struct timespec length = {microseconds / 1000000, microseconds % 1000000 * 1000};
  syscall(SYS_nanosleep, &length, (void*)0);
}

// Newer headers make atoi a call of a function that glibc has since 2.38 only.
int leading_number(const char* text) {
  int number = 0;
  for (; *text >= '0' && *text <= '9' && number < 100000000; ++text) number = number * 10 + (*text - '0');
  return number;
}
