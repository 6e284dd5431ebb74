#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/fields.h"
#include "src/base/json.h"
#include "src/base/text.h"

// Messages as JSON, by their lists of fields (fields.h): write_json() and read_json().
namespace elastic {

// How a message stands as JSON, and how it is read.
enum class JsonForm : std::uint8_t {
  // Every value is read again as it was. An unsigned number of 64 bits is a text ("0x1f"), since JSON's numbers are
  // exact up to 2^53 only; a text that is not UTF-8 is {"bytes": "6869ff"}; an optional without a value, and a member
  // of io.if_set() with its type's initial one, is null. Reading fails at the first member that is missing or wrong.
  kExact,
  // For what another program, or another version, may have written. What is null in kExact is left out here. A member
  // that is missing or wrong keeps its initial value, and an item of a list that is wrong is left out, unless the list
  // of fields says io.must(). A number without bounds is not below 0.
  kForgiving,
  // For people and their programs. Read as kForgiving, but a number may also be written as a text, or with a fraction,
  // which is dropped. What is null in kExact is null.
  kPlain,
};

// What the archives are made of.
namespace json_parts {
Json exact_text(const std::string& text);
std::string exact_number(std::uint64_t number);
// Each returns what is wrong with the JSON, as the end of a sentence that begins with the member's name (" is not a
// text"), and sets `value` only if nothing is.
std::string read(const Json& json, std::string& value, JsonForm form);
std::string read(const Json& json, std::uint64_t& value, JsonForm form);
std::string read(const Json& json, std::int64_t& value, Bounds bounds, JsonForm form);
std::string read(const Json& json, double& value, Bounds bounds);
std::string read(const Json& json, bool& value);

// The number of the value, or of the alternative, with the name that the JSON is.
template <class Named>
std::string read_name(const Json& json, std::size_t& index) {
  const auto names = names_of(Named{});
  const std::string* name = json.as_string();
  for (index = 0; name != nullptr && index < names.size(); ++index) {
    if (*name == names[index]) return {};
  }
  return format(" is none of {}", join({names.begin(), names.end()}, ", "));
}
}  // namespace json_parts

class JsonWriter {
 public:
  // Adds members to this object, which must outlive the writer.
  JsonWriter(Json& object, JsonForm form) : object_(object), form_(form) {}

  template <class T>
  void operator()(const char* name, const T& value, Bounds = {}) {
    object_.set(name, json(value));
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value, Bounds = {}) {
    if (value || form_ != JsonForm::kForgiving) object_.set(name, value ? json(*value) : Json());
  }
  template <class T>
  void if_set(const char* name, const T& value, Bounds = {}) {
    if (value != T{}) return (*this)(name, value);
    if (form_ != JsonForm::kForgiving) object_.set(name, Json());
  }
  void at_end(const char* name, const auto& value, Bounds bounds = {}) { if_set(name, value, bounds); }
  void must(const char* name, const auto& value, Bounds = {}) { (*this)(name, value); }
  void stamped(const char* name, const auto& value) { (*this)(name, value); }
  void leads(const auto*... names) { (object_.set(names, Json()), ...); }

  // A variant: the name of its alternative, and the members of that beside it.
  template <class Variant>
  void one_of(const char* name, const Variant& value) {
    object_.set(name, names_of(value)[value.index()]);
    std::visit([this](const auto& known) { describe(*this, known); }, value);
  }
  // Members that stand in an object of their own. `list` is called with an archive.
  void inside(const char* name, const auto& list) {
    Json object = Json::object();
    JsonWriter nested(object, form_);
    list(nested);
    object_.set(name, std::move(object));
  }
  // A struct whose members stand beside the others, if it is there. Its first member has this name.
  template <class T>
  void beside(const char*, const std::optional<T>& part) {
    if (part) describe(*this, *part);
  }

 private:
  template <class T>
  Json json(const T& value) const {
    if constexpr (std::is_enum_v<T>) {
      return Json(names_of(value).at(static_cast<std::size_t>(value)));
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      if (form_ == JsonForm::kExact) return Json(json_parts::exact_number(value));
      return Json(static_cast<std::int64_t>(value));
    } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      return Json(static_cast<std::int64_t>(value));
    } else if constexpr (std::convertible_to<T, std::string_view>) {
      return form_ == JsonForm::kExact ? json_parts::exact_text(std::string(value)) : Json(value);
    } else if constexpr (std::is_class_v<T>) {
      Json object = Json::object();
      JsonWriter nested(object, form_);
      describe(nested, value);
      return object;
    } else {
      return Json(value);
    }
  }
  template <class T>
  Json json(const std::vector<T>& values) const {
    Json list = Json::array();
    for (const T& value : values) list.push(json(value));
    return list;
  }

  Json& object_;
  const JsonForm form_;
};

class JsonReader {
 public:
  // Reads the members of this object, which must outlive the reader. With `text_bytes` above 0, texts are made
  // printable, and have at most so many bytes.
  JsonReader(const Json& object, JsonForm form, std::size_t text_bytes = 0)
      : object_(object), form_(form), text_bytes_(text_bytes) {}

  // What is wrong, as a clause that begins with the member's name; empty if nothing is. The first error is kept; where
  // there is one, what was read means nothing in kExact, and in the other forms every member was read that could be.
  const std::string& error() const { return error_; }

