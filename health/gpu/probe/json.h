#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One line of JSON in, one out; both bounded, neither allocates. The reader knows flat objects of strings, integers
// and lists of strings, which is all that a request has.

enum {
  kLineBytes = 64 * 1024,  // of a line, with its "\n"
  kTextBytes = 1000,       // of a reason that is told
  kMaxMembers = 32,
  kMaxItems = 64,  // of all lists of one request
};

typedef enum { kText, kNumber, kList } JsonKind;

typedef struct {
  const char* name;
  JsonKind kind;
  const char* text;
  int64_t number;
  size_t first;  // of a list: where its items begin in JsonObject.items
  size_t count;
} JsonMember;

typedef struct {
  JsonMember members[kMaxMembers];
  size_t count;
  const char* items[kMaxItems];
  size_t item_count;
} JsonObject;

// Reads a line of `length` bytes without its "\n"; it is changed, and the texts point into it. Returns NULL, or why
// it is not such an object.
const char* json_read(char* line, size_t length, JsonObject* object);

// The member of that name and kind; NULL if there is none.
const JsonMember* json_find(const JsonObject* object, const char* name, JsonKind kind);
// The texts of a list, and how many there are; NULL and none without such a list.
const char* const* json_list(const JsonObject* object, const char* name, size_t* count);

// A line that is being written. What does not fit any more is left out, and `is_full` says so.
typedef struct {
  char bytes[kLineBytes];
  size_t length;
  bool is_full;
  bool wants_comma;
} JsonLine;

void json_start(JsonLine* line);
// How many bytes more it takes; none if something was left out already.
size_t json_room(const JsonLine* line);
// A place to go back to, so that what has been written since is gone.
typedef struct {
  size_t length;
  bool wants_comma;
} JsonMark;
JsonMark json_mark(const JsonLine* line);
void json_go_back(JsonLine* line, JsonMark mark);

// Opens or closes: '{', '}', '[' or ']'. `name` is NULL inside a list.
void json_open(JsonLine* line, const char* name, char bracket);
void json_close(JsonLine* line, char bracket);
// What is not UTF-8 becomes '?'.
void json_text(JsonLine* line, const char* name, const char* text);
void json_integer(JsonLine* line, const char* name, int64_t number);
void json_count(JsonLine* line, const char* name, uint64_t number);
void json_real(JsonLine* line, const char* name, double number);  // not finite: null
void json_bool(JsonLine* line, const char* name, bool value);
void json_null(JsonLine* line, const char* name);
