#include "health/evidence/tcp_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::size_t kDigitsOfWord = 8;
constexpr std::size_t kWordsOfIpv4 = 1;
constexpr std::size_t kWordsOfIpv6 = 4;
constexpr std::size_t kInodeColumn = 9;  // "sl own other st tx:rx tr:tm retrnsmt uid timeout inode"

template <class Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// The kernel prints each word of an address as a number of the host, which is little-endian here.
std::optional<std::vector<std::uint8_t>> bytes_of(std::string_view digits) {
  std::vector<std::uint8_t> bytes;
  for (; !digits.empty(); digits.remove_prefix(kDigitsOfWord)) {
    if (digits.size() < kDigitsOfWord) return {};
    const auto word = number_in<std::uint32_t>(digits.substr(0, kDigitsOfWord), 16);
    if (!word) return {};
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(*word >> shift));
  }
  return bytes;
}

std::string ipv4_text(std::span<const std::uint8_t> bytes) {
  return format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
}

// As inet_ntop writes it (RFC 5952): the longest run of zeros, two groups at least, is left out.
std::string ipv6_text(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kGroups = 8;
  std::array<unsigned, kGroups> groups{};
  for (std::size_t i = 0; i < kGroups; ++i) groups[i] = unsigned{bytes[2 * i]} << 8 | bytes[2 * i + 1];
  std::size_t run = kGroups, run_length = 1;
  for (std::size_t i = 0; i < kGroups; ++i) {
    std::size_t length = 0;
    while (i + length < kGroups && groups[i + length] == 0) ++length;
    if (length <= run_length) continue;
    run = i;
    run_length = length;
  }
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == run) {
      text += "::";
      i += run_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += format("{:x}", groups[i]);
  }
  return text;
}

bool is_mapped(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < 12; ++i) {
    if (bytes[i] != (i < 10 ? 0 : 0xff)) return false;
  }
  return true;
}

// "0100007F:9D78"
std::optional<std::string> place_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const auto port = number_in<std::uint16_t>(text.substr(colon + 1), 16);
  const std::string_view digits = text.substr(0, colon);
  const std::size_t words = digits.size() / kDigitsOfWord;
  if (!port || (words != kWordsOfIpv4 && words != kWordsOfIpv6)) return {};
  const auto bytes = bytes_of(digits);
  if (!bytes) return {};
  const std::span<const std::uint8_t> all(*bytes);
  if (words == kWordsOfIpv4) return with_port(ipv4_text(all), *port);
  return with_port(is_mapped(all) ? ipv4_text(all.last(4)) : ipv6_text(all), *port);
}

// The next column, which is taken away with the blanks around it.
std::string_view take_column(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view column = line.substr(0, line.find(' '));
  line.remove_prefix(column.size());
  return column;
}

}  // namespace

void read_tcp_table(std::string_view text, const std::function<void(std::string own, std::uint64_t inode)>& on_socket) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::optional<std::string> own;
    std::string_view column;
    for (std::size_t i = 0; i <= kInodeColumn; ++i) {
      column = take_column(line);
      if (i == 1) own = place_of(column);
    }
    const auto inode = number_in<std::uint64_t>(column, 10);
    if (own && inode && *inode != 0) on_socket(std::move(*own), *inode);
  }
}

std::uint64_t socket_inode(std::string_view link) {
  constexpr std::string_view kPrefix = "socket:[";
  if (!link.starts_with(kPrefix) || !link.ends_with(']')) return 0;
  return number_in<std::uint64_t>(link.substr(kPrefix.size(), link.size() - kPrefix.size() - 1), 10).value_or(0);
}

}  // namespace elastic::evidence
