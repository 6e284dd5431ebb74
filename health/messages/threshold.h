#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "health/messages/messages.h"

namespace elastic::health {

// A row of a table of rules: what is found, from which limit on, how bad it is, and what to do. `Rule` numbers the rows
// from 0.
template <class Rule>
struct Threshold {
  Rule rule;
  std::string_view name;
  std::string_view when;  // what is compared with the limit, and how
  double limit;           // 0 where nothing is compared
  std::string_view unit;
  Severity severity;
  std::string_view remedy;
};

template <class Rule>
Finding finding_of(const Threshold<Rule>& row, std::string what, std::string where) {
  return {row.severity, std::move(what), std::move(where), std::string(row.remedy), std::string(row.name)};
}

// Whether the table has one row for each rule, in the order of the rules.
template <class Table, class Rule>
constexpr bool in_order_of_rules(const Table& table, Rule last) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].rule != static_cast<Rule>(i)) return false;
  }
  return table.size() == static_cast<std::size_t>(last) + 1;
}

}  // namespace elastic::health
