#include "health/gpu/probe/reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void begin(JsonLine* line) {
  json_start(line);
  json_open(line, NULL, '{');
}

void reply_start(Reply* reply) {
  reply->outcome = kOk;
  begin(&reply->line);
  json_bool(&reply->line, "ok", true);
}

static void set_reason(Reply* reply, Outcome outcome, const char* format, va_list values) {
  reply->outcome = outcome;
  reply->is_defect = false;
  vsnprintf(reply->why, sizeof reply->why, format, values);
}

void reply_failed(Reply* reply, const char* format, ...) {
  va_list values;
  va_start(values, format);
  set_reason(reply, kFailed, format, values);
  va_end(values);
}

void reply_defect(Reply* reply, const char* format, ...) {
  va_list values;
  va_start(values, format);
  set_reason(reply, kFailed, format, values);
  va_end(values);
  reply->is_defect = true;
}

void reply_unavailable(Reply* reply, const char* format, ...) {
  va_list values;
  va_start(values, format);
  set_reason(reply, kUnavailable, format, values);
  va_end(values);
}

static bool write_all(int descriptor, const char* bytes, size_t count) {
  while (count != 0) {
    ssize_t written = write(descriptor, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    count -= (size_t)written;
  }
  return true;
}

bool reply_send(int descriptor, Reply* reply) {
  JsonLine* line = &reply->line;
  json_close(line, '}');
  if (reply->outcome == kOk && line->is_full) reply_failed(reply, "the reply is longer than %d bytes", kLineBytes);
  if (reply->outcome != kOk) {
    begin(line);
    json_text(line, reply->outcome == kFailed ? "failed" : "unavailable", reply->why);
    if (reply->is_defect) json_bool(line, "defect", true);
    json_close(line, '}');
  }
  line->bytes[line->length++] = '\n';
  return write_all(descriptor, line->bytes, line->length);
}
