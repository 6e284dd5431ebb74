// The stand-in for libnvidia-ml.so.1. It returns the facts of facts.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stand_ins/gpu/stand_in.h"

#define NVML STAND_IN_EXPORT NvmlResult

enum { kMaxDevices = 64, kDriverNotLoaded = 9 };

struct NvmlDeviceObject {
  int unused;
};
static struct NvmlDeviceObject devices[kMaxDevices];

static int index_of(NvmlDevice device) { return (int)(device - devices); }

static NvmlResult tell_number(NvmlDevice device, const char* name, unsigned* value) {
  if (!is_fact_known(index_of(device), name)) return kNvmlNotSupported;
  *value = (unsigned)fact_number(index_of(device), name);
  return kNvmlSuccess;
}

static NvmlResult tell_text(int device, const char* name, char* text, unsigned length) {
  if (!is_fact_known(device, name)) return kNvmlNotSupported;
  snprintf(text, length, "%s", fact(device, name));
  return kNvmlSuccess;
}

NVML nvmlInit_v2(void) { return has_fault("nvml_fails", -1, -1, NULL) ? kDriverNotLoaded : kNvmlSuccess; }

STAND_IN_EXPORT const char* nvmlErrorString(NvmlResult result) {
  return result == kDriverNotLoaded ? "Driver Not Loaded" : "Unknown Error";
}

NVML nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return tell_text(-1, "driver_version", version, length);
}

NVML nvmlDeviceGetCount_v2(unsigned* count) {
  *count = (unsigned)fact_number(-1, "devices");
  return kNvmlSuccess;
}

NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  if (index >= kMaxDevices) return kNvmlInvalidArgument;
  if (fact_number((int)index, "lost") != 0) return kNvmlGpuIsLost;
  *device = &devices[index];
  return kNvmlSuccess;
}

NVML nvmlDeviceGetName(NvmlDevice device, char* name, unsigned length) {
  return tell_text(index_of(device), "name", name, length);
}

NVML nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned length) {
  return tell_text(index_of(device), "uuid", uuid, length);
}

NVML nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPci* pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->id, sizeof pci->id, "%s", fact(index_of(device), "bus_id"));
  return sscanf(pci->id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3 ? kNvmlSuccess : kNvmlNotSupported;
}

NVML nvmlDeviceGetTotalEccErrors(NvmlDevice device, int error_type, int counter_type, unsigned long long* count) {
  unsigned value = 0;
  NvmlResult result = tell_number(device, "ecc_uncorrectable", &value);
  *count = error_type == kNvmlUncorrected && counter_type == kNvmlVolatile ? value : 0;
  return fact_number(index_of(device), "needs_reset") != 0 ? kNvmlResetRequired : result;
}

NVML nvmlDeviceGetRemappedRows(NvmlDevice device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                               unsigned* failed) {
  *correctable = *uncorrectable = 0;
  NvmlResult result = tell_number(device, "remap_failed", failed);
  return result == kNvmlSuccess ? tell_number(device, "remap_pending", pending) : result;
}

NVML nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemory2* memory) {
  if (memory->version != NVML_MEMORY_V2) return 25;  // version mismatch
  if (!is_fact_known(index_of(device), "memory_used_bytes")) return kNvmlNotSupported;
  memory->total = fact_number(index_of(device), "memory_bytes");
  memory->used = fact_number(index_of(device), "memory_used_bytes");
  memory->reserved = 0;
  memory->free = memory->total - memory->used;
  return kNvmlSuccess;
}

NVML nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device, unsigned* count, NvmlProcess* found) {
  unsigned room = *count;
  if (!is_fact_known(index_of(device), "holders")) return kNvmlNotSupported;
  char* list = strdup(fact(index_of(device), "holders"));
  char* rest = NULL;
  *count = 0;
  for (char* item = strtok_r(list, " ", &rest); item != NULL && *count < room; item = strtok_r(NULL, " ", &rest)) {
    NvmlProcess* process = &found[(*count)++];
    memset(process, 0, sizeof *process);
    sscanf(item, "%u:%llu", &process->pid, &process->used_bytes);
  }
  free(list);
  return kNvmlSuccess;
}

