#pragma once

#include <string>

namespace elastic::cli {

// The part of docs/command-line.md that comes from the table of flags, in Markdown.
std::string reference_page();

}  // namespace elastic::cli
