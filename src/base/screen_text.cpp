#include "src/base/screen_text.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// The length of the CSI sequence (ESC [ parameters final) that starts `text`, or 0.
std::size_t csi_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  std::size_t i = 2;
  while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3F) ++i;
  return i < text.size() && text[i] >= 0x40 && text[i] <= 0x7E ? i + 1 : 0;
}

bool is_control(std::string_view character) {
  const unsigned char first = byte_at(character, 0);
  if (character.size() == 1) {
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  }
  // U+0080 to U+009F: some terminals take U+009B for ESC [.
  return character.size() == 2 && first == 0xC2 && byte_at(character, 1) < 0xA0;
}

std::string_view last_state_of_line(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

std::string shortened(std::string_view line, std::size_t max_bytes) {
  const std::string shown = screen_text(line);
  if (shown.size() <= max_bytes) return shown;
  std::size_t end = max_bytes;
  while (end > 0 && (byte_at(shown, end) & 0xC0) == 0x80) --end;
  return format("{}... ({} bytes more)", shown.substr(0, end), shown.size() - end);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte_at(text, 1);
  // These are overlong forms, surrogates, and values beyond U+10FFFF.
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second >= 0xA0) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second >= 0x90) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string without_colours(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find('\x1b'), text.size());
    out += text.substr(0, escape);
    text.remove_prefix(escape);
    const std::size_t csi = csi_length(text);
    if (csi == 0 && !text.empty()) out += text.front();
    text.remove_prefix(text.empty() ? 0 : std::max<std::size_t>(csi, 1));
  }
  return out;
}

std::string screen_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::size_t csi = csi_length(text)) {
      text.remove_prefix(csi);
      continue;
    }
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const std::string_view character = text.substr(0, length);
    if (utf8_length(text) == 0 || is_control(character)) {
      for (std::size_t i = 0; i < length; ++i) out += format("\\x{:02x}", byte_at(text, i));
    } else {
      out += character;
    }
    text.remove_prefix(length);
  }
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

LastLines last_lines(std::string_view text, std::size_t count, std::size_t max_line_bytes) {
  std::vector<std::string_view> all = lines_of(text);
  // Empty lines at the very end are left out, so that lines with text are shown instead.
  while (!all.empty() && trim(all.back()).empty()) all.pop_back();
  LastLines out;
  out.left_out = all.size() - std::min(count, all.size());
  for (std::size_t i = out.left_out; i < all.size(); ++i) {
    out.lines.push_back(shortened(last_state_of_line(all[i]), max_line_bytes));
  }
  return out;
}

std::string_view last_bytes(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::string_view tail = text.substr(text.size() - max_bytes);
  if (const std::size_t end = tail.find('\n'); end != std::string_view::npos && end + 1 < tail.size()) {
    return tail.substr(end + 1);
  }
  for (int i = 0; i < 3 && !tail.empty() && (byte_at(tail, 0) & 0xC0) == 0x80; ++i) tail.remove_prefix(1);
  return tail;
}

}  // namespace elastic
