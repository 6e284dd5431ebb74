#include "health/gpu/messages.h"

#include <doctest/doctest.h>

using namespace elastic::health;

namespace {

Refusal unavailable(std::string why) { return {Refusal::Kind::kUnavailable, std::move(why)}; }
Refusal failed(std::string why) { return {Refusal::Kind::kFailed, std::move(why)}; }

// Whether a reader has found that refusal in a text.
template <class Reply>
bool refuses(const std::optional<Reply>& reply, const Refusal& refusal) {
  return reply && !reply->has_value() && reply->error() == refusal;
}

}  // namespace

TEST_CASE("a probe is asked in lines of names and values, of which none breaks the line") {
  const GpuOpen open{.device = 3,
                     .libraries = {.cuda = {"libcuda.so.1"},
                                   .nccl = {"/p/lib nccl.so.2", "/a\nb", "/a\tb", "libnccl.so.2"},
                                   .cublaslt = {"libcublasLt.so.13"},
                                   .nvml = {}}};
  CHECK(text_of(open) ==
        "do=open\tdevice=3\tcuda=libcuda.so.1\tnccl=/p/lib nccl.so.2\tnccl=libnccl.so.2\tcublaslt=libcublasLt.so.13");
  CHECK(text_of(GpuCompute{}) == "do=compute");
  CHECK(text_of(GpuMakeId{}) == "do=id");
  CHECK(text_of(GpuGather{.id = "ab", .rank = 1, .world = 2, .bytes = 67108864, .deadline_ms = 30000}) ==
        "do=gather\tid=ab\trank=1\tworld=2\tbytes=67108864\tdeadline_ms=30000");
  CHECK(text_of(GpuAskFacts{.nvml = {"libnvidia-ml.so.1"}}) == "do=facts\tnvml=libnvidia-ml.so.1");
}

TEST_CASE("what a GPU's probe has opened is read, what it does not know is left out") {
  const auto opened = read_gpu_opened(
      R"({"ok":true,"name":"NVIDIA H100","uuid":"GPU-1","bus_id":"0000:1b:00.0","memory_bytes":85899345920,)"
      R"("driver_version":"580.65.06","cuda_version":13000,"nccl":{"path":"/p/libnccl.so.2","version":22809},)"
      R"("cublaslt":null,"cublaslt_why":"there is none","news":[{"a":{"b":[1]}}]})");
  REQUIRE((opened && opened->has_value()));
  CHECK(**opened == GpuOpened{.name = "NVIDIA H100",
                              .uuid = "GPU-1",
                              .bus_id = "0000:1b:00.0",
                              .memory_bytes = 85899345920,
                              .driver_version = "580.65.06",
                              .cuda_version = 13000,
                              .nccl = GpuLibrary{"/p/libnccl.so.2", 22809},
                              .nccl_why = "",
                              .cublaslt = {},
                              .cublaslt_why = "there is none"});
  CHECK(**read_gpu_opened(R"({"ok":true})") == GpuOpened{});
  const auto odd =
      read_gpu_opened(R"({"ok":true,"name":7,"memory_bytes":-1,"cuda_version":1e99,"nccl":[],"cublaslt":{}})");
  CHECK(**odd == GpuOpened{.cublaslt = GpuLibrary{}});
}

TEST_CASE("figures of a GPU are read; a time that is none makes an all-gather unreadable") {
  const auto computed =
      read_gpu_computed(R"({"ok":true,"product_ms":1.5,"tflops":700,"memory_gbps":null,"host_to_device_gbps":-1,)"
                        R"("compute_why":"no copy"})");
  CHECK(**computed == GpuComputed{.product_ms = 1.5, .tflops = 700, .compute_why = "no copy"});
  CHECK(**read_gpu_computed(R"({"ok":true,"memory_gbps":1,"host_to_device_gbps":2,"device_to_host_gbps":3})") ==
        GpuComputed{.memory_gbps = 1, .host_to_device_gbps = 2, .device_to_host_gbps = 3});
  CHECK(**read_gpu_gathered(R"({"ok":true,"init_ms":350,"first_ms":130,"ms":1.25,"latency_us":20})") ==
        GpuGathered{.init_ms = 350, .first_ms = 130, .ms = 1.25, .latency_us = 20});
  CHECK(**read_gpu_gathered(R"({"ok":true,"ms":1})") == GpuGathered{.ms = 1});
  CHECK(!read_gpu_gathered(R"({"ok":true,"init_ms":350})"));
  CHECK(!read_gpu_gathered(R"({"ok":true,"ms":-1})"));
  CHECK(!read_gpu_gathered(R"({"ok":true,"ms":"1"})"));
}

TEST_CASE("an id is 256 hex digits, and nothing else is one") {
  const auto answer = [](const std::string& id) { return read_gpu_id(R"({"ok":true,"id":")" + id + "\"}"); };
  CHECK((*answer(std::string(256, 'A')))->id == std::string(256, 'a'));
  CHECK(!answer(std::string(255, 'a')));
  CHECK(!answer(std::string(258, 'a')));
  CHECK(!answer(std::string(255, 'a') + "g"));
  CHECK(!read_gpu_id(R"({"ok":true})"));
}

