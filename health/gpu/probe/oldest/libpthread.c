// The same as libc.c for libpthread.so.0. The probe uses no function of it, but loads it at its start: NCCL needs it,
// and before 2.34 glibc did not work reliably when it was loaded later.
void pthread_self(void);
void pthread_self(void) {}
