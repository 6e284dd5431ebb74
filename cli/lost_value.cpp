#include "cli/lost_value.h"

#include "src/base/text.h"

namespace elastic::cli {

namespace {

bool takes_file(const Flag& flag) {
  return flag.metavar == "FILE" || flag.metavar == "CMD" || flag.id == FlagId::kWrap;
}

}  // namespace

bool looks_like_script(std::string_view text) { return text.ends_with(".py") || text.ends_with(".sh"); }

std::optional<Error> lost_value(const Flag& flag, const std::string& input, std::string_view value, bool is_typed) {
  const bool is_empty = trim(value).empty();
  if (!is_empty && (!looks_like_script(value) || takes_file(flag))) return {};
  std::string reason =
      is_empty ? "its value is empty, perhaps because a variable is not set"
               : format("its value is the script's name, {}, perhaps because a variable is not set", printable(value));
  const std::string name = long_spelling(flag);
  return Error{input, std::move(reason),
               is_typed ? format("write {}={}", name, flag.metavar)
                        : format("correct the variable or unset it, or give {} on the command line", name)};
}

}  // namespace elastic::cli
