#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/json.h"

namespace elastic::report {

// The bounds of nesting, and of members of one object, for JSON that comes from outside. Deeper nesting
// could exhaust the stack, and objects are searched member by member.
inline constexpr std::size_t kJsonDepth = 64;
inline constexpr std::size_t kJsonMembers = 1000;

// Reads JSON that anybody may have written. Bytes that are not UTF-8 and escapes of lone surrogates
// become U+FFFD. Fails on more than `max_bytes`, beyond either bound above, and on malformed text;
// `what` names the text in the error.
Result<Json> parse_bounded_json(std::string_view text, std::size_t max_bytes, std::string what);

// The member of that name; `otherwise` if there is none, or if it is not a whole number within the bounds. A string
// with a number counts as one.
std::int64_t int_member(const Json& object, std::string_view name, std::int64_t otherwise, std::int64_t lowest,
                        std::int64_t highest);

}  // namespace elastic::report
