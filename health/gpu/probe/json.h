#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "health/gpu/probe/request.h"

// Replies: writes lines of JSON, within fixed bounds and without allocating.

// A line that is being written. What does not fit into it is left out, and `is_full` is then true.
typedef struct {
  char bytes[kLineBytes];
  size_t length;
  bool is_full;
  bool wants_comma;
} JsonLine;

void json_start(JsonLine* line);
// How many more bytes fit into the line, with room kept for its "\n"; 0 if something was left out already.
size_t json_room(const JsonLine* line);
// A place in the line to which json_go_back() cuts it.
typedef struct {
  size_t length;
  bool wants_comma;
} JsonMark;
JsonMark json_mark(const JsonLine* line);
void json_go_back(JsonLine* line, JsonMark mark);

// These write a bracket: '{' or '[', '}' or ']'. `name` is NULL inside a list, here and below.
void json_open(JsonLine* line, const char* name, char bracket);
void json_close(JsonLine* line, char bracket);
// Bytes that are not UTF-8 become '?'.
void json_text(JsonLine* line, const char* name, const char* text);
void json_integer(JsonLine* line, const char* name, int64_t number);
void json_count(JsonLine* line, const char* name, uint64_t number);
void json_real(JsonLine* line, const char* name, double number);  // null if not finite
void json_bool(JsonLine* line, const char* name, bool value);
void json_null(JsonLine* line, const char* name);
