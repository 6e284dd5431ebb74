#include "rendezvous/coordinator/recording.h"

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/recording_fields.h"
#include "src/base/json.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using namespace recorded;

namespace {

constexpr const char* kFormat = "elastic-run coordinator recording";
constexpr int kVersion = 1;
constexpr std::size_t kLevels = 16;
constexpr std::size_t kMembers = 200;

// --- Values that JSON cannot express. --------------------------------------------------------------------

constexpr std::string_view kDigits = "0123456789abcdef";

// JSON numbers are exact up to 2^53 only.
std::string hex(std::uint64_t number) { return format("0x{:x}", number); }

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (!text.starts_with("0x") || text.size() < 3 || text.size() > 18) return {};
  std::uint64_t number = 0;
  for (const char c : text.substr(2)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    number = number << 4 | digit;
  }
  return number;
}

bool is_kept_by_json(const std::string& text) {
  bool is_ascii = true;
  for (const char c : text) is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
  if (is_ascii) return true;
  const auto again = Json::parse(Json(text).dump(), "");
  return again && again->as_string() != nullptr && *again->as_string() == text;
}

Json text_json(const std::string& text) {
  if (is_kept_by_json(text)) return Json(text);
  std::string bytes;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  Json out = Json::object();
  out.set("bytes", std::move(bytes));
  return out;
}

