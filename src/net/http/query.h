#pragma once

#include <optional>
#include <string>
#include <string_view>

// The query of a request's target: "job=a%20b&node=3".
namespace elastic::net::http {

// The text with every byte that has a meaning in a query as %XX.
std::string percent_encoded(std::string_view text);

// The value of the first parameter of that name, decoded; nothing if there is none, or if a % is not followed by two
// hex digits.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace elastic::net::http
