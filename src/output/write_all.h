#pragma once

#include <string_view>

namespace elastic::output {

// Writes everything, however long it takes, also where the file is non-blocking (its flags are shared with other
// processes and stay as they are). Returns 0, or an errno.
int write_all(int descriptor, std::string_view bytes);

}  // namespace elastic::output
