#pragma once

#include <string>
#include <string_view>

namespace elastic::output {

// The template of the prefix that torchrun puts before each line by default.
inline constexpr std::string_view kDefaultLinePrefix = "[${role_name}${local_rank}]:";

// The worker whose lines get the prefix.
struct PrefixValues {
  std::string_view role_name;
  int rank = 0;  // in the world
  int local_rank = 0;
  std::string_view hostname;  // the short one (gethostname)
};

// Makes the prefix by --log-line-prefix-template. torchrun's contract: string.Template.safe_substitute
// with the four macros; nothing is added, so that an empty template makes no prefix.
std::string line_prefix(std::string_view template_text, const PrefixValues& values);

}  // namespace elastic::output
