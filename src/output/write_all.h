#pragma once

#include <string_view>

namespace elastic::output {

// Writes everything, however long it takes, also where the open file does not block (its flags are shared
// with others and stay as they are). Returns 0, or the errno of what went wrong.
int write_all(int descriptor, std::string_view bytes);

}  // namespace elastic::output