// The process may use any device.
NVML nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  for (int device = 0; device < (int)fact_number(-1, "devices"); ++device) {
    char* list = strdup(fact(device, "holders"));
    char* rest = NULL;
    bool is_found = false;
    for (char* item = strtok_r(list, " ", &rest); item != NULL && !is_found; item = strtok_r(NULL, " ", &rest)) {
      char* last = strrchr(item, ':');
      is_found = last != NULL && strtoul(item, NULL, 10) == pid;
      if (is_found) snprintf(name, length, "%s", last + 1);
    }
    free(list);
    if (is_found) return kNvmlSuccess;
  }
  return kNvmlNotFound;
}

NVML nvmlDeviceGetCurrPcieLinkWidth(NvmlDevice device, unsigned* width) {
  return tell_number(device, "pcie_width", width);
}
NVML nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice device, unsigned* width) {
  return tell_number(device, "pcie_max_width", width);
}
NVML nvmlDeviceGetCurrPcieLinkGeneration(NvmlDevice device, unsigned* value) {
  return tell_number(device, "pcie_gen", value);
}
NVML nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice device, unsigned* value) {
  return tell_number(device, "pcie_max_gen", value);
}

// Reads a link from a text such as "up:0 down:3". Returns whether there is such a link, and sets its state and errors.
static bool find_link(NvmlDevice device, unsigned wanted, int* is_active, unsigned long long* errors) {
  char* list = strdup(fact(index_of(device), "nvlinks"));
  char* rest = NULL;
  unsigned link = 0;
  bool is_there = false;
  for (char* item = strtok_r(list, " ", &rest); item != NULL; item = strtok_r(NULL, " ", &rest), ++link) {
    if (link != wanted || strcmp(item, "none") == 0) continue;
    is_there = true;
    *is_active = strncmp(item, "up", 2) == 0;
    *errors = strtoull(strchr(item, ':') + 1, NULL, 10);
  }
  free(list);
  return is_there;
}

NVML nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, int* is_active) {
  unsigned long long errors;
  return find_link(device, link, is_active, &errors) ? kNvmlSuccess : kNvmlNotSupported;
}

// One error is of the first kind, the others are of the last.
NVML nvmlDeviceGetNvLinkErrorCounter(NvmlDevice device, unsigned link, int kind, unsigned long long* count) {
  int is_active;
  if (!find_link(device, link, &is_active, count)) return kNvmlNotSupported;
  unsigned long long first = *count != 0;
  *count = kind == 0 ? first : kind == kNvmlLinkErrorKinds - 1 ? *count - first : 0;
  return kNvmlSuccess;
}

NVML nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device, unsigned long long* reasons) {
  if (!is_fact_known(index_of(device), "throttle_reasons")) return kNvmlNotSupported;
  *reasons = fact_number(index_of(device), "throttle_reasons");
  return kNvmlSuccess;
}

NVML nvmlDeviceGetPersistenceMode(NvmlDevice device, int* is_on) {
  unsigned value = 0;
  NvmlResult result = tell_number(device, "persistence", &value);
  *is_on = (int)value;
  return result;
}

NVML nvmlDeviceGetMigMode(NvmlDevice device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return tell_number(device, "mig", current);
}

NVML nvmlDeviceGetGpuFabricInfo(NvmlDevice device, NvmlFabric* fabric) {
  unsigned state = 0;
  NvmlResult result = tell_number(device, "fabric_state", &state);
  memset(fabric, 0, sizeof *fabric);
  fabric->state = (unsigned char)state;
  fabric->status = (NvmlResult)fact_number(index_of(device), "fabric_status");
  return result;
}

NVML nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned* celsius) {
  return sensor == kNvmlTemperatureGpu ? tell_number(device, "temperature_c", celsius) : kNvmlNotSupported;
}

NVML nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned* milliwatts) {
  return tell_number(device, "power_mw", milliwatts);
}

NVML nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization* percent) {
  NvmlResult result = tell_number(device, "busy_percent", &percent->gpu);
  return result == kNvmlSuccess ? tell_number(device, "memory_busy_percent", &percent->memory) : result;
}

NVML nvmlDeviceGetFieldValues(NvmlDevice device, int count, NvmlField* values) {
  for (int i = 0; i < count; ++i) {
    values[i].result = kNvmlNotSupported;
    if (values[i].field != kNvmlFieldRecoveryAction) continue;
    values[i].type = kNvmlTypeUnsigned;
    values[i].result = tell_number(device, "recovery_action", &values[i].value.as_unsigned);
  }
  return kNvmlSuccess;
}
