#pragma once

#include <string>

namespace elastic::run {

// Prints to stdout what a recorded coordinator was told and what it decided, from the file ("-": stdin). A recording
// that was cut off is replayed as far as it goes. Returns the exit status: 0, or 2 with a message that names file and
// line if it is not a recording, or a line of it is wrong.
int print_replay(const std::string& file);

}  // namespace elastic::run
