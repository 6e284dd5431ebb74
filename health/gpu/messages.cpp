#include "health/gpu/messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// A reply is an object with a list of devices, which are objects with lists of links, which are objects.
constexpr std::size_t kMostLevels = 5;
constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kIdDigits = 256;

// --- Replies

std::optional<std::string> why_in(const Json& json, std::string_view name) {
  const std::string* why = json.find_text(name);
  if (why == nullptr) return {};
  return why->empty() ? "the probe does not say why" : printable(*why, kProbeTextBytes);
}

// Whether it has a member of that name that is true.
bool says(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member != nullptr && member->as_bool().value_or(false);
}

template <class Value>
std::optional<Value> value_in(const Json& json) {
  Value value;
  if (!read_json(json, value, JsonForm::kForgiving, kProbeTextBytes).empty()) return {};
  return value;
}

// Reads a reply; `value` reads the members of one that is "ok", and returns nothing where it cannot.
template <class Value>
std::optional<GpuReply<Value>> read_reply(const std::string& text,
                                          std::optional<Value> (*value)(const Json&) = value_in<Value>) {
  if (text.size() >= kProbeLineBytes || !json_over_bounds(text, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(text, "the reply of a GPU's probe");
  if (!json || json->as_object() == nullptr) return {};
  const bool is_ok = says(*json, "ok");
  const auto unavailable = why_in(*json, "unavailable");
  const auto failed = why_in(*json, "failed");
  if (int{is_ok} + int{unavailable.has_value()} + int{failed.has_value()} != 1) return {};
  if (unavailable) return std::unexpected(Refusal{Refusal::Kind::kUnavailable, *unavailable});
  if (failed) {
    return std::unexpected(Refusal{says(*json, "defect") ? Refusal::Kind::kDefect : Refusal::Kind::kFailed, *failed});
  }
  std::optional<Value> found = value(*json);
  if (!found) return {};
  return std::move(*found);
}

// An id in lower case; nothing where the text is not an id.
std::optional<GpuId> id_in(const Json& json) {
  const std::string* text = json.find_text("id");
  if (text == nullptr || text->size() != kIdDigits) return {};
  std::string id = lower(*text);
  if (id.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  return GpuId{std::move(id)};
}

struct Devices {
  std::vector<GpuFacts> devices;
  static void fields(auto& io, auto& v) { io("devices", v.devices, at_most(kProbeMostOfAKind)); }
};

// Nothing where there is no list of devices; a device that cannot be read is left out.
std::optional<std::vector<GpuFacts>> devices_in(const Json& json) {
  const Json* list = json.find("devices");
  if (list == nullptr || list->as_array() == nullptr) return {};
  auto found = value_in<Devices>(json);
  return found ? std::optional(std::move(found->devices)) : std::nullopt;
}

// The text of a number that is major * unit + minor * 100 + patch.
std::string version_text(int version, int unit) {
  if (version <= 0) return {};
  return format("{}.{}.{}", version / unit, version % unit / 100, version % 100);
}

// Writes the fields of a request. A path with a tab or a line end in it is left out, as if it had not been found.
class LineWriter {
 public:
  explicit LineWriter(std::string what) : line_("do=" + std::move(what)) {}
  void operator()(std::string_view name, const std::string& value) {
    constexpr std::string_view kReserved("\t\n\0", 3);
    if (value.find_first_of(kReserved) == std::string::npos) line_ += format("\t{}={}", name, value);
  }
  void operator()(std::string_view name, std::int64_t value) { line_ += format("\t{}={}", name, value); }
  void operator()(std::string_view name, const std::vector<std::string>& values) {
    for (const std::string& value : values) (*this)(name, value);
  }
  const std::string& line() const { return line_; }

 private:
  std::string line_;
};

template <class Request>
std::string line_of(const Request& request) {
  LineWriter writer(Request::kDo);
  Request::fields(writer, request);
  return writer.line();
}

}  // namespace

std::string text_of(const GpuOpen& request) { return line_of(request); }
std::string text_of(const GpuCompute& request) { return line_of(request); }
std::string text_of(const GpuMakeId& request) { return line_of(request); }
std::string text_of(const GpuGather& request) { return line_of(request); }
std::string text_of(const GpuAskFacts& request) { return line_of(request); }

std::optional<GpuReply<GpuOpened>> read_gpu_opened(const std::string& text) { return read_reply<GpuOpened>(text); }
std::optional<GpuReply<GpuComputed>> read_gpu_computed(const std::string& text) {
  return read_reply<GpuComputed>(text);
}
std::optional<GpuReply<GpuId>> read_gpu_id(const std::string& text) { return read_reply<GpuId>(text, id_in); }
std::optional<GpuReply<GpuGathered>> read_gpu_gathered(const std::string& text) {
  return read_reply<GpuGathered>(text);
}
std::optional<GpuReply<std::vector<GpuFacts>>> read_gpu_facts(const std::string& text) {
  return read_reply<std::vector<GpuFacts>>(text, devices_in);
}

std::string nccl_version_text(int version) { return version_text(version, version < 10'000 ? 1'000 : 10'000); }

std::string cublaslt_version_text(int version) { return version_text(version, version < 100'000 ? 1'000 : 10'000); }

std::string cuda_version_text(int version) {
  return version <= 0 ? std::string() : format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace elastic::health
