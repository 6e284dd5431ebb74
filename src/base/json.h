#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/result.h"

namespace elastic {

// A JSON value; members of an object keep the order in which they were set.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  static Json array() { return Json(Value(Array{})); }
  static Json object() { return Json(Value(Object{})); }

  // Adds to an array. The value must be an array.
  Json& push(Json element);
  // Adds or replaces a member. The value must be an object.
  Json& set(std::string_view key, Json member);

  // The member of that name; null if there is none or this is no object. Owned by this value.
  const Json* find(std::string_view key) const;
  // The text, number or list that this value is; nothing if it is something else.
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  std::optional<double> as_number() const;
  std::optional<std::int64_t> as_integer() const;  // a number that was written as a whole one
  std::optional<bool> as_bool() const;
  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  const Object* as_object() const { return std::get_if<Object>(&value_); }

  // JSON text; `indent` blanks a level, on one line if negative. Bytes that are not UTF-8 are
  // replaced by U+FFFD, for JSON has no way to say them.
  std::string dump(int indent = -1) const;

  // Reads JSON text; fails on anything malformed, naming the place. `what` names the text in the error.
  static Result<Json> parse(std::string_view text, std::string what);

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object>;
  explicit Json(Value value) : value_(std::move(value)) {}
  Value value_;
  friend struct JsonBridge;
};

// What of a text that may be JSON is nested deeper, or has objects of more members, than allowed, as a clause; empty
// if nothing is. To be asked before others' texts are parsed: depth costs stack, and members are looked for one by one.
std::string json_over_bounds(std::string_view text, std::size_t most_levels, std::size_t most_members);

}  // namespace elastic
