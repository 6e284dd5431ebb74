#include "src/report/bounded_json.h"

#include <optional>

#include "src/base/json_archive.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::report {
namespace {

std::optional<unsigned> hex4(std::string_view text) {
  if (text.size() < 4) return {};
  unsigned code = 0;
  for (const char c : text.substr(0, 4)) {
    code <<= 4;
    if (c >= '0' && c <= '9') {
      code |= static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      code |= static_cast<unsigned>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      code |= static_cast<unsigned>(c - 'A' + 10);
    } else {
      return {};
    }
  }
  return code;
}

bool is_high_surrogate(unsigned code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(unsigned code) { return code >= 0xDC00 && code < 0xE000; }

// Replaces lone surrogates: Python escapes a file name that is not UTF-8 in this way, and only Python reads it.
std::string mend_surrogates(std::string text) {
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_text = !in_text;
    if (text[i] != '\\' || !in_text) continue;
    ++i;
    if (i >= text.size() || text[i] != 'u') continue;
    const auto code = hex4(std::string_view(text).substr(i + 1));
    if (!code) continue;
    i += 4;
    if (!is_high_surrogate(*code) && !is_low_surrogate(*code)) continue;
    const std::string_view rest = std::string_view(text).substr(i + 1);
    const auto second = rest.starts_with("\\u") ? hex4(rest.substr(2)) : std::nullopt;
    if (is_high_surrogate(*code) && second && is_low_surrogate(*second)) {
      i += 6;
    } else {
      text.replace(i - 3, 4, "fffd");
    }
  }
  return text;
}

}  // namespace

Result<Json> parse_bounded_json(std::string_view text, std::size_t max_bytes, std::string what) {
  if (text.size() > max_bytes) {
    return fail("cannot read " + what, format("it is longer than {} bytes", max_bytes));
  }
  if (trim(text).empty()) return fail("cannot read " + what, "it is empty");
  if (std::string over = json_over_bounds(text, kJsonDepth, kJsonMembers); !over.empty()) {
    return fail("cannot read " + what, std::move(over));
  }
  auto parsed = Json::parse(mend_surrogates(to_utf8(text)), std::move(what));
  // The library quotes the malformed text, which may be a megabyte of arbitrary bytes.
  if (!parsed) parsed.error().reason = printable(parsed.error().reason, 200);
  return parsed;
}

std::int64_t int_member(const Json& object, std::string_view name, std::int64_t otherwise, std::int64_t lowest,
                        std::int64_t highest) {
  std::int64_t value = otherwise;
  const Json* member = object.find(name);
  if (member != nullptr) {
    static_cast<void>(json_parts::read(*member, value, {lowest, highest}, JsonForm::kPlain));
  }
  return value;
}

}  // namespace elastic::report
