#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flag_table.h"

// What the manual page and docs/command-line.md say about a flag, in whole sentences without
// markup.
namespace elastic::cli {

// What the flag means, and whose it is if it is not torchrun's.
std::vector<std::string> sentences_about(const Flag& flag);

// "works", "nothing to do", "a warning" or "error".
std::string_view state_name(FlagState state);

// The default as a reader sees it: "1:1", "off" for a switch; empty where there is none.
std::string shown_default(const Flag& flag);

}  // namespace elastic::cli
