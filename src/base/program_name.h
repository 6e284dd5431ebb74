#pragma once

#include <string>
#include <string_view>

namespace elastic {

// The name by which this process speaks, on its error lines and in its usage: "elastic-run", or that of the launcher in
// whose place it was started. It does not change while a job runs.
std::string_view program_name();

// Takes it from argv[0], "/usr/local/bin/torchrun". A name that is not torchrun or dlrover-run leaves "elastic-run".
// To be called once, at the start of main.
void set_program_name(std::string_view started_as);

// A text of ours with the name in place of each "elastic-run", and of each "elastic_run" where it is part of a word.
std::string in_our_name(std::string text);

}  // namespace elastic
