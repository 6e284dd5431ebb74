#pragma once

#include <string>
#include <string_view>

namespace elastic {

// The name of this program in its messages and its usage: "elastic-run", or that of the launcher in
// whose place it was started. It does not change while a job runs.
std::string_view program_name();

// Sets the name by argv[0], "/usr/local/bin/torchrun"; it stays "elastic-run" unless that is torchrun or dlrover-run.
// Must be called once, at the start of main.
void set_program_name(std::string_view started_as);

// Replaces each "elastic-run" in a text by the program's name, and also each "elastic_run" that is part of a word.
std::string in_our_name(std::string text);

}  // namespace elastic
