#pragma once

#include <string>

namespace elastic::run {

// Prints to stdout what a recorded coordinator was told and decided, from the file ("-": stdin). What can be replayed
// of a recording that was cut off is. Returns the exit status: 0, or 2 with a message that names file and line where
// there is no recording or a line of it is wrong.
int print_replay(const std::string& file);

}  // namespace elastic::run
