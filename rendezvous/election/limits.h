#pragma once

#include <cstddef>

#include "src/base/limits.h"

// The bounds of this folder. docs/limits.md is made from the rows.
namespace elastic::limits {

// | peer ports that a coordinator tries; open ones that it looks for | {kPeerPortsTried}; {kPeerPortsWanted} | no
// further ones are tried |
inline constexpr std::size_t kPeerPortsTried = 64;
inline constexpr std::size_t kPeerPortsWanted = 2 * kNextLeaders;

}  // namespace elastic::limits
