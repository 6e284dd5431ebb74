#include "src/numa/number_list.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>
#include <string>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::numa {
namespace {

std::optional<int> number_in(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto number = parse_int(text);
  if (!number || *number >= kMostNumbers) return {};
  return static_cast<int>(*number);
}

}  // namespace

std::optional<std::vector<int>> parse_number_list(std::string_view text) {
  std::set<int> numbers;
  for (const std::string& part : split(text, ',')) {
    const std::string_view range = trim(part);
    if (range.empty()) continue;
    const std::size_t dash = range.find('-');
    const auto first = number_in(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(range.substr(dash + 1));
    if (!first || !last) return {};
    for (int number = *first; number <= *last; ++number) numbers.insert(number);
  }
  return std::vector<int>(numbers.begin(), numbers.end());
}

std::vector<unsigned long> mask_of(std::span<const int> numbers) {
  constexpr auto kBits = static_cast<std::size_t>(std::numeric_limits<unsigned long>::digits);
  std::vector<unsigned long> mask;
  for (const int number : numbers) {
    ELASTIC_CHECK(number >= 0 && number < kMostNumbers);
    const auto bit = static_cast<std::size_t>(number);
    mask.resize(std::max(mask.size(), bit / kBits + 1));
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return mask;
}

std::vector<int> intersection(std::span<const int> one, std::span<const int> other) {
  std::vector<int> both;
  std::ranges::set_intersection(one, other, std::back_inserter(both));
  return both;
}

}  // namespace elastic::numa
