#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/json.h"

namespace elastic::report {

// Nesting and members of one object up to which a text that others wrote is read. Deeper nesting
// could exhaust the stack, and objects are searched member by member.
inline constexpr std::size_t kJsonDepth = 64;
inline constexpr std::size_t kJsonMembers = 1000;

// Reads JSON that anybody may have written. Bytes that are not UTF-8 and escapes of lone surrogates
// become U+FFFD. Fails on more than `max_bytes`, on either bound above, and on anything malformed;
// `what` names the text in the error.
Result<Json> parse_bounded_json(std::string_view text, std::size_t max_bytes, std::string what);

// Members of an object by name, for who takes what is there and lives with what is not.
std::string text_member(const Json& object, std::string_view name);  // empty if it is no text
// `otherwise` if it is no whole number within the bounds. A text that is a number counts.
std::int64_t int_member(const Json& object, std::string_view name, std::int64_t otherwise, std::int64_t lowest,
                        std::int64_t highest);
bool bool_member(const Json& object, std::string_view name);  // false if it is not true

}  // namespace elastic::report
