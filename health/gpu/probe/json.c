#include "health/gpu/probe/json.h"

#include <stdio.h>
#include <string.h>

size_t json_room(const JsonLine* line) {
  // One byte is kept for the "\n" that reply_send() adds.
  return line->is_full ? 0 : sizeof line->bytes - 1 - line->length;
}

JsonMark json_mark(const JsonLine* line) { return (JsonMark){line->length, line->wants_comma}; }

void json_go_back(JsonLine* line, JsonMark mark) {
  line->length = mark.length;
  line->wants_comma = mark.wants_comma;
  line->is_full = false;
}

static void put(JsonLine* line, const char* bytes, size_t count) {
  if (count > json_room(line)) {
    line->is_full = true;
    return;
  }
  memcpy(line->bytes + line->length, bytes, count);
  line->length += count;
}

static void put_text(JsonLine* line, const char* text) { put(line, text, strlen(text)); }

void json_start(JsonLine* line) {
  line->length = 0;
  line->is_full = false;
  line->wants_comma = false;
}

// The length of the UTF-8 sequence that begins here; 0 if there is none.
static size_t utf8_length(const unsigned char* at) {
  unsigned char first = at[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xc2 && first < 0xe0   ? 2
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xf0 && first < 0xf5 ? 4
                                                  : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  bool is_long = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
  bool is_no_code = (first == 0xed && at[1] > 0x9f) || (first == 0xf4 && at[1] > 0x8f);
  return is_long || is_no_code ? 0 : length;
}

static void put_quoted(JsonLine* line, const char* text) {
  put_text(line, "\"");
  const unsigned char* at = (const unsigned char*)text;
  while (*at != '\0') {
    size_t length = utf8_length(at);
    char escape[8];
    if (length == 0) {
      put_text(line, "?");
      length = 1;
    } else if (*at < 0x20 || *at == '"' || *at == '\\') {
      snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at);
      put_text(line, *at == '"' ? "\\\"" : *at == '\\' ? "\\\\" : *at == '\n' ? "\\n" : escape);
    } else {
      put(line, (const char*)at, length);
    }
    at += length;
  }
  put_text(line, "\"");
}

static void put_name(JsonLine* line, const char* name) {
  if (line->wants_comma) put_text(line, ", ");
  line->wants_comma = true;
  if (name == NULL) return;
  put_quoted(line, name);
  put_text(line, ": ");
}

void json_open(JsonLine* line, const char* name, char bracket) {
  put_name(line, name);
  put(line, &bracket, 1);
  line->wants_comma = false;
}

void json_close(JsonLine* line, char bracket) {
  put(line, &bracket, 1);
  line->wants_comma = true;
}

void json_text(JsonLine* line, const char* name, const char* text) {
  put_name(line, name);
  put_quoted(line, text);
}

void json_integer(JsonLine* line, const char* name, int64_t number) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", (long long)number);
  put_name(line, name);
  put_text(line, digits);
}

void json_count(JsonLine* line, const char* name, uint64_t number) {
  char digits[32];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  put_name(line, name);
  put_text(line, digits);
}

void json_real(JsonLine* line, const char* name, double number) {
  if (!(number - number == 0)) {
    json_null(line, name);
    return;
  }
  char digits[48];
  snprintf(digits, sizeof digits, "%.9g", number);
  put_name(line, name);
  put_text(line, digits);
}

void json_bool(JsonLine* line, const char* name, bool value) {
  put_name(line, name);
  put_text(line, value ? "true" : "false");
}

void json_null(JsonLine* line, const char* name) {
  put_name(line, name);
  put_text(line, "null");
}
