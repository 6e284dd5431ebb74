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
  Json(bool value);
  Json(int value);
  Json(std::int64_t value);
  Json(double value);
  Json(const char* value);
  Json(std::string value);
  Json(std::string_view value);
  // These are compiled once, in json.cpp.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  static Json array();
  static Json object();

  // Appends to this value, which must be an array.
  Json& push(Json element);
  // Adds or replaces a member of this value, which must be an object.
  Json& set(std::string_view key, Json member);

  // The member of that name; null if there is none or this value is not an object. This value owns it.
  const Json* find(std::string_view key) const;
  // The text of the member of that name; null if there is none or it is not a text. This value owns it.
  const std::string* find_text(std::string_view key) const;
  // The same as a copy; empty where find_text() has none. For a reader that can do without the member.
  std::string text_or_empty(std::string_view key) const;
  // This value as a text, number or list; nothing if it is something else.
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  std::optional<double> as_number() const;
  std::optional<std::int64_t> as_integer() const;  // a number that was written without fraction and exponent
  std::optional<bool> as_bool() const;
  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  const Object* as_object() const { return std::get_if<Object>(&value_); }

  // This value as JSON text, with `indent` blanks for each level, or on one line if `indent` is negative. Bytes that
  // are not UTF-8 become U+FFFD, since JSON cannot contain them.
  std::string dump(int indent = -1) const;

  // Reads JSON text. Fails on malformed text and names the place in it; `what` names the text in the error.
  static Result<Json> parse(std::string_view text, std::string what);

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object>;
  explicit Json(Value value);
  Value value_;
};

// Whether a text that may be JSON is nested deeper, or has an object of more members, than allowed: returns which of
// the two, as a clause, or an empty text. Texts of other programs are checked by it before they are parsed, since depth
// costs stack and an object is searched member by member.
std::string json_over_bounds(std::string_view text, std::size_t most_levels, std::size_t most_members);

}  // namespace elastic