std::optional<std::string> text_of(const Json& json) {
  if (const std::string* text = json.as_string()) return *text;
  const std::string* digits = json.find_text("bytes");
  if (digits == nullptr || digits->size() % 2 != 0) return {};
  std::string text;
  for (std::size_t i = 0; i < digits->size(); i += 2) {
    const std::size_t high = kDigits.find((*digits)[i]);
    const std::size_t low = kDigits.find((*digits)[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return {};
    text += static_cast<char>(high << 4 | low);
  }
  return text;
}

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, std::uint64_t>;

class Writer {
 public:
  static constexpr bool kWrites = true;
  explicit Writer(Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value, Bounds = {}) {
    object_.set(name, json(value));
  }
  template <class T>
  void unless_new(const char* name, const T& value) {
    object_.set(name, value == T{} ? Json() : json(value));
  }
  // Writes a variant as the name of its alternative and the members of that.
  template <class Variant>
  void one_of(const char* name, const Variant& value) {
    object_.set(name, Names<Variant>::kWords[value.index()]);
    std::visit([this](const auto& known) { fields(*this, known); }, value);
  }

 private:
  template <class T>
  static Json json(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return Json(Names<T>::kWords.at(static_cast<std::size_t>(value)));
    } else if constexpr (std::same_as<T, bool>) {
      return Json(value);
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      return Json(hex(value));
    } else if constexpr (std::integral<T>) {
      return Json(static_cast<std::int64_t>(value));
    } else if constexpr (std::same_as<T, std::string>) {
      return text_json(value);
    } else {
      Json out = Json::object();
      Writer nested(out);
      fields(nested, value);
      return out;
    }
  }
  template <class T>
  static Json json(const std::optional<T>& value) {
    return value ? json(*value) : Json();
  }
  template <class T>
  static Json json(const std::vector<T>& values) {
    Json out = Json::array();
    for (const T& value : values) out.push(json(value));
    return out;
  }

  Json& object_;
};

// Reads the members of an object. The first error is kept, as a clause; values that are read after it mean nothing.
class Reader {
 public:
  static constexpr bool kWrites = false;
  Reader(const Json& object, std::string path, std::string& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  // `bounds` is one value of type Bounds, or nothing.
  template <class T, class... OneBounds>
  void operator()(const char* name, T& value, OneBounds... bounds) {
    if (const Json* json = member(name)) read(*json, name, value, bounds...);
  }
  template <class T, class... OneBounds>
  void operator()(const char* name, std::optional<T>& value, OneBounds... bounds) {
    if (const Json* json = given(name)) read(*json, name, value.emplace(), bounds...);
  }
  template <class T>
  void unless_new(const char* name, T& value) {
    if (const Json* json = given(name)) read(*json, name, value);
  }
  template <class Variant>
  void one_of(const char* name, Variant& value) {
    const Json* json = member(name);
    if (json == nullptr) return;
    if (const auto index = read_name<Variant>(*json, name)) {
      choose(value, *index, std::make_index_sequence<std::variant_size_v<Variant>>());
    }
  }

 private:
  const Json* member(const char* name) {
    const Json* json = object_.find(name);
    if (json == nullptr) wrong(name, "is missing");
    return json;
  }
  // A member that may be null, or may be missing.
  const Json* given(const char* name) const {
    const Json* json = object_.find(name);
    return json != nullptr && !json->is_null() ? json : nullptr;
  }
  template <class Named>
  std::optional<std::size_t> read_name(const Json& json, const std::string& name) {
    const std::string* word = json.as_string();
    const auto index = word != nullptr ? find_name<Named>(*word) : std::nullopt;
    if (!index) wrong(name, format("is none of {}", all_names<Named>()));
    return index;
  }
  void wrong(const std::string& name, const std::string& what) {
    if (error_.empty()) error_ = format("member {}{} {}", path_, name, what);
  }
  template <class Variant, std::size_t... kIndexes>
  void choose(Variant& value, std::size_t index, std::index_sequence<kIndexes...>) {
    static_cast<void>(((index == kIndexes && (fields(*this, value.template emplace<kIndexes>()), true)) || ...));
  }

  template <WholeNumber T>
  void read(const Json& json, const std::string& name, T& value, Bounds bounds = kAny<T>) {
    const auto number = json.as_integer();
    if (!number || *number < bounds.least || *number > bounds.most) {
      return wrong(name, format("is not a whole number from {} to {}", bounds.least, bounds.most));
    }
    value = static_cast<T>(*number);
  }
  void read(const Json& json, const std::string& name, bool& value) {
    const auto flag = json.as_bool();
    if (!flag) return wrong(name, "is neither true nor false");
    value = *flag;
  }
  void read(const Json& json, const std::string& name, std::uint64_t& value) {
    const std::string* text = json.as_string();
    const auto number = text != nullptr ? parse_hex(*text) : std::nullopt;
    if (!number) return wrong(name, "is not 0x and 1 to 16 digits 0-9a-f");
    value = *number;
  }
  void read(const Json& json, const std::string& name, std::string& value) {
    auto text = text_of(json);
    if (!text) return wrong(name, "is not a text");
    value = std::move(*text);
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(const Json& json, const std::string& name, T& value) {
    if (const auto index = read_name<T>(json, name)) value = static_cast<T>(*index);
  }
  template <class T>
  void read(const Json& json, const std::string& name, std::vector<T>& values) {
    const Json::Array* array = json.as_array();
    if (array == nullptr) return wrong(name, "is not a list");
    for (const Json& element : *array) {
      const std::string place = format("{}[{}]", name, values.size());
      read(element, place, values.emplace_back());
      if (!error_.empty()) return;
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void read(const Json& json, const std::string& name, T& value) {
    if (json.as_object() == nullptr) return wrong(name, "is not an object");
    Reader nested(json, format("{}{}.", path_, name), error_);
    fields(nested, value);
  }

  const Json& object_;
  std::string path_;  // of the object: "failure.exit."
  std::string& error_;
};

template <class T>
std::string line_of(const char* first_name, Json first, const T& value) {
  Json out = Json::object();
  if (first_name != nullptr) out.set(first_name, std::move(first));
  Writer writer(out);
  fields(writer, value);
  return out.dump() + "\n";
}

Result<Json> parse_line(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "correct the line, or take it out";
  if (line.size() > limits::kRecordingLineBytes) {
    return fail(place, format("the line is longer than {} bytes", limits::kRecordingLineBytes));
  }
  if (std::string over = json_over_bounds(line, kLevels, kMembers); !over.empty()) return fail(place, over, kRemedy);
  auto parsed = Json::parse(line, place);
  if (!parsed) return fail(place, format("it is not JSON: {}", printable(parsed.error().reason)), kRemedy);
  if (parsed->as_object() == nullptr) return fail(place, "it is not a JSON object", kRemedy);
  return parsed;
}

}  // namespace

std::string recording_head(const RecordingHead& head) {
  Json out = Json::object();
  out.set("format", kFormat);
  out.set("version", kVersion);
  Writer writer(out);
  fields(writer, head);
  return out.dump() + "\n";
}

std::string recording_head(const std::string& job, const CoordinatorConfig& config, bool has_check) {
  return recording_head(
      {.job = job, .program = "elastic-run " ELASTIC_RUN_VERSION, .config = config, .has_check = has_check});
}

std::string recording_line(const Event& event, std::int64_t at_ms) {
  return line_of(nullptr, {}, RecordedEvent{at_ms, event});
}

std::string recording_line(const CheckAnswer& answer) {
  return std::visit(
      [&](const auto& known) { return line_of("check", Names<CheckAnswer>::kWords[answer.index()], known); }, answer);
}

Result<RecordingHead> parse_recording_head(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "name a file that --record has written";
  const auto parsed = parse_line(line, place);
  const Json* version = parsed ? parsed->find("version") : nullptr;
  if (!parsed || parsed->text_or_empty("format") != kFormat) {
    return fail(place, format("it is not an {}", kFormat), kRemedy);
  }
  const auto number = version != nullptr ? version->as_integer() : std::nullopt;
  if (!number || *number < 1) return fail(place, "member version is not a whole number above 0", kRemedy);
  if (*number > kVersion) {
    return fail(place,
                format("the recording is of version {}, and this elastic-run reads version {}", *number, kVersion),
                "use the elastic-run that has written it, or a newer one");
  }
  RecordingHead head;
  std::string error;
  Reader reader(*parsed, "", error);
  fields(reader, head);
  if (!error.empty()) return fail(place, error, "correct the line");
  return head;
}

Result<RecordedLine> parse_recording_line(std::string_view line, const std::string& place) {
  const auto parsed = parse_line(line, place);
  if (!parsed) return std::unexpected(parsed.error());
  RecordedLine read;
  std::string error;
  Reader reader(*parsed, "", error);
  if (parsed->find("check") != nullptr) {
    reader.one_of("check", read.emplace<CheckAnswer>());
  } else {
    fields(reader, read.emplace<RecordedEvent>());
  }
  if (!error.empty()) return fail(place, error, "correct the line, or take it out");
  return read;
}

namespace {

class RecordedCheck : public CheckPlan {
 public:
  RecordedCheck(std::unique_ptr<CheckPlan> plan, std::function<void(std::string line)> write)
      : plan_(std::move(plan)), write_(std::move(write)) {}

  int phases(const std::vector<CheckNode>& nodes, const CheckRules& rules) const override {
    const int answer = plan_->phases(nodes, rules);
    write_(recording_line(CheckPhases{answer}));
    return answer;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>& earlier, const CheckRules& rules) const override {
    std::vector<std::string> answer = plan_->orders(phase, nodes, earlier, rules);
    write_(recording_line(CheckOrders{answer}));
    return answer;
  }
  std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes,
                           const std::vector<CheckResults>& results) const override {
    std::vector<Unfit> answer = plan_->unfit(nodes, results);
    write_(recording_line(CheckUnfit{answer}));
    return answer;
  }

 private:
  std::unique_ptr<CheckPlan> plan_;
  std::function<void(std::string line)> write_;
};

}  // namespace

std::unique_ptr<CheckPlan> recorded_check(std::unique_ptr<CheckPlan> plan,
                                          std::function<void(std::string line)> write) {
  return std::make_unique<RecordedCheck>(std::move(plan), std::move(write));
}

}  // namespace elastic::coordinator
