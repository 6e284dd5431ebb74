#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/flag_table.h"
#include "src/base/result.h"

namespace elastic::cli {

// One flag of the command line, however it was spelt.
struct FlagToken {
  FlagId flag;
  std::optional<std::string> value;  // none for switches
  std::string typed;                 // for messages, quoted for a shell: "--max-r 3"
  std::size_t first = 0;             // the first of the arguments that it was made of
  std::size_t count = 1;             // how many these are; letters that stand together share one
};

struct CanonicalLine {
  std::vector<FlagToken> flags;       // in the order in which they were typed
  std::optional<std::string> script;  // none where the line ends before one
  std::vector<std::string> script_arguments;
  // The last option that has taken for its value what looks like the script's name. It is an error where the line has
  // no script.
  std::optional<Error> takes_script;
};

// Brings the arguments (without the program's name; any bytes) to one form, with argparse's habits as torchrun's users
// know them: options stand only before the script, everything after it is left as it is, and "--opt=v" and "--opt v",
// "-r3", "-mr3", "--", unambiguous prefixes and negative numbers as values are understood. Unlike argparse it never
// looks at the script's arguments, takes two spellings of one flag for one, and always reads "-mr=3" as "-m -r 3".
// Reading ends at --help, --version and --print-completion. Fails on an unknown or ambiguous option, and on a missing
// or unwanted value.
Result<CanonicalLine> normalize_arguments(std::span<const std::string> arguments);

}  // namespace elastic::cli
