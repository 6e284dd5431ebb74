#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "health/gpu/probe/probe.h"

enum { kUsualProduct = 8192, kLeastProduct = 16, kMostProduct = 16384 };

// --- Environment ---------------------------------------------------------------------------------------

// Sets the variables that NCCL_SETTINGS lists ("NAME=value,NAME=value"), as DLRover's own check does.
static void apply_settings(void) {
  const char* given = getenv("NCCL_SETTINGS");
  char* settings = given != NULL ? strdup(given) : NULL;
  char* rest = NULL;
  for (char* item = settings != NULL ? strtok_r(settings, ",", &rest) : NULL; item != NULL;
       item = strtok_r(NULL, ",", &rest)) {
    item += strspn(item, " ");
    char* equals = strchr(item, '=');
    if (equals == NULL || equals == item) {
      fprintf(stderr, "elastic-gpu-probe: NCCL_SETTINGS has \"%s\", which is not NAME=value\n", item);
      continue;
    }
    *equals = '\0';
    setenv(item, equals + 1, 1);
  }
  free(settings);
}

// Rows and columns of the matrices. The tests make them smaller, since a CPU multiplies them there.
static uint64_t product_size(void) {
  const char* given = getenv("ELASTIC_RUN_PROBE_PRODUCT");
  int size = given != NULL ? leading_number(given) : 0;
  return size >= kLeastProduct && size <= kMostProduct && size % 16 == 0 ? (uint64_t)size : kUsualProduct;
}

// --- Lines ---------------------------------------------------------------------------------------------

typedef struct {
  int descriptor;
  char bytes[kLineBytes];
  size_t filled;
  size_t taken;  // the length of the line that was handed out last, which is still at the front
} Input;

typedef enum { kLine, kTooLong, kEnd } Arrival;

static bool read_more(Input* input) {
  ssize_t count;
  do {
    count = read(input->descriptor, input->bytes + input->filled, sizeof input->bytes - input->filled);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  input->filled += (size_t)count;
  return true;
}

// Hands out the next line without its "\n", valid until the next call. A line that is too long is skipped up to its
// end.
static Arrival next_line(Input* input, char** line, size_t* length) {
  bool is_too_long = false;
  memmove(input->bytes, input->bytes + input->taken, input->filled - input->taken);
  input->filled -= input->taken;
  input->taken = 0;
  for (;;) {
    char* end = memchr(input->bytes, '\n', input->filled);
    if (end != NULL) {
      *line = input->bytes;
      *length = (size_t)(end - input->bytes);
      input->taken = *length + 1;
      return is_too_long ? kTooLong : kLine;
    }
    if (input->filled == sizeof input->bytes) {
      is_too_long = true;
      input->filled = 0;
    }
    if (!read_more(input)) return kEnd;
  }
}

// --- Requests ------------------------------------------------------------------------------------------

static void answer(Probe* probe, char* line, size_t length, Reply* reply) {
  static Request request;
  const char* wrong = request_read(line, length, &request);
  if (wrong != NULL) {
    reply_failed(reply, "the request cannot be read: %s", wrong);
    return;
  }
  const char* what = request_text(&request, "do");
  if (what == NULL)
    reply_failed(reply, "the request does not say what to do");
  else if (strcmp(what, "open") == 0)
    do_open(probe, &request, reply);
  else if (strcmp(what, "compute") == 0)
    do_compute(probe, reply);
  else if (strcmp(what, "id") == 0)
    do_id(probe, reply);
  else if (strcmp(what, "gather") == 0)
    do_gather(probe, &request, reply);
  else if (strcmp(what, "facts") == 0)
    do_facts(probe, &request, reply);
  else
    reply_failed(reply, "an unknown request: %s", what);
}

static void serve(Probe* probe, Input* input) {
  static Reply reply;
  char* line;
  size_t length;
  for (;;) {
    Arrival arrival = next_line(input, &line, &length);
    if (arrival == kEnd) return;
    reply_start(&reply);
    if (arrival == kTooLong)
      reply_failed(&reply, "the request is longer than %d bytes", kLineBytes);
    else
      answer(probe, line, length, &reply);
    if (!reply_send(input->descriptor, &reply)) return;
    abort_doomed(probe);
  }
}

int main(void) {
  static Probe probe;
  static Input input;
  signal(SIGPIPE, SIG_IGN);
  // NCCL prints to stdout, so the socket gets another descriptor and stdout becomes stderr.
  input.descriptor = fcntl(STDOUT_FILENO, F_DUPFD, 3);
  if (input.descriptor < 0 || fcntl(input.descriptor, F_SETFD, FD_CLOEXEC) < 0 ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    fprintf(stderr, "elastic-gpu-probe: stdout has to be a socket, from which requests are read: %s\n",
            strerror(errno));
    return 2;
  }
  apply_settings();
  probe.product_size = product_size();
  serve(&probe, &input);
  _exit(0);  // without the libraries' exit handlers, which may hang
}
