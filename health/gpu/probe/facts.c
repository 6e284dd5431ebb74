#include <stdio.h>
#include <string.h>

#include "health/gpu/probe/probe.h"

enum {
  kMaxDevices = 64,
  kRoomForTheEnd = 16,  // bytes that the rest of the reply takes
  kMaxHolders = 8,
  kMaxProcesses = 64,
  kRecoveryActionSince = 570,  // the driver that gave the field its number
};

static NvmlResult start_nvml(Probe* probe) {
  if (probe->is_nvml_up) return kNvmlSuccess;
  NvmlResult result = probe->nvml.nvmlInit_v2();
  probe->is_nvml_up = result == kNvmlSuccess;
  return result;
}

void read_driver_version(Probe* probe, char* version, size_t bytes) {
  version[0] = '\0';
  if (!probe->nvml_library.is_there || start_nvml(probe) != kNvmlSuccess) return;
  if (probe->nvml.nvmlSystemGetDriverVersion == NULL) return;
  if (probe->nvml.nvmlSystemGetDriverVersion(version, (unsigned)bytes) != kNvmlSuccess) version[0] = '\0';
}

// One device that is being asked. Where this NVML lacks a function, or this device does not answer it, the member is
// left out.
typedef struct {
  Probe* probe;
  NvmlDevice device;
  JsonLine* line;
  bool is_lost;
  bool needs_reset;
} Question;

// Returns whether a call succeeded. Two of NVML's errors are facts themselves, and are kept.
static bool succeeded(Question* question, NvmlResult result) {
  if (result == kNvmlGpuIsLost) question->is_lost = true;
  if (result == kNvmlResetRequired) question->needs_reset = true;
  return result == kNvmlSuccess;
}

typedef NvmlResult (*AskUnsigned)(NvmlDevice, unsigned*);

static void write_unsigned(Question* question, const char* name, AskUnsigned ask) {
  unsigned value = 0;
  if (ask != NULL && succeeded(question, ask(question->device, &value))) json_count(question->line, name, value);
}

typedef NvmlResult (*AskText)(NvmlDevice, char*, unsigned);

static void write_text(Question* question, const char* name, AskText ask) {
  char text[256] = "";
  if (ask == NULL || !succeeded(question, ask(question->device, text, sizeof text))) return;
  text[sizeof text - 1] = '\0';
  json_text(question->line, name, text);
}

static void write_identity(Question* question, const char* driver_version) {
  const NvmlApi* nvml = &question->probe->nvml;
  NvmlPci pci;
  write_text(question, "uuid", nvml->nvmlDeviceGetUUID);
  write_text(question, "name", nvml->nvmlDeviceGetName);
  if (nvml->nvmlDeviceGetPciInfo_v3 != NULL &&
      succeeded(question, nvml->nvmlDeviceGetPciInfo_v3(question->device, &pci))) {
    char id[48];
    snprintf(id, sizeof id, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);  // as CUDA and sysfs write it
    json_text(question->line, "bus_id", id);
  }
  if (driver_version[0] != '\0') json_text(question->line, "driver_version", driver_version);
}

static void write_errors(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  unsigned long long count = 0;
  unsigned correctable = 0, uncorrectable = 0, is_pending = 0, has_failed = 0;
  if (nvml->nvmlDeviceGetTotalEccErrors != NULL &&
      succeeded(question,
                nvml->nvmlDeviceGetTotalEccErrors(question->device, kNvmlUncorrected, kNvmlVolatile, &count))) {
    json_count(question->line, "ecc_uncorrectable", count);
  }
  if (nvml->nvmlDeviceGetRemappedRows != NULL &&
      succeeded(question, nvml->nvmlDeviceGetRemappedRows(question->device, &correctable, &uncorrectable, &is_pending,
                                                          &has_failed))) {
    json_bool(question->line, "remap_pending", is_pending != 0);
    json_bool(question->line, "remap_failed", has_failed != 0);
  }
}

static bool read_memory(Question* question, uint64_t* used, uint64_t* total) {
  const NvmlApi* nvml = &question->probe->nvml;
  NvmlMemory2 memory = {NVML_MEMORY_V2, 0, 0, 0, 0};
  NvmlMemory older = {0, 0, 0};
  if (nvml->nvmlDeviceGetMemoryInfo_v2 != NULL &&
      succeeded(question, nvml->nvmlDeviceGetMemoryInfo_v2(question->device, &memory))) {
    *used = memory.used;
    *total = memory.total;
    return true;
  }
  if (nvml->nvmlDeviceGetMemoryInfo != NULL &&
      succeeded(question, nvml->nvmlDeviceGetMemoryInfo(question->device, &older))) {
    *used = older.used;
    *total = older.total;
    return true;
  }
  return false;
}

