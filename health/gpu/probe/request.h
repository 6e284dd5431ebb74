#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Requests: a line is a list of NAME=VALUE with a tab between two, such as "do=facts", "nvml=libnvidia-ml.so.1". Of one
// name there may be several. Values are any bytes but tabs, line ends and zero bytes.

enum {
  kLineBytes = 64 * 1024,  // the longest line, with its "\n"
  kMaxValues = 96,         // in one request
};

typedef struct {
  const char* name;
  const char* text;
} RequestValue;

typedef struct {
  RequestValue values[kMaxValues];
  size_t count;
} Request;

// Reads the line of `length` bytes before a "\n". The line and its end are changed, and the request points into it.
// Returns NULL, or why the line is no request.
const char* request_read(char* line, size_t length, Request* request);

// The first value of that name; NULL if there is none.
const char* request_text(const Request* request, const char* name);
// The same as a number. Returns false if there is none.
bool request_number(const Request* request, const char* name, int64_t* number);
// All values of that name, in their order. Returns how many.
size_t request_list(const Request* request, const char* name, const char* values[kMaxValues]);
