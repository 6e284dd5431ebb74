#include "cli/detect/host_list.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "cli/limits.h"
#include "src/base/text.h"

namespace elastic::cli::detect {
namespace {

constexpr std::size_t kMostDigits = 18;
// The longest name of a host.
constexpr std::size_t kMostBytes = 255;

// "007-012" as its first and last number and the digits of the first.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t digits = 1;
};

// What is wrong with the list, as a clause.
struct Problem {
  std::string reason;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > kMostDigits) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::expected<Range, Problem> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  const auto from = number_of(first);
  const auto to = number_of(last);
  if (!from || !to)
    return std::unexpected(Problem{format("\"{}\" is neither a number nor a range of numbers", printable(text))});
  if (*to < *from) return std::unexpected(Problem{format("the range \"{}\" runs backwards", printable(text))});
  return Range{*from, *to, first.size()};
}

std::string padded(std::uint64_t number, std::size_t digits) { return format("{:0{}}", number, digits); }

// Appends each number in the brackets to each name so far.
std::expected<std::vector<std::string>, Problem> continued(const std::vector<std::string>& names,
                                                           std::string_view inside) {
  std::vector<std::string> out;
  std::vector<Range> ranges;
  for (const std::string& part : split(inside, ',')) {
    auto range = range_of(part);
    if (!range) return std::unexpected(std::move(range.error()));
    ranges.push_back(*range);
  }
  const Problem too_many{format("it stands for more than {} hosts", limits::kHostListHosts)};
  for (const std::string& name : names) {
    for (const Range& range : ranges) {
      if (range.last - range.first >= limits::kHostListHosts - out.size()) return std::unexpected(too_many);
      for (std::uint64_t number = range.first; number <= range.last; ++number) {
        out.push_back(name + padded(number, range.digits));
      }
    }
  }
  return out;
}

// Reads one name of the list, with its brackets.
std::expected<std::vector<std::string>, Problem> names_of(std::string_view text) {
  std::vector<std::string> names{""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    if (names.front().size() + text.substr(0, open).size() > kMostBytes) {
      return std::unexpected(Problem{format("a host's name has more than {} bytes", kMostBytes)});
    }
    for (std::string& name : names) name += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    auto more = continued(names, text.substr(open + 1, close - open - 1));
    if (!more) return std::unexpected(std::move(more.error()));
    names = std::move(*more);
    text.remove_prefix(close + 1);
  }
  return names;
}

// Splits the list at the commas outside brackets.
std::expected<std::vector<std::string_view>, Problem> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' && std::exchange(inside, true)) return std::unexpected(Problem{"brackets stand in brackets"});
    if (c == ']' && !std::exchange(inside, false)) return std::unexpected(Problem{"a \"]\" has no \"[\""});
    if (i == text.size() && inside) return std::unexpected(Problem{"a \"[\" has no \"]\""});
    if (c <= ' ' || c == 0x7F) return std::unexpected(Problem{"it has blanks or control characters"});
    if (c != ',' || inside) continue;
    if (i == begin) return std::unexpected(Problem{text.empty() ? "it is empty" : "a name between commas is empty"});
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::expected<std::vector<std::string>, Problem> expand(std::string_view text) {
  if (text.size() > limits::kHostListBytes) {
    return std::unexpected(Problem{format("it has more than {} bytes", limits::kHostListBytes)});
  }
  const auto parts = parts_of(text);
  if (!parts) return std::unexpected(parts.error());
  std::vector<std::string> hosts;
  for (const std::string_view part : *parts) {
    auto names = names_of(part);
    if (!names) return std::unexpected(std::move(names.error()));
    if (names->size() > limits::kHostListHosts - hosts.size()) {
      return std::unexpected(Problem{format("it stands for more than {} hosts", limits::kHostListHosts)});
    }
    hosts.insert(hosts.end(), std::make_move_iterator(names->begin()), std::make_move_iterator(names->end()));
  }
  return hosts;
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text, std::string_view input) {
  auto hosts = expand(text);
  if (hosts) return std::move(*hosts);
  return fail(format("{}={}", input, printable(text)), format("this is not a list of hosts: {}", hosts.error().reason),
              "`scontrol show hostnames` shows how Slurm reads it; or name host and port with --rdzv-endpoint");
}

}  // namespace elastic::cli::detect
