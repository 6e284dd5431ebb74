#pragma once

#include <string>
#include <string_view>

namespace elastic::cli {

// The completion of this program, by the name that it was started by, for "bash", "zsh" or "fish": a script for that
// shell to load.
// `shell` must be one of the choices of --print-completion, as the parser has it.
std::string completion_script(std::string_view shell);

}  // namespace elastic::cli
