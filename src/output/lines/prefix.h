#pragma once

#include <string>
#include <string_view>

namespace elastic::output {

// What torchrun puts before a line where no template is given.
inline constexpr std::string_view kDefaultLinePrefix = "[${role_name}${local_rank}]:";

// Whose lines they are.
struct PrefixValues {
  std::string_view role_name;
  int rank = 0;  // in the world
  int local_rank = 0;
  std::string_view hostname;  // the short one (gethostname)
};

// The prefix by --log-line-prefix-template, torchrun's contract: string.Template.safe_substitute
// with the four macros; nothing is added to it. An empty template means the default.
std::string line_prefix(std::string_view template_text, const PrefixValues& values);

}  // namespace elastic::output