TEST_CASE("what NVML knows of the devices is read, device by device") {
  const auto reply = read_gpu_facts(
      R"({"ok":true,"devices":[{"index":1,"uuid":"GPU-1","bus_id":"00000000:1B:00.0","name":"NVIDIA H100",)"
      R"("driver_version":"580.65.06","lost":false,"needs_reset":true,"ecc_uncorrectable":2,"remap_pending":true,)"
      R"("remap_failed":false,"memory_used_bytes":5,"memory_bytes":10,"holders":[{"pid":1,"bytes":4,"name":"python3"},)"
      R"({"pid":2}],"pcie_width":8,"pcie_max_width":16,"pcie_gen":4,"pcie_max_gen":5,)"
      R"("nvlinks":[{"link":0,"up":true,"errors":0},{"link":1,"up":false}],"throttle_reasons":64,"persistence":true,)"
      R"("mig":false,"fabric_state":3,"fabric_status":0,"temperature_c":40,"power_mw":118000,)"
      R"("busy_percent":100,"memory_busy_percent":0,"extra":1},)"
      R"({"index":0,"lost":true,"memory_bytes":null,"holders":7,"nvlinks":[8]},9]})");
  REQUIRE((reply && reply->has_value()));
  const std::vector<GpuFacts>& devices = **reply;
  REQUIRE(devices.size() == 2);
  CHECK(devices[0] == GpuFacts{.index = 1,
                               .uuid = "GPU-1",
                               .bus_id = "00000000:1B:00.0",
                               .name = "NVIDIA H100",
                               .driver_version = "580.65.06",
                               .lost = false,
                               .needs_reset = true,
                               .ecc_uncorrectable = 2,
                               .remap_pending = true,
                               .remap_failed = false,
                               .memory_used_bytes = 5,
                               .memory_bytes = 10,
                               .holders = {{1, 4, "python3"}, {2, {}, ""}},
                               .pcie_width = 8,
                               .pcie_max_width = 16,
                               .pcie_gen = 4,
                               .pcie_max_gen = 5,
                               .nvlinks = {{0, true, 0}, {1, false, {}}},
                               .throttle_reasons = 64,
                               .persistence = true,
                               .mig = false,
                               .fabric_state = 3,
                               .fabric_status = 0,
                               .temperature_c = 40,
                               .power_mw = 118'000,
                               .busy_percent = 100,
                               .memory_busy_percent = 0});
  CHECK(devices[1] == GpuFacts{.index = 0, .lost = true});
  CHECK(!read_gpu_facts(R"({"ok":true})"));
  CHECK(!read_gpu_facts(R"({"ok":true,"devices":{}})"));
}

TEST_CASE("what is unavailable is not what failed, and both have a reason") {
  const std::string no_driver = R"({"unavailable":"there is no libcuda.so.1"})";
  CHECK(refuses(read_gpu_opened(no_driver), unavailable("there is no libcuda.so.1")));
  CHECK(refuses(read_gpu_facts(no_driver), unavailable("there is no libcuda.so.1")));
  const std::string wrong = R"({"ok":false,"failed":"the product is wrong"})";
  CHECK(refuses(read_gpu_computed(wrong), failed("the product is wrong")));
  CHECK(refuses(read_gpu_id(wrong), failed("the product is wrong")));
  CHECK(
      refuses(read_gpu_computed(R"({"failed":"it is wrong","defect":true})"), {Refusal::Kind::kDefect, "it is wrong"}));
  CHECK(refuses(read_gpu_computed(R"({"failed":"no","defect":1})"), failed("no")));
  CHECK(refuses(read_gpu_gathered(R"({"failed":""})"), failed("the probe does not say why")));
}

TEST_CASE("an answer that is none, or more than one, is not read") {
  for (const std::string text :
       {"", "{", "[]", "7", "{}", R"({"ok":false})", R"({"ok":1})", R"({"failed":true})", R"({"unavailable":null})",
        R"({"ok":true,"failed":"x"})", R"({"unavailable":"x","failed":"y"})", "{\"ok\":true} trailing",
        R"({"ok":true,"x":[[[[[1]]]]]})"}) {
    CAPTURE(text);
    CHECK(!read_gpu_opened(text));
    CHECK(!read_gpu_computed(text));
    CHECK(!read_gpu_facts(text));
  }
}

TEST_CASE("what a probe writes is bounded and fit for a message") {
  CHECK(!read_gpu_opened(R"({"ok":true,"name":")" + std::string(kProbeLineBytes, 'x') + "\"}"));
  const auto longest = read_gpu_opened(R"({"failed":")" + std::string(kProbeLineBytes / 2, 'x') + "\"}");
  REQUIRE((longest && !longest->has_value()));
  CHECK(longest->error().why.size() <= kProbeTextBytes + 3);
  CHECK(refuses(read_gpu_opened("{\"failed\":\"a\\u001b[31mb\\n\"}"), failed("a\\x1b[31mb\\x0a")));
  std::string many = R"({"ok":true,"devices":[{})";
  for (int i = 0; i < 1000; ++i) many += ",{}";
  CHECK((*read_gpu_facts(many + "]}"))->size() == kProbeMostOfAKind);
  std::string members = R"({"ok":true)";
  for (int i = 0; i < 100; ++i) members += ",\"m" + std::to_string(i) + "\":1";
  CHECK(!read_gpu_opened(members + "}"));
}

TEST_CASE("versions are told as NCCL, cuBLASLt and CUDA number themselves") {
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(2804) == "2.8.4");
  CHECK(nccl_version_text(0).empty());
  CHECK(cublaslt_version_text(130100) == "13.1.0");
  CHECK(cublaslt_version_text(11401) == "11.4.1");
  CHECK(cublaslt_version_text(-1).empty());
  CHECK(cuda_version_text(13000) == "13.0");
  CHECK(cuda_version_text(12080) == "12.8");
  CHECK(cuda_version_text(0).empty());
}
