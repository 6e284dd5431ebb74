#include "health/gpu/probe/request.h"

#include <string.h>

const char* request_read(char* line, size_t length, Request* request) {
  request->count = 0;
  if (memchr(line, '\0', length) != NULL) return "it has a zero byte";
  line[length] = '\0';
  char* rest = NULL;
  for (char* item = strtok_r(line, "\t", &rest); item != NULL; item = strtok_r(NULL, "\t", &rest)) {
    char* equals = strchr(item, '=');
    if (equals == NULL || equals == item) return "it has something else than NAME=VALUE";
    if (request->count == kMaxValues) return "it has too many values";
    *equals = '\0';
    request->values[request->count++] = (RequestValue){item, equals + 1};
  }
  return NULL;
}

const char* request_text(const Request* request, const char* name) {
  for (size_t i = 0; i < request->count; ++i) {
    if (strcmp(request->values[i].name, name) == 0) return request->values[i].text;
  }
  return NULL;
}

bool request_number(const Request* request, const char* name, int64_t* number) {
  const char* at = request_text(request, name);
  if (at == NULL) return false;
  bool is_negative = *at == '-';
  if (is_negative) ++at;
  int64_t value = 0;
  if (*at == '\0') return false;
  for (; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9' || value > (INT64_MAX - (*at - '0')) / 10) return false;
    value = value * 10 + (*at - '0');
  }
  *number = is_negative ? -value : value;
  return true;
}

size_t request_list(const Request* request, const char* name, const char* values[kMaxValues]) {
  size_t count = 0;
  for (size_t i = 0; i < request->count; ++i) {
    if (strcmp(request->values[i].name, name) == 0) values[count++] = request->values[i].text;
  }
  return count;
}
