#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic::report {

// Encodes by RFC 4648, with padding and without line ends.
std::string base64(std::string_view bytes);
// Returns the bytes; none if the text is not base64.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace elastic::report
