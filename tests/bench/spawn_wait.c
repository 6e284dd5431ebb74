// spawn_wait N PROGRAM [ARGUMENT ...]: the least that a launcher can do, as a measure for one.
//
// Starts PROGRAM N times by vfork, setsid and execve, all with the environment and descriptors that
// it has itself, then waits for all of them. The setsid is there because a launcher that is to stop
// a worker with all its descendants needs it. There are no pipes, no signal set-up, no variables
// for each rank and no store. Ends with 0 if all did, else with 1; 2 for a bad command line.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  const int count = argc > 2 ? atoi(argv[1]) : 0;
  if (count < 1) {
    fprintf(stderr, "usage: spawn_wait N PROGRAM [ARGUMENT ...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    const pid_t pid = vfork();
    if (pid == 0) {
      setsid();
      execve(argv[2], argv + 2, environ);
      _exit(127);
    }
    if (pid < 0) {
      perror("vfork");
      return 1;
    }
  }
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) {
      failed = 1;
    }
  }
  return failed;
}
