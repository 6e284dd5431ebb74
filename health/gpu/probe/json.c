#include "health/gpu/probe/json.h"

#include <stdio.h>
#include <string.h>

// --- Reading -------------------------------------------------------------------------------------------

typedef struct {
  char* at;
  char* end;
  const char* why;
} Reader;

static bool fail(Reader* reader, const char* why) {
  reader->why = why;
  return false;
}

static char peek(const Reader* reader) { return reader->at < reader->end ? *reader->at : '\0'; }

static void skip_blanks(Reader* reader) {
  while (peek(reader) == ' ' || peek(reader) == '\t' || peek(reader) == '\r') ++reader->at;
}

// Skips blanks, and then this character if it is there; returns whether it was.
static bool take(Reader* reader, char wanted) {
  skip_blanks(reader);
  if (peek(reader) != wanted) return false;
  ++reader->at;
  return true;
}

static bool read_hex(Reader* reader, unsigned* value) {
  if (reader->end - reader->at < 4) return fail(reader, "a string ends within \\u");
  *value = 0;
  for (int i = 0; i < 4; ++i) {
    char digit = *reader->at++;
    unsigned number;
    if (digit >= '0' && digit <= '9')
      number = (unsigned)(digit - '0');
    else if (digit >= 'a' && digit <= 'f')
      number = (unsigned)(digit - 'a') + 10;
    else if (digit >= 'A' && digit <= 'F')
      number = (unsigned)(digit - 'A') + 10;
    else
      return fail(reader, "\\u without four hexadecimal digits");
    *value = *value * 16 + number;
  }
  return true;
}

static char* put_utf8(char* to, unsigned code) {
  if (code < 0x80) {
    *to++ = (char)code;
  } else if (code < 0x800) {
    *to++ = (char)(0xc0 | code >> 6);
    *to++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *to++ = (char)(0xe0 | code >> 12);
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  } else {
    *to++ = (char)(0xf0 | code >> 18);
    *to++ = (char)(0x80 | (code >> 12 & 0x3f));
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  }
  return to;
}

static bool read_unicode(Reader* reader, char** to) {
  unsigned code;
  if (!read_hex(reader, &code)) return false;
  if (code >= 0xd800 && code < 0xdc00) {
    unsigned low;
    if (reader->end - reader->at < 2 || reader->at[0] != '\\' || reader->at[1] != 'u') {
      return fail(reader, "half of a surrogate pair");
    }
    reader->at += 2;
    if (!read_hex(reader, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return fail(reader, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return fail(reader, "half of a surrogate pair");
  }
  if (code == 0) return fail(reader, "a string with a zero byte");
  *to = put_utf8(*to, code);
  return true;
}

// Unescapes the string in place: that never makes it longer, and its closing quote becomes the zero byte.
static bool read_text(Reader* reader, const char** text) {
  static const char kEscapes[] = "\"\\/bfnrt";
  static const char kMeanings[] = "\"\\/\b\f\n\r\t";
  if (!take(reader, '"')) return fail(reader, "a string is missing");
  char* to = reader->at;
  *text = to;
  while (reader->at < reader->end) {
    char c = *reader->at++;
    if (c == '"') {
      *to = '\0';
      return true;
    }
    if ((unsigned char)c < 0x20) return fail(reader, "a control character in a string");
    if (c != '\\') {
      *to++ = c;
      continue;
    }
    char escape = peek(reader);
    const char* found = escape != '\0' ? strchr(kEscapes, escape) : NULL;
    ++reader->at;
    if (found != NULL)
      *to++ = kMeanings[found - kEscapes];
    else if (escape != 'u')
      return fail(reader, "an escape that JSON does not define");
    else if (!read_unicode(reader, &to))
      return false;
  }
  return fail(reader, "a string is not closed");
}

static bool read_number(Reader* reader, int64_t* number) {
  bool negative = peek(reader) == '-';
  if (negative) ++reader->at;
  if (peek(reader) < '0' || peek(reader) > '9') return fail(reader, "a value is missing");
  int64_t value = 0;
  while (peek(reader) >= '0' && peek(reader) <= '9') {
    int digit = *reader->at++ - '0';
    if (value > (INT64_MAX - digit) / 10) return fail(reader, "a number that is too large");
    value = value * 10 + digit;
  }
  char next = peek(reader);
  if (next == '.' || next == 'e' || next == 'E') return fail(reader, "a number that is not an integer");
  *number = negative ? -value : value;
  return true;
}

static bool read_list(Reader* reader, JsonObject* object, JsonMember* member) {
  ++reader->at;
  member->first = object->item_count;
  if (take(reader, ']')) return true;
  do {
    if (object->item_count == kMaxItems) return fail(reader, "too many strings in lists");
    if (!read_text(reader, &object->items[object->item_count])) return false;
    ++object->item_count;
    ++member->count;
  } while (take(reader, ','));
  return take(reader, ']') || fail(reader, "a list is not closed");
}

static bool read_member(Reader* reader, JsonObject* object) {
  if (object->count == kMaxMembers) return fail(reader, "too many members");
  JsonMember* member = &object->members[object->count];
  memset(member, 0, sizeof *member);
  if (!read_text(reader, &member->name)) return false;
  if (!take(reader, ':')) return fail(reader, "a member without a value");
  skip_blanks(reader);
  ++object->count;
  if (peek(reader) == '"') {
    member->kind = kText;
    return read_text(reader, &member->text);
  }
  if (peek(reader) == '[') {
    member->kind = kList;
    return read_list(reader, object, member);
  }
  member->kind = kNumber;
  return read_number(reader, &member->number);
}

const char* json_read(char* line, size_t length, JsonObject* object) {
  Reader reader = {line, line + length, NULL};
  object->count = 0;
  object->item_count = 0;
  if (!take(&reader, '{')) return "not an object";
  if (!take(&reader, '}')) {
    do {
      if (!read_member(&reader, object)) return reader.why;
    } while (take(&reader, ','));
    if (!take(&reader, '}')) return "the object is not closed";
  }
  skip_blanks(&reader);
  return reader.at == reader.end ? NULL : "something after the object";
}

const JsonMember* json_find(const JsonObject* object, const char* name, JsonKind kind) {
  for (size_t i = 0; i < object->count; ++i) {
    const JsonMember* member = &object->members[i];
    if (member->kind == kind && strcmp(member->name, name) == 0) return member;
  }
  return NULL;
}

const char* const* json_list(const JsonObject* object, const char* name, size_t* count) {
  const JsonMember* member = json_find(object, name, kList);
  *count = member != NULL ? member->count : 0;
  return member != NULL ? &object->items[member->first] : NULL;
}

// --- Writing -------------------------------------------------------------------------------------------

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
