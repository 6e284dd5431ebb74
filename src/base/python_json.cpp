#include "src/base/python_json.h"

#include <cmath>
#include <cstdint>

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic {
namespace {

// Formats a number like repr(): the shortest text that is read back as the same number, never as an integer. Exponents
// begin where Python's do.
std::string python_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  std::string text = format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Escapes a character by its UTF-16 code units.
std::string escaped(std::uint32_t character) {
  if (character < 0x10000) return format("\\u{:04x}", character);
  const std::uint32_t rest = character - 0x10000;
  return format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

// Quotes a text, which must be valid UTF-8.
std::string python_text(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    std::uint32_t character = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      character = character << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    i += length;
    switch (character) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\f': out += "\\f"; break;
      case '\b': out += "\\b"; break;
      default:
        out +=
            character >= 0x20 && character < 0x7F ? std::string(1, static_cast<char>(character)) : escaped(character);
    }
  }
  return out + "\"";
}

}  // namespace

std::string python_json(const Json& json) {
  if (const auto* array = json.as_array()) {
    std::string out = "[";
    for (const Json& element : *array) out += (out.size() > 1 ? ", " : "") + python_json(element);
    return out + "]";
  }
  if (const auto* object = json.as_object()) {
    std::string out = "{";
    for (const auto& [name, value] : *object) {
      out += format("{}{}: {}", out.size() > 1 ? ", " : "", python_text(to_utf8(name)), python_json(value));
    }
    return out + "}";
  }
  if (const auto* text = json.as_string()) return python_text(to_utf8(*text));
  if (const auto flag = json.as_bool()) return *flag ? "true" : "false";
  if (const auto integer = json.as_integer()) return format("{}", *integer);
  if (const auto number = json.as_number()) return python_float(*number);
  return "null";
}

}  // namespace elastic
