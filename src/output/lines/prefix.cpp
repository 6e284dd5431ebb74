#include "src/output/lines/prefix.h"

#include "src/base/text.h"

namespace elastic::output {

std::string line_prefix(std::string_view template_text, const PrefixValues& values) {
  const std::string rank = format("{}", values.rank);
  const std::string local_rank = format("{}", values.local_rank);
  return expand_macros(
      template_text,
      {{"role_name", values.role_name}, {"rank", rank}, {"local_rank", local_rank}, {"hostname", values.hostname}},
      TwoDollars::kOne);
}

}  // namespace elastic::output
