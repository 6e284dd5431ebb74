#pragma once

#include <string>
#include <string_view>

// The texts that are made of the table of flags.
namespace elastic::cli {

// What --help prints: at most 80 columns, with a line end at its end.
std::string help_text();

// What --version prints: "elastic-run 0.1.0" and a line end; started as torchrun "torchrun (elastic-run 0.1.0)".
std::string version_text();

// man/elastic-run.1 in the language of man(7).
std::string man_page();

// The part of docs/command-line.md that comes from the table of flags, in Markdown.
std::string reference_page();

// The completion of this program, by the name that it was started by, for "bash", "zsh" or "fish": a script for that
// shell to load. `shell` must be one of the choices of --print-completion, as the parser has it.
std::string completion_script(std::string_view shell);

}  // namespace elastic::cli
