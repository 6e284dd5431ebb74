#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/stand_ins/gpu/stand_in.h"

// A node with eight GPUs without any finding.
static const char* const kDefaults[][2] = {
    {"devices", "8"},
    {"name", "Stand-in H100"},
    {"uuid", ""},    // made from the device's number
    {"bus_id", ""},  // the same
    {"memory_bytes", "85899345920"},
    {"driver_version", "580.65.06"},
    {"cuda_version", "13000"},
    {"nccl_version", "22809"},
    {"cublaslt_version", "130000"},
    {"ecc_uncorrectable", "0"},
    {"remap_pending", "0"},
    {"remap_failed", "0"},
    {"lost", "0"},
    {"needs_reset", "0"},      // reported as an error of NVML
    {"recovery_action", "0"},  // reported as a field of NVML
    {"memory_used_bytes", "536870912"},
    {"holders", ""},  // "pid:bytes:/path/of/program", separated by blanks
    {"pcie_width", "16"},
    {"pcie_max_width", "16"},
    {"pcie_gen", "5"},
    {"pcie_max_gen", "5"},
    {"nvlinks", "up:0 up:0 up:0 up:0"},  // state and errors of each
    {"throttle_reasons", "1"},           // idle
    {"persistence", "1"},
    {"mig", "0"},
    {"fabric_state", "3"},
    {"fabric_status", "0"},
    {"temperature_c", "40"},
    {"power_mw", "118000"},
    {"busy_percent", "100"},  // as while a kernel waits for others
    {"memory_busy_percent", "0"},
};

static _Thread_local char text[4096];

// The value of the line "key=..." of the file; NULL if there is none.
static const char* find_line(FILE* file, const char* key) {
  static _Thread_local char line[4096];
  size_t length = strlen(key);
  rewind(file);
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, key, length) == 0 && line[length] == '=') return line + length + 1;
  }
  return NULL;
}

// Whether this process has a context on a GPU.
static bool has_context(void) {
  DeviceFunction opened = (DeviceFunction)find_in_cuda("stand_in_opened");
  return opened != NULL && opened() >= 0;
}

// The value for this device, else the value for all devices.
static const char* find_fact(FILE* file, int device, const char* when, const char* name) {
  char key[128];
  snprintf(key, sizeof key, "%d.%s%s", device, when, name);
  const char* value = find_line(file, key);
  if (value != NULL) return value;
  snprintf(key, sizeof key, "%s%s", when, name);
  return find_line(file, key);
}

static bool read_fact(int device, const char* name) {
  const char* path = getenv("STAND_IN_GPU_FACTS");
  FILE* file = path != NULL ? fopen(path, "re") : NULL;
  if (file == NULL) return false;
  const char* value = has_context() ? find_fact(file, device, "opened.", name) : NULL;
  if (value == NULL) value = find_fact(file, device, "", name);
  if (value != NULL) snprintf(text, sizeof text, "%s", value);
  fclose(file);
  return value != NULL;
}

const char* fact(int device, const char* name) {
  if (read_fact(device, name)) return text;
  text[0] = '\0';
  for (size_t i = 0; i < sizeof kDefaults / sizeof *kDefaults; ++i) {
    if (strcmp(kDefaults[i][0], name) == 0) snprintf(text, sizeof text, "%s", kDefaults[i][1]);
  }
  if (strcmp(name, "uuid") == 0) snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012x", (unsigned)device);
  if (strcmp(name, "bus_id") == 0) snprintf(text, sizeof text, "0000:%02X:00.0", 0x1a + (unsigned)device);
  return text;
}

unsigned long long fact_number(int device, const char* name) { return strtoull(fact(device, name), NULL, 0); }

bool is_fact_known(int device, const char* name) { return strcmp(fact(device, name), "none") != 0; }

// Whether one item of the list, "name=value@d1", is this fault.
static bool is_fault(char* item, const char* name, int device, int rank, double* value) {
  char* place = strchr(item, '@');
  if (place != NULL) *place++ = '\0';
  char* number = strchr(item, '=');
  if (number != NULL) *number++ = '\0';
  if (strcmp(item, name) != 0) return false;
  if (place != NULL && atoi(place + 1) != (*place == 'd' ? device : rank)) return false;
  if (value != NULL) *value = number != NULL ? strtod(number, NULL) : 1;
  return true;
}

bool has_fault(const char* name, int device, int rank, double* value) {
  const char* given = getenv("STAND_IN_GPU_FAULTS");
  if (given == NULL) return false;
  char* list = strdup(given);
  char* rest = NULL;
  bool found = false;
  for (char* item = strtok_r(list, ",", &rest); item != NULL && !found; item = strtok_r(NULL, ",", &rest)) {
    found = is_fault(item, name, device, rank, value);
  }
  free(list);
  return found;
}

double fault_factor(const char* name, int device, int rank) {
  double value = 1;
  has_fault(name, device, rank, &value);
  return value;
}

void hang_for_ever(void) {
  for (;;) pause();
}

void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

void* find_in_cuda(const char* name) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return cuda != NULL ? dlsym(cuda, name) : NULL;
}
