#include "src/base/json.h"

#include <nlohmann/json.hpp>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic {

using Foreign = nlohmann::ordered_json;

namespace {

// What nlohmann makes of a value without members.
std::string text_of(const Foreign& leaf) { return leaf.dump(-1, ' ', false, Foreign::error_handler_t::replace); }

Json from_foreign(const Foreign& foreign) {
  switch (foreign.type()) {
    case Foreign::value_t::array: {
      Json out = Json::array();
      for (const auto& element : foreign) out.push(from_foreign(element));
      return out;
    }
    case Foreign::value_t::object: {
      Json out = Json::object();
      for (const auto& [key, member] : foreign.items()) out.set(key, from_foreign(member));
      return out;
    }
    case Foreign::value_t::string: return Json(foreign.get<std::string>());
    case Foreign::value_t::boolean: return Json(foreign.get<bool>());
    case Foreign::value_t::number_integer: return Json(foreign.get<std::int64_t>());
    case Foreign::value_t::number_unsigned: {
      const auto number = foreign.get<std::uint64_t>();
      if (number > INT64_MAX) return Json(static_cast<double>(number));
      return Json(static_cast<std::int64_t>(number));
    }
    case Foreign::value_t::number_float: return Json(foreign.get<double>());
    default: return Json();
  }
}

// Appends the text of a value, whose members are indented by `indent` blanks more than the line that it begins in.
class Writer {
 public:
  Writer(int indent, std::string& out) : indent_(indent), out_(out) {}

  void write(const Json& json) {
    if (const auto* array = json.as_array()) {
      list('[', *array, ']', [&](const Json& element) { write(element); });
    } else if (const auto* object = json.as_object()) {
      list('{', *object, '}', [&](const std::pair<std::string, Json>& member) {
        out_ += text_of(member.first);
        out_ += indent_ < 0 ? ":" : ": ";
        write(member.second);
      });
    } else if (const auto* text = json.as_string()) {
      out_ += text_of(*text);
    } else if (const auto integer = json.as_integer()) {
      out_ += text_of(*integer);
    } else if (const auto number = json.as_number()) {
      out_ += text_of(*number);
    } else if (const auto flag = json.as_bool()) {
      out_ += *flag ? "true" : "false";
    } else {
      out_ += "null";
    }
  }

 private:
  void list(char open, const auto& members, char close, const auto& write_member) {
    out_ += open;
    ++level_;
    bool is_first = true;
    for (const auto& member : members) {
      if (!is_first) out_ += ',';
      is_first = false;
      begin_line();
      write_member(member);
    }
    --level_;
    if (!is_first) begin_line();
    out_ += close;
  }

  void begin_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * level_), ' ');
  }

  int indent_;
  int level_ = 0;
  std::string& out_;
};

}  // namespace

Json::Json(bool value) : value_(value) {}
Json::Json(int value) : value_(std::int64_t{value}) {}
Json::Json(std::int64_t value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(Value value) : value_(std::move(value)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() { return Json(Value(Array{})); }
Json Json::object() { return Json(Value(Object{})); }

Json& Json::push(Json element) {
  auto* array = std::get_if<Array>(&value_);
  ELASTIC_CHECK(array != nullptr);
  array->push_back(std::move(element));
  return *this;
}

Json& Json::set(std::string_view key, Json member) {
  auto* object = std::get_if<Object>(&value_);
  ELASTIC_CHECK(object != nullptr);
  for (auto& [name, value] : *object) {
    if (name == key) {
      value = std::move(member);
      return *this;
    }
  }
  object->emplace_back(std::string(key), std::move(member));
  return *this;
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

const std::string* Json::find_text(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? nullptr : member->as_string();
}

std::string Json::text_or_empty(std::string_view key) const {
  const std::string* text = find_text(key);
  return text == nullptr ? std::string() : *text;
}

std::optional<double> Json::as_number() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return {};
}

std::optional<std::int64_t> Json::as_integer() const {
  const auto* integer = std::get_if<std::int64_t>(&value_);
  return integer != nullptr ? std::optional(*integer) : std::nullopt;
}

std::optional<bool> Json::as_bool() const {
  const auto* flag = std::get_if<bool>(&value_);
  return flag != nullptr ? std::optional(*flag) : std::nullopt;
}

std::string Json::dump(int indent) const {
  std::string out;
  Writer(indent, out).write(*this);
  return out;
}

Result<Json> Json::parse(std::string_view text, std::string what) {
  try {
    return from_foreign(Foreign::parse(text));
  } catch (const std::exception& error) {
    return fail("cannot read " + what, error.what());
  }
}

std::string json_over_bounds(std::string_view text, std::size_t most_levels, std::size_t most_members) {
  std::vector<std::size_t> members;  // counted for each bracket that is open: an object has one colon to a member
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      members.push_back(0);
      if (members.size() > most_levels) return format("it is nested deeper than {} levels", most_levels);
    } else if (c == '}' || c == ']') {
      if (!members.empty()) members.pop_back();
    } else if (c == ':' && !members.empty() && ++members.back() > most_members) {
      return format("an object in it has more than {} members", most_members);
    }
  }
  return {};
}

}  // namespace elastic