static void write_holder(Question* question, const NvmlProcess* process) {
  const NvmlApi* nvml = &question->probe->nvml;
  char name[256] = "";
  json_open(question->line, NULL, '{');
  json_count(question->line, "pid", process->pid);
  if (process->used_bytes != NVML_UNKNOWN_BYTES) json_count(question->line, "bytes", process->used_bytes);
  if (nvml->nvmlSystemGetProcessName != NULL &&
      nvml->nvmlSystemGetProcessName(process->pid, name, sizeof name) == kNvmlSuccess) {
    name[sizeof name - 1] = '\0';
    const char* last = strrchr(name, '/');
    json_text(question->line, "name", last != NULL && last[1] != '\0' ? last + 1 : name);
  }
  json_close(question->line, '}');
}

static void write_memory(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  NvmlProcess processes[2 * kMaxProcesses];  // drivers 535.43 to 535.86 write larger elements
  unsigned count = kMaxProcesses;
  uint64_t used, total;
  if (read_memory(question, &used, &total)) {
    json_count(question->line, "memory_used_bytes", used);
    json_count(question->line, "memory_bytes", total);
  }
  memset(processes, 0, sizeof processes);
  if (nvml->nvmlDeviceGetComputeRunningProcesses_v3 == NULL ||
      !succeeded(question, nvml->nvmlDeviceGetComputeRunningProcesses_v3(question->device, &count, processes))) {
    return;
  }
  json_open(question->line, "holders", '[');
  for (unsigned i = 0; i < count && i < kMaxHolders; ++i) write_holder(question, &processes[i]);
  json_close(question->line, ']');
}

static void write_pcie(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  write_unsigned(question, "pcie_width", nvml->nvmlDeviceGetCurrPcieLinkWidth);
  write_unsigned(question, "pcie_max_width", nvml->nvmlDeviceGetMaxPcieLinkWidth);
  write_unsigned(question, "pcie_gen", nvml->nvmlDeviceGetCurrPcieLinkGeneration);
  write_unsigned(question, "pcie_max_gen", nvml->nvmlDeviceGetMaxPcieLinkGeneration);
}

// Adds up the link's errors of all kinds. Returns false if none of the counters can be read.
static bool read_link_errors(Question* question, unsigned link, uint64_t* errors) {
  const NvmlApi* nvml = &question->probe->nvml;
  bool is_known = false;
  *errors = 0;
  for (int kind = 0; nvml->nvmlDeviceGetNvLinkErrorCounter != NULL && kind < kNvmlLinkErrorKinds; ++kind) {
    unsigned long long count = 0;
    if (!succeeded(question, nvml->nvmlDeviceGetNvLinkErrorCounter(question->device, link, kind, &count))) continue;
    is_known = true;
    *errors += count;
  }
  return is_known;
}

static void write_links(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  if (nvml->nvmlDeviceGetNvLinkState == NULL) return;
  json_open(question->line, "nvlinks", '[');
  for (unsigned link = 0; link < kNvmlMaxLinks; ++link) {
    int is_active = 0;
    uint64_t errors;
    if (!succeeded(question, nvml->nvmlDeviceGetNvLinkState(question->device, link, &is_active))) continue;
    json_open(question->line, NULL, '{');
    json_count(question->line, "link", link);
    json_bool(question->line, "up", is_active != 0);
    if (read_link_errors(question, link, &errors)) json_count(question->line, "errors", errors);
    json_close(question->line, '}');
  }
  json_close(question->line, ']');
}

