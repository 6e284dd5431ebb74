#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/flag_table.h"
#include "src/base/result.h"

// Options whose value got lost on the way: with NODES not set, a shell makes "--nnodes=" of "--nnodes=$NODES", and
// "--nnodes train.py" of "--nnodes $NODES train.py".
namespace elastic::cli {

// Whether the text ends as scripts do: "train.py", "run.sh".
bool looks_like_script(std::string_view text);

// What to say of a value that the flag cannot have, if it is empty or the script's name; nothing if it is neither. For
// a flag that takes a file or a command a script's name is like any other. `input`: how the user knows it. `is_typed`:
// it stands on the command line, and not in the flag's variable.
std::optional<Error> lost_value(const Flag& flag, const std::string& input, std::string_view value, bool is_typed);

}  // namespace elastic::cli
