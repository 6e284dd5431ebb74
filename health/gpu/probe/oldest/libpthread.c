// As libc.c, of libpthread.so.0: nothing of it is used. It is loaded from the start, since NCCL needs it and glibc
// before 2.34 does not like it to come later.
void pthread_self(void);
void pthread_self(void) {}
