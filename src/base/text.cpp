#include "src/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "src/base/screen_text.h"

namespace elastic {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Python allows an underscore only between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) return {};
  }
  return out;
}

// from_chars does not accept a '+', which is removed here; "+-1" must stay an error.
std::optional<std::string> number_text(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) return {};
  }
  if (text.empty()) return {};
  return without_underscores(text);
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits) return {};
  Number value = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  if (error != std::errc() || end != digits->data() + digits->size()) return {};
  return value;
}

bool is_identifier_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The longest identifier at the start of `text`; empty if there is none.
std::string_view identifier(std::string_view text) {
  if (text.empty() || !is_identifier_start(text[0])) return {};
  std::size_t length = 1;
  while (length < text.size() && (is_identifier_start(text[length]) || is_digit(text[length]))) {
    ++length;
  }
  return text.substr(0, length);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  if (names.size() <= kNamed) return join(names, "; ");
  return format("{}; and {} more", join({names.begin(), names.begin() + kNamed}, "; "), names.size() - kNamed);
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::int64_t> parse_int(std::string_view text) { return parse<std::int64_t>(text); }

std::optional<double> parse_float(std::string_view text) {
  const auto value = parse<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string expand_macros(std::string_view text, std::initializer_list<Macro> macros, TwoDollars two_dollars) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    const bool two = text.starts_with("$$");
    const bool braces = text.starts_with("${");
    const std::string_view name = identifier(text.substr(braces ? 2 : 1));
    // "$$", an unknown macro and a '$' that begins no macro stay as they are.
    std::size_t taken = two ? 2 : 1;
    std::string_view value = two && two_dollars == TwoDollars::kOne ? "$" : text.substr(0, taken);
    if (!name.empty() && (!braces || text.substr(2 + name.size()).starts_with('}'))) {
      for (const Macro& macro : macros) {
        if (macro.name != name) continue;
        value = macro.value;
        taken = name.size() + (braces ? 3 : 1);
      }
    }
    out += value;
    text.remove_prefix(taken);
  }
  return out;
}

std::string shell_quote(std::string_view argument) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_-+=:,./";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(argument);
  }
  bool odd_bytes = false;
  for (const char c : argument) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) odd_bytes = true;
  }
  if (!odd_bytes) return "'" + replace_all(std::string(argument), "'", "'\\''") + "'";
  std::string out = "$'";
  for (const char c : argument) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      out += format("\\x{:02x}", byte);
    } else if (c == '\'' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_text(const std::vector<std::string>& arguments) {
  std::vector<std::string> quoted;
  for (const std::string& argument : arguments) quoted.push_back(shell_quote(argument));
  return join(quoted, " ");
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters, too: U+009B does to some terminals what ESC [ does.
    const bool is_c1 = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    const bool plain = length > 0 && byte >= 0x20 && byte != 0x7F && !is_c1;
    const std::size_t taken = plain ? length : 1;
    const std::string piece = plain ? std::string(text.substr(0, length)) : format("\\x{:02x}", byte);
    if (out.size() + piece.size() > max_bytes) return out + "...";
    out += piece;
    text.remove_prefix(taken);
  }
  return out;
}

std::string rank_ranges(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && std::int64_t{ranks[last + 1]} - ranks[last] <= 1) ++last;
    if (!out.empty()) out += ", ";
    out += ranks[i] == ranks[last] ? format("{}", ranks[i]) : format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

}  // namespace elastic
