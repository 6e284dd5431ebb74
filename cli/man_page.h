#pragma once

#include <string>

namespace elastic::cli {

// man/elastic-run.1 in the language of man(7).
std::string man_page();

}  // namespace elastic::cli
