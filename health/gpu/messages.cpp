#include "health/gpu/messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// A reply is an object with a list of devices, which are objects with lists of links, which are objects.
constexpr std::size_t kMostLevels = 5;
constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kIdDigits = 256;

// --- Members of an object: nothing where one has another type or is out of bounds

std::string text_in(const Json& json, std::string_view name) {
  return printable(json.text_or_empty(name), kProbeTextBytes);
}

std::optional<double> positive_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  const auto number = member == nullptr ? std::nullopt : member->as_number();
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<bool> truth_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member == nullptr ? std::nullopt : member->as_bool();
}

// Nothing where it is negative.
std::optional<std::uint64_t> count_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  const auto number = member == nullptr ? std::nullopt : member->as_integer();
  if (!number || *number < 0) return {};
  return static_cast<std::uint64_t>(*number);
}

// Nothing where it is negative.
std::optional<int> small_in(const Json& json, std::string_view name) {
  const auto number = count_in(json, name);
  if (!number || *number > INT32_MAX) return {};
  return static_cast<int>(*number);
}

// Reads each object of a list by `one`; nothing where there is no list.
template <class One>
auto list_in(const Json& json, std::string_view name, One one) {
  std::optional<std::vector<decltype(one(json))>> made;
  const Json* member = json.find(name);
  const Json::Array* list = member == nullptr ? nullptr : member->as_array();
  if (list == nullptr) return made;
  made.emplace();
  for (const Json& element : *list) {
    if (made->size() >= kProbeMostOfAKind) break;
    if (element.as_object() != nullptr) made->push_back(one(element));
  }
  return made;
}

// --- Replies

std::optional<std::string> why_in(const Json& json, std::string_view name) {
  if (json.find_text(name) == nullptr) return {};
  std::string why = text_in(json, name);
  return why.empty() ? "the probe does not say why" : why;
}

