#pragma once

#include <stdbool.h>

#include "health/gpu/probe/json.h"

// The answer to one request: what the request came to, and the line that says so.

enum { kReasonBytes = 1000 };  // the longest reason in a reply

typedef enum { kOk, kUnavailable, kFailed } Outcome;

typedef struct {
  Outcome outcome;
  bool is_defect;              // with kFailed: the device itself is at fault
  char why[kReasonBytes + 1];  // unless the outcome is kOk, the reason; the line's members are then dropped
  JsonLine line;               // the members after "ok": true
} Reply;

// Begins a reply whose outcome is kOk.
void reply_start(Reply* reply);

// These set the outcome and the reason; the arguments are printf's.
void reply_failed(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));
void reply_defect(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));
void reply_unavailable(Reply* reply, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Ends the line and writes it. A reply that is longer than a line may be becomes kFailed. Returns false where the
// descriptor takes no more.
bool reply_send(int descriptor, Reply* reply);
