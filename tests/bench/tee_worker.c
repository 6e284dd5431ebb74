// What the ranks of `scripts/bench tee` run.
//   tee_worker lines COUNT WRITE_BYTES      lines of 100 bytes, as many in a write as stdio would put there
//   tee_worker stamps COUNT PAUSE_US        lines that say when they were written (CLOCK_MONOTONIC, ns)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kLine = 100 };

static int write_whole(const char* text, size_t size) {
  while (size > 0) {
    ssize_t count = write(STDOUT_FILENO, text, size);
    if (count < 0) return 0;
    text += count;
    size -= (size_t)count;
  }
  return 1;
}

static int lines(long count, size_t at_once) {
  // One buffer of lines is written again and again: what is measured is not the making of text.
  size_t size = at_once * kLine;
  char* text = malloc(at_once * kLine);
  if (text == NULL) return 1;
  for (size_t at = 0; at < size; ++at) text[at] = at % kLine == kLine - 1 ? '\n' : (char)('a' + at % 26);
  // Writes end where they end, as those of stdio, seldom with a line.
  size_t left = (size_t)count * kLine;
  size_t begin = 0;
  while (left > 0) {
    size_t piece = size - begin < left ? size - begin : left;
    if (begin == 0 && piece > kLine) piece -= kLine / 2;
    if (!write_whole(text + begin, piece)) return 1;
    left -= piece;
    begin = (begin + piece) % size;
  }
  free(text);
  return 0;
}

static int stamps(long count, long pause_us) {
  const struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
  for (long i = 0; i < count; ++i) {
    char line[32];
    struct timespec now;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int size = snprintf(line, sizeof line, "%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    if (!write_whole(line, (size_t)size)) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long count = atol(argv[2]);
  const long other = atol(argv[3]);
  if (count < 0 || other < 1) return 2;
  if (strcmp(argv[1], "stamps") == 0) return stamps(count, other);
  return lines(count, (size_t)other / kLine + 1);
}