// Reads a reply; `value` reads the members of one that is "ok", and returns nothing where it cannot.
template <class Value, class ReadValue>
std::optional<GpuReply<Value>> read_reply(const std::string& text, ReadValue value) {
  if (text.size() >= kProbeLineBytes || !json_over_bounds(text, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(text, "the reply of a GPU's probe");
  if (!json || json->as_object() == nullptr) return {};
  const bool is_ok = truth_in(*json, "ok").value_or(false);
  const auto unavailable = why_in(*json, "unavailable");
  const auto failed = why_in(*json, "failed");
  if (int{is_ok} + int{unavailable.has_value()} + int{failed.has_value()} != 1) return {};
  if (unavailable) return std::unexpected(Refusal{Refusal::Kind::kUnavailable, *unavailable});
  if (failed) {
    const bool is_defect = truth_in(*json, "defect").value_or(false);
    return std::unexpected(Refusal{is_defect ? Refusal::Kind::kDefect : Refusal::Kind::kFailed, *failed});
  }
  std::optional<Value> found = value(*json);
  if (!found) return {};
  return std::move(*found);
}

std::optional<GpuLibrary> library_in(const Json& json, std::string_view name) {
  const Json* library = json.find(name);
  if (library == nullptr || library->as_object() == nullptr) return {};
  return GpuLibrary{.path = text_in(*library, "path"), .version = small_in(*library, "version").value_or(0)};
}

// An id in lower case; nothing where the text is not an id.
std::optional<GpuId> id_in(const Json& json) {
  const std::string* text = json.find_text("id");
  if (text == nullptr || text->size() != kIdDigits) return {};
  std::string id = lower(*text);
  if (id.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  return GpuId{std::move(id)};
}

GpuHolder holder_of(const Json& json) {
  return {.pid = small_in(json, "pid").value_or(0), .bytes = count_in(json, "bytes"), .name = text_in(json, "name")};
}

Nvlink nvlink_of(const Json& json) {
  return {.link = small_in(json, "link").value_or(0), .up = truth_in(json, "up"), .errors = count_in(json, "errors")};
}

GpuFacts facts_of(const Json& json) {
  return {.index = small_in(json, "index").value_or(0),
          .uuid = text_in(json, "uuid"),
          .bus_id = text_in(json, "bus_id"),
          .name = text_in(json, "name"),
          .driver_version = text_in(json, "driver_version"),
          .lost = truth_in(json, "lost"),
          .needs_reset = truth_in(json, "needs_reset"),
          .ecc_uncorrectable = count_in(json, "ecc_uncorrectable"),
          .remap_pending = truth_in(json, "remap_pending"),
          .remap_failed = truth_in(json, "remap_failed"),
          .memory_used_bytes = count_in(json, "memory_used_bytes"),
          .memory_bytes = count_in(json, "memory_bytes"),
          .holders = list_in(json, "holders", holder_of).value_or(std::vector<GpuHolder>{}),
          .pcie_width = small_in(json, "pcie_width"),
          .pcie_max_width = small_in(json, "pcie_max_width"),
          .pcie_gen = small_in(json, "pcie_gen"),
          .pcie_max_gen = small_in(json, "pcie_max_gen"),
          .nvlinks = list_in(json, "nvlinks", nvlink_of).value_or(std::vector<Nvlink>{}),
          .throttle_reasons = count_in(json, "throttle_reasons"),
          .persistence = truth_in(json, "persistence"),
          .mig = truth_in(json, "mig"),
          .fabric_state = small_in(json, "fabric_state"),
          .fabric_status = small_in(json, "fabric_status"),
          .temperature_c = small_in(json, "temperature_c")};
}

// The text of a number that is major * unit + minor * 100 + patch.
std::string version_text(int version, int unit) {
  if (version <= 0) return {};
  return format("{}.{}.{}", version / unit, version % unit / 100, version % 100);
}

// --- Requests

Json request(std::string_view what) { return std::move(Json::object().set("do", what)); }

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

}  // namespace

std::string text_of(const GpuOpen& open) {
  return request("open")
      .set("device", open.device)
      .set("cuda", list_of(open.libraries.cuda))
      .set("nccl", list_of(open.libraries.nccl))
      .set("cublaslt", list_of(open.libraries.cublaslt))
      .set("nvml", list_of(open.libraries.nvml))
      .dump();
}

std::string text_of(const GpuCompute&) { return request("compute").dump(); }

std::string text_of(const GpuMakeId&) { return request("id").dump(); }

std::string text_of(const GpuGather& gather) {
  return request("gather")
      .set("id", gather.id)
      .set("rank", gather.rank)
      .set("world", gather.world)
      .set("bytes", gather.bytes)
      .set("deadline_ms", gather.deadline_ms)
      .dump();
}

std::string text_of(const GpuAskFacts& facts) { return request("facts").set("nvml", list_of(facts.nvml)).dump(); }

std::optional<GpuReply<GpuOpened>> read_gpu_opened(const std::string& text) {
  return read_reply<GpuOpened>(text, [](const Json& json) -> std::optional<GpuOpened> {
    return GpuOpened{.name = text_in(json, "name"),
                     .uuid = text_in(json, "uuid"),
                     .bus_id = text_in(json, "bus_id"),
                     .memory_bytes = count_in(json, "memory_bytes").value_or(0),
                     .driver_version = text_in(json, "driver_version"),
                     .cuda_version = small_in(json, "cuda_version").value_or(0),
                     .nccl = library_in(json, "nccl"),
                     .nccl_why = text_in(json, "nccl_why"),
                     .cublaslt = library_in(json, "cublaslt"),
                     .cublaslt_why = text_in(json, "cublaslt_why")};
  });
}

std::optional<GpuReply<GpuComputed>> read_gpu_computed(const std::string& text) {
  return read_reply<GpuComputed>(text, [](const Json& json) -> std::optional<GpuComputed> {
    return GpuComputed{.product_ms = positive_in(json, "product_ms"),
                       .tflops = positive_in(json, "tflops"),
                       .memory_gbps = positive_in(json, "memory_gbps"),
                       .host_to_device_gbps = positive_in(json, "host_to_device_gbps"),
                       .device_to_host_gbps = positive_in(json, "device_to_host_gbps"),
                       .compute_why = text_in(json, "compute_why")};
  });
}

std::optional<GpuReply<GpuId>> read_gpu_id(const std::string& text) { return read_reply<GpuId>(text, id_in); }

std::optional<GpuReply<GpuGathered>> read_gpu_gathered(const std::string& text) {
  return read_reply<GpuGathered>(text, [](const Json& json) -> std::optional<GpuGathered> {
    const auto ms = positive_in(json, "ms");
    if (!ms) return {};
    return GpuGathered{.init_ms = positive_in(json, "init_ms"),
                       .first_ms = positive_in(json, "first_ms"),
                       .ms = *ms,
                       .latency_us = positive_in(json, "latency_us")};
  });
}

std::optional<GpuReply<std::vector<GpuFacts>>> read_gpu_facts(const std::string& text) {
  return read_reply<std::vector<GpuFacts>>(text, [](const Json& json) { return list_in(json, "devices", facts_of); });
}

std::string nccl_version_text(int version) { return version_text(version, version < 10'000 ? 1'000 : 10'000); }

std::string cublaslt_version_text(int version) { return version_text(version, version < 100'000 ? 1'000 : 10'000); }

std::string cuda_version_text(int version) {
  return version <= 0 ? std::string() : format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace elastic::health
