#include <stdio.h>

#include "health/gpu/probe/probe.h"

// Makes the device's primary context the current one for the rest of the process.
static bool open_device(Probe* probe, int64_t ordinal, CudaDevice* device, Reply* reply) {
  CudaContext context = NULL;
  int count = 0;
  CudaResult result = probe->cuda.cuInit(0);
  if (result == kCudaSuccess) result = probe->cuda.cuDeviceGetCount(&count);
  if (result == kCudaNoDevice || (result == kCudaSuccess && count == 0)) {
    reply_unavailable(reply, "the CUDA driver reports no device");
    return false;
  }
  if (result == kCudaStubLibrary) {
    reply_unavailable(reply, "%s is the CUDA toolkit's stub, not the driver", probe->cuda_library.path);
    return false;
  }
  if (!cuda_did(probe, result, "cuInit", reply)) return false;
  if (ordinal < 0 || ordinal >= count) {
    reply_unavailable(reply, "there is no device %lld: the CUDA driver reports %d", (long long)ordinal, count);
    return false;
  }
  return cuda_did(probe, probe->cuda.cuDeviceGet(device, (int)ordinal), "cuDeviceGet", reply) &&
         cuda_did(probe, probe->cuda.cuDevicePrimaryCtxRetain(&context, *device), "cuDevicePrimaryCtxRetain", reply) &&
         cuda_did(probe, probe->cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent", reply) &&
         cuda_did(probe, probe->cuda.cuStreamCreate(&probe->stream, kCudaStreamNonBlocking), "cuStreamCreate", reply);
}

static void write_uuid(Probe* probe, CudaDevice device, JsonLine* line) {
  CudaUuid uuid;
  char text[48] = "";
  if (probe->cuda.cuDeviceGetUuid(&uuid, device) == kCudaSuccess) {
    char* at = text + snprintf(text, sizeof text, "GPU-");
    for (int i = 0; i < 16; ++i) {
      bool is_start = i == 4 || i == 6 || i == 8 || i == 10;
      at += sprintf(at, "%s%02x", is_start ? "-" : "", (unsigned)(unsigned char)uuid.bytes[i]);
    }
  }
  json_text(line, "uuid", text);
}

static void write_device(Probe* probe, CudaDevice device, JsonLine* line) {
  char text[256] = "";
  size_t bytes = 0;
  int version = 0;
  probe->cuda.cuDeviceGetName(text, sizeof text, device);
  json_text(line, "name", text);
  write_uuid(probe, device, line);
  text[0] = '\0';
  probe->cuda.cuDeviceGetPCIBusId(text, sizeof text, device);
  for (char* at = text; *at != '\0'; ++at) {
    if (*at >= 'A' && *at <= 'F') *at = (char)(*at - 'A' + 'a');
  }
  json_text(line, "bus_id", text);
  probe->cuda.cuDeviceTotalMem_v2(&bytes, device);
  json_count(line, "memory_bytes", bytes);
  read_driver_version(probe, text, sizeof text);
  json_text(line, "driver_version", text);
  probe->cuda.cuDriverGetVersion(&version);
  json_integer(line, "cuda_version", version);
}

static void write_library(const Library* library, const char* name, const char* why_name, int64_t version,
                          JsonLine* line) {
  if (!library->is_there) {
    json_null(line, name);
    json_text(line, why_name, library->why);
    return;
  }
  json_open(line, name, '{');
  json_text(line, "path", library->path);
  json_integer(line, "version", version);
  json_close(line, '}');
}

void do_open(Probe* probe, const Request* request, Reply* reply) {
  int64_t ordinal;
  CudaDevice device = 0;
  const char* names[kMaxValues];
  if (!request_number(request, "device", &ordinal)) {
    reply_failed(reply, "the request open names no device");
    return;
  }
  if (probe->is_open) {
    reply_failed(reply, "a device is open already");
    return;
  }
  if (!probe->nvml_library.is_there) load_nvml(probe, names, request_list(request, "nvml", names));
  if (!probe->cuda_library.is_there) load_cuda(probe, names, request_list(request, "cuda", names));
  if (!probe->cuda_library.is_there) {
    reply_unavailable(reply, "no CUDA driver: %s", probe->cuda_library.why);
    return;
  }
  if (!open_device(probe, ordinal, &device, reply)) return;
  load_nccl(probe, names, request_list(request, "nccl", names));
  load_lt(probe, names, request_list(request, "cublaslt", names));

  write_device(probe, device, &reply->line);
  int nccl_version = 0;
  if (probe->nccl_library.is_there) probe->nccl.ncclGetVersion(&nccl_version);
  write_library(&probe->nccl_library, "nccl", "nccl_why", nccl_version, &reply->line);
  int64_t lt_version = probe->lt_library.is_there ? (int64_t)probe->lt.cublasLtGetVersion() : 0;
  write_library(&probe->lt_library, "cublaslt", "cublaslt_why", lt_version, &reply->line);
  probe->is_open = true;
}
