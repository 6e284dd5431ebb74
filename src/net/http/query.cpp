#include "src/net/http/query.h"

#include <algorithm>
#include <charconv>

#include "src/base/text.h"

namespace elastic::net::http {
namespace {

bool stays(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '-' ||
         byte == '.' || byte == '_' || byte == '~';
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || read.ec != std::errc() || read.ptr != digits.data() + 2) return {};
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    out += stays(byte) ? std::string(1, byte) : format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(parameter.size() + 1, query.size()));
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || parameter.substr(0, equals) != name) continue;
    return decoded(parameter.substr(equals + 1));
  }
  return {};
}

}  // namespace elastic::net::http