  template <class T>
  void operator()(const char* name, T& value, Bounds bounds = {}) {
    if (form_ == JsonForm::kExact) return must(name, value, bounds);
    if (const Json* json = object_.find(name)) static_cast<void>(read(*json, value, bounds, false));
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value, Bounds bounds = {}) {
    if_set(name, value, bounds);
  }
  template <class T>
  void if_set(const char* name, T& value, Bounds bounds = {}) {
    const Json* json = object_.find(name);
    if (json == nullptr || json->is_null()) return;
    const std::string wrong = read(*json, value, bounds, form_ == JsonForm::kExact);
    if (form_ == JsonForm::kExact) note(name, wrong);
  }
  void at_end(const char* name, auto& value, Bounds bounds = {}) { if_set(name, value, bounds); }
  template <class T>
  void must(const char* name, T& value, Bounds bounds = {}) {
    const Json* json = object_.find(name);
    note(name, json == nullptr ? " is missing" : read(*json, value, bounds, true));
  }
  void stamped(const char* name, auto& value) { (*this)(name, value); }
  void leads(const auto*...) {}

  template <class Variant>
  void one_of(const char* name, Variant& value) {
    const Json* json = object_.find(name);
    std::size_t index = 0;
    const std::string wrong = json == nullptr ? " is missing" : json_parts::read_name<Variant>(*json, index);
    if (!wrong.empty()) return note(name, wrong);
    choose(value, index, std::make_index_sequence<std::variant_size_v<typename Variant::variant>>());
  }
  void inside(const char* name, const auto& list) {
    const Json* json = object_.find(name);
    note(name, json == nullptr ? " is missing" : read_object(*json, list));
  }
  template <class T>
  void beside(const char* first, std::optional<T>& part) {
    if (object_.find_text(first) != nullptr) describe(*this, part.emplace());
  }

 private:
  void note(const char* name, const std::string& wrong) {
    if (error_.empty() && !wrong.empty()) error_ = name + wrong;
  }
  template <class Variant, std::size_t... kIndexes>
  void choose(Variant& value, std::size_t index, std::index_sequence<kIndexes...>) {
    static_cast<void>(((index == kIndexes && (describe(*this, value.template emplace<kIndexes>()), true)) || ...));
  }

  // Each read() returns what is wrong, as json_parts::read() does. `whole`: a list with a wrong item is wrong itself.
  std::string read_object(const Json& json, const auto& list) const {
    if (json.as_object() == nullptr) return " is not an object";
    JsonReader nested(json, form_, text_bytes_);
    list(nested);
    return nested.error_.empty() ? "" : "." + nested.error_;
  }
  template <class T>
  requires std::is_class_v<T> std::string read(const Json& json, T& value, Bounds, bool)
  const {
    return read_object(json, [&value](JsonReader& nested) { describe(nested, value); });
  }
  template <class T>
  requires std::is_enum_v<T> std::string read(const Json& json, T& value, Bounds, bool)
  const {
    std::size_t index = 0;
    std::string wrong = json_parts::read_name<T>(json, index);
    if (wrong.empty()) value = static_cast<T>(index);
    return wrong;
  }
  template <std::integral T>
  std::string read(const Json& json, T& value, Bounds bounds, bool) const {
    if constexpr (std::same_as<T, bool>) {
      return json_parts::read(json, value);
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      return json_parts::read(json, value, form_);
    } else {
      std::int64_t number = 0;
      std::string wrong = json_parts::read(json, number, within<T>(bounds), form_);
      if (wrong.empty()) value = static_cast<T>(number);
      return wrong;
    }
  }
  std::string read(const Json& json, double& value, Bounds bounds, bool) const {
    return json_parts::read(json, value, within<std::int64_t>(bounds));
  }
  std::string read(const Json& json, std::string& value, Bounds, bool) const {
    std::string wrong = json_parts::read(json, value, form_);
    if (wrong.empty() && text_bytes_ > 0) value = printable(value, text_bytes_);
    return wrong;
  }
  template <class T>
  std::string read(const Json& json, std::optional<T>& value, Bounds bounds, bool whole) const {
    std::string wrong = read(json, value.emplace(), bounds, whole);
    if (!wrong.empty()) value.reset();
    return wrong;
  }
  template <class T>
  std::string read(const Json& json, std::vector<T>& values, Bounds bounds, bool whole) const {
    const Json::Array* items = json.as_array();
    if (items == nullptr) return " is not a list";
    values.clear();
    for (const Json& item : *items) {
      if (form_ != JsonForm::kExact && std::cmp_greater_equal(values.size(), bounds.most)) break;
      const std::string wrong = read(item, values.emplace_back(), {}, whole);
      if (wrong.empty()) continue;
      values.pop_back();
      if (whole) return format("[{}]{}", values.size(), wrong);
    }
    return {};
  }
  template <class T>
  Bounds within(Bounds bounds) const {
    const bool has_least = form_ == JsonForm::kExact || bounds.least != Bounds().least;
    return {std::max<std::int64_t>(has_least ? bounds.least : 0, std::numeric_limits<T>::min()),
            std::min<std::int64_t>(bounds.most, std::numeric_limits<T>::max())};
  }

  const Json& object_;
  const JsonForm form_;
  const std::size_t text_bytes_;
  std::string error_;
};

// A message as an object.
template <class T>
Json write_json(const T& message, JsonForm form) {
  Json object = Json::object();
  JsonWriter writer(object, form);
  describe(writer, message);
  return object;
}

// Reads a message. Returns what is wrong, as JsonReader::error() does. `text_bytes`: see JsonReader.
template <class T>
std::string read_json(const Json& json, T& message, JsonForm form, std::size_t text_bytes = 0) {
  if (json.as_object() == nullptr) return "it is not an object";
  JsonReader reader(json, form, text_bytes);
  describe(reader, message);
  return reader.error();
}

}  // namespace elastic
