// A rank of scripts/soak output. Writes lines to stdout and stderr in turns, of random lengths and, unless
// they are to be whole, in pieces that end anywhere. A line tells whose it is and has a sum of its bytes:
//
//   <rank> <stream> <turn> <number> <letters> <sum> abc... <number> <letters>\n
//
// <turn> counts the lines of both streams, <number> those of this one; <sum> is Adler-32. The rest of a line whose
// beginning is gone says how long it was. The last line of a stream ends with " end", and without a line end.
//
//   output_worker SEED BYTES HOW SECONDS
//
// BYTES to each stream, or a few more, in bursts spread over so many seconds. HOW: pieces; whole, each line by one
// write() of less than PIPE_BUF bytes, stdout is shared; merged, the same, both streams go to one place.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kLongest = 200 * 1024, kHead = 128, kBurst = 64 * 1024 };

static uint64_t state;

static uint32_t below(uint32_t bound) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % bound;
}

static int write_all(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t count = write(fd, text, size);
    if (count < 0 && errno != EINTR) return -1;
    if (count <= 0) continue;
    text += count;
    size -= (size_t)count;
  }
  return 0;
}

// Most lines are short, a few longer than a pipe holds, or than the console has in one piece.
static uint32_t length_of_line(int whole) {
  const uint32_t kind = below(1000);
  if (whole) return kind < 50 ? below(3900) : below(1500);
  if (kind < 5) return 64 * 1024 + below(kLongest - 64 * 1024);
  if (kind < 15) return below(64 * 1024);
  return kind < 300 ? below(4096) : below(200);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const unsigned rank = (unsigned)atoi(getenv("RANK"));
  const uint64_t bytes = strtoull(argv[2], NULL, 10);
  const int merged = strcmp(argv[3], "merged") == 0, whole = merged || strcmp(argv[3], "whole") == 0;
  state = strtoull(argv[1], NULL, 10) * 1000003 + rank;
  const double seconds = atof(argv[4]);
  uint64_t burst_end = kBurst;
  struct timespec began;
  clock_gettime(CLOCK_MONOTONIC, &began);
  char* line = malloc(kLongest + 2 * kHead);
  uint64_t written[2] = {0, 0}, number[2] = {0, 0};
  for (uint64_t turn = 0; written[0] < bytes || written[1] < bytes; ++turn) {
    const int stream = written[0] >= bytes ? 1 : written[1] >= bytes ? 0 : (int)below(2);
    const uint32_t length = length_of_line(whole);
    char letters = (char)('a' + below(26));
    uint32_t low = 1, high = 0;
    size_t size = (size_t)snprintf(line, kHead, "%u %d %llu %llu %u ", rank, stream + 1, (unsigned long long)turn,
                                   (unsigned long long)number[stream], length);
    char body[26];
    for (int i = 0; i < 26; ++i) body[i] = (char)('a' + (letters - 'a' + i) % 26);
    for (uint32_t i = 0; i < length; ++i) {
      low = (low + (unsigned char)body[i % 26]) % 65521;
      high = (high + low) % 65521;
    }
    size += (size_t)snprintf(line + size, kHead - size, "%u ", high << 16 | low);
    for (uint32_t i = 0; i < length; ++i) line[size + i] = body[i % 26];
    size += length;
    size += (size_t)snprintf(line + size, kHead, " %llu %u", (unsigned long long)number[stream], length);
    ++number[stream];
    written[stream] += size + 1;
    const int is_last = written[stream] >= bytes;
    if (is_last) size += (size_t)snprintf(line + size, kHead, " end");
    // Where others write behind it to the same open file it would be one with what follows.
    const int is_shared = whole && (merged ? written[1 - stream] < bytes : stream == 0);
    const int has_end = !is_last || is_shared;
    if (has_end) line[size++] = '\n';
    for (size_t at = 0; at < size;) {
      size_t piece = whole || below(4) != 0 ? size : 1 + below(2 * 4096);
      if (piece > size - at) piece = size - at;
      if (write_all(stream + 1, line + at, piece) != 0) return 3;
      at += piece;
    }
    if (below(2000) == 0) nanosleep(&(struct timespec){.tv_nsec = (long)below(20) * 1000 * 1000}, NULL);
    if (seconds == 0 || written[0] + written[1] < burst_end) continue;
    burst_end += 1 + below(2 * kBurst);
    const double due = seconds * (double)(written[0] + written[1]) / (2.0 * (double)bytes);
    struct timespec until = {began.tv_sec + (time_t)due, began.tv_nsec};
    until.tv_nsec += (long)((due - (double)(time_t)due) * 1e9);
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  return 0;
}