static void write_modes(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  unsigned long long reasons = 0;
  int is_persistent = 0;
  unsigned mig = 0, mig_later = 0, celsius = 0;
  NvmlFabric fabric;
  if (nvml->nvmlDeviceGetCurrentClocksThrottleReasons != NULL &&
      succeeded(question, nvml->nvmlDeviceGetCurrentClocksThrottleReasons(question->device, &reasons))) {
    json_count(question->line, "throttle_reasons", reasons);
  }
  if (nvml->nvmlDeviceGetPersistenceMode != NULL &&
      succeeded(question, nvml->nvmlDeviceGetPersistenceMode(question->device, &is_persistent))) {
    json_bool(question->line, "persistence", is_persistent != 0);
  }
  if (nvml->nvmlDeviceGetMigMode != NULL &&
      succeeded(question, nvml->nvmlDeviceGetMigMode(question->device, &mig, &mig_later))) {
    json_bool(question->line, "mig", mig != 0);
  }
  memset(&fabric, 0, sizeof fabric);
  if (nvml->nvmlDeviceGetGpuFabricInfo != NULL &&
      succeeded(question, nvml->nvmlDeviceGetGpuFabricInfo(question->device, &fabric))) {
    json_count(question->line, "fabric_state", fabric.state);
    json_integer(question->line, "fabric_status", fabric.status);
  }
  if (nvml->nvmlDeviceGetTemperature != NULL &&
      succeeded(question, nvml->nvmlDeviceGetTemperature(question->device, kNvmlTemperatureGpu, &celsius))) {
    json_count(question->line, "temperature_c", celsius);
  }
}

// How hard it works.
static void write_load(Question* question) {
  const NvmlApi* nvml = &question->probe->nvml;
  NvmlUtilization percent = {0, 0};
  write_unsigned(question, "power_mw", nvml->nvmlDeviceGetPowerUsage);
  if (nvml->nvmlDeviceGetUtilizationRates != NULL &&
      succeeded(question, nvml->nvmlDeviceGetUtilizationRates(question->device, &percent))) {
    json_count(question->line, "busy_percent", percent.gpu);
    json_count(question->line, "memory_busy_percent", percent.memory);
  }
}

// Asks whether the driver wants the GPU to be reset, or the node to be rebooted.
static void ask_for_reset(Question* question, const char* driver_version) {
  const NvmlApi* nvml = &question->probe->nvml;
  NvmlField field;
  if (nvml->nvmlDeviceGetFieldValues == NULL || leading_number(driver_version) < kRecoveryActionSince) return;
  memset(&field, 0, sizeof field);
  field.field = kNvmlFieldRecoveryAction;
  if (!succeeded(question, nvml->nvmlDeviceGetFieldValues(question->device, 1, &field)) ||
      !succeeded(question, field.result) || field.type != kNvmlTypeUnsigned) {
    return;
  }
  unsigned action = field.value.as_unsigned;
  if (action == kNvmlRecoveryReset || action == kNvmlRecoveryReboot || action == kNvmlRecoveryDrainAndReset) {
    question->needs_reset = true;
  }
}

static void write_facts(Probe* probe, unsigned index, const char* driver_version, JsonLine* line) {
  Question question = {probe, NULL, line, false, false};
  json_open(line, NULL, '{');
  json_count(line, "index", index);
  if (succeeded(&question, probe->nvml.nvmlDeviceGetHandleByIndex_v2(index, &question.device))) {
    write_identity(&question, driver_version);
    write_errors(&question);
    write_memory(&question);
    write_pcie(&question);
    write_links(&question);
    write_modes(&question);
    write_load(&question);
    ask_for_reset(&question, driver_version);
  }
  json_bool(line, "lost", question.is_lost);
  json_bool(line, "needs_reset", question.needs_reset);
  json_close(line, '}');
}

void do_facts(Probe* probe, const Request* request, Reply* reply) {
  char driver_version[96];
  unsigned count = 0;
  const char* names[kMaxValues];
  const size_t candidates = request_list(request, "nvml", names);
  const bool was_tried = probe->nvml_library.why[0] != '\0';
  if (!probe->nvml_library.is_there && (candidates != 0 || !was_tried)) load_nvml(probe, names, candidates);
  if (!probe->nvml_library.is_there) {
    reply_unavailable(reply, "no NVML: %s", probe->nvml_library.why);
    return;
  }
  NvmlResult result = start_nvml(probe);
  if (result == kNvmlSuccess) result = probe->nvml.nvmlDeviceGetCount_v2(&count);
  if (result != kNvmlSuccess) {
    reply_unavailable(reply, "NVML: %s", probe->nvml.nvmlErrorString(result));
    return;
  }
  read_driver_version(probe, driver_version, sizeof driver_version);
  json_open(&reply->line, "devices", '[');
  for (unsigned index = 0; index < count && index < kMaxDevices; ++index) {
    JsonMark mark = json_mark(&reply->line);
    write_facts(probe, index, driver_version, &reply->line);
    if (json_room(&reply->line) >= kRoomForTheEnd) continue;
    json_go_back(&reply->line, mark);
    break;
  }
  json_close(&reply->line, ']');
}
