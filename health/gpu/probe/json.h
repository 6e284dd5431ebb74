#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads and writes lines of JSON, within fixed bounds and without allocating. The reader understands flat objects of
// strings, integers and lists of strings: a request has nothing else.

enum {
  kLineBytes = 64 * 1024,  // the longest line, with its "\n"
  kMaxMembers = 32,
  kMaxItems = 64,  // in all lists of one request together
};

typedef enum { kText, kNumber, kList } JsonKind;

typedef struct {
  const char* name;
  JsonKind kind;
  const char* text;
  int64_t number;
  size_t first;  // in JsonObject.items: the first item of a list
  size_t count;  // items of a list
} JsonMember;

typedef struct {
  JsonMember members[kMaxMembers];
  size_t count;
  const char* items[kMaxItems];
  size_t item_count;
} JsonObject;

// Reads a line of `length` bytes without its "\n". The line is changed, and the object's texts point into it. Returns
// NULL, or why the line is not such an object.
const char* json_read(char* line, size_t length, JsonObject* object);

// Returns the first member of that name and kind; NULL if there is none.
const JsonMember* json_find(const JsonObject* object, const char* name, JsonKind kind);
// Returns the strings of a list and sets `count`; NULL and 0 if there is no such list.
const char* const* json_list(const JsonObject* object, const char* name, size_t* count);

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
