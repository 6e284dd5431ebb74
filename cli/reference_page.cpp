#include "cli/help.h"

#include "cli/flag_prose.h"
#include "cli/flag_table.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// Escapes the text of a cell in a Markdown table.
std::string cell(std::string_view text) {
  std::string out = replace_all(std::string(text), "|", "\\|");
  out = replace_all(out, "<", "&lt;");
  return replace_all(out, "_", "\\_");
}

// Code in such a cell; empty for an empty text.
std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + replace_all(std::string(text), "|", "\\|") + "`";
}

std::string row(const Flag& flag) {
  std::string option = long_spelling(flag);
  if (takes_value(flag)) option += format("={}", flag.metavar);
  if (flag.kind == FlagKind::kOptionalChoice) option += format("[={}]", flag.words);
  option = code(option);
  if (flag.letter != 0) option = code(format("-{}", flag.letter)) + ", " + option;
  return format("| {} | {} | {} | {} | {} |\n", option, code(shown_default(flag)), code(variable_of(flag)),
                state_name(flag.state), cell(join(sentences_about(flag), " ")));
}

}  // namespace

std::string reference_page() {
  std::string text;
  const Flag* before = nullptr;
  for (const Flag& flag : flag_table()) {
    if (before == nullptr || before->group != flag.group) {
      text += format("\n### {}\n\n", group_title(flag.group));
      text += "| option | default | variable | state | meaning |\n|---|---|---|---|---|\n";
    }
    text += row(flag);
    before = &flag;
  }
  return text + "\n";
}

}  // namespace elastic::cli
