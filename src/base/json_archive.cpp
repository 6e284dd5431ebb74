#include "src/base/json_archive.h"

#include <cmath>

namespace elastic::json_parts {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<std::uint64_t> parse_exact_number(std::string_view text) {
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

std::optional<std::string> bytes_in(const Json& json) {
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

}  // namespace

Json exact_text(const std::string& text) {
  if (is_kept_by_json(text)) return Json(text);
  std::string bytes;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return std::move(Json::object().set("bytes", std::move(bytes)));
}

std::string exact_number(std::uint64_t number) { return format("0x{:x}", number); }

std::string read(const Json& json, std::string& value, JsonForm form) {
  if (const std::string* text = json.as_string()) {
    value = *text;
    return {};
  }
  auto text = form == JsonForm::kExact ? bytes_in(json) : std::nullopt;
  if (!text) return " is not a text";
  value = std::move(*text);
  return {};
}

std::string read(const Json& json, std::uint64_t& value, JsonForm form) {
  if (form != JsonForm::kExact) {
    std::int64_t number = 0;
    std::string wrong = read(json, number, {.least = 0}, form);
    if (wrong.empty()) value = static_cast<std::uint64_t>(number);
    return wrong;
  }
  const std::string* text = json.as_string();
  const auto number = text != nullptr ? parse_exact_number(*text) : std::nullopt;
  if (!number) return " is not 0x and 1 to 16 digits 0-9a-f";
  value = *number;
  return {};
}

std::string read(const Json& json, std::int64_t& value, Bounds bounds, JsonForm form) {
  auto number = json.as_integer();
  if (!number && form == JsonForm::kPlain) {
    const std::string* text = json.as_string();
    const auto real = text != nullptr ? parse_float(*text) : json.as_number();
    if (real && std::fabs(*real) < 9e18) number = static_cast<std::int64_t>(*real);  // no int64 overflows below
  }
  if (!number || *number < bounds.least || *number > bounds.most) {
    return format(" is not a whole number from {} to {}", bounds.least, bounds.most);
  }
  value = *number;
  return {};
}

std::string read(const Json& json, double& value, Bounds bounds) {
  const auto number = json.as_number();
  if (!number || !(*number >= static_cast<double>(bounds.least)) || !(*number <= static_cast<double>(bounds.most))) {
    return format(" is not a number from {} to {}", bounds.least, bounds.most);
  }
  value = *number;
  return {};
}

std::string read(const Json& json, bool& value) {
  const auto flag = json.as_bool();
  if (!flag) return " is neither true nor false";
  value = *flag;
  return {};
}

}  // namespace elastic::json_parts
