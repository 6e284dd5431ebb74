#include "cli/flag_prose.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::cli {
namespace {

// A phrase of the table as a sentence; a word that must be typed as it stands keeps its case.
std::string sentence(const Flag& flag, std::string_view phrase) {
  std::string text(phrase);
  const std::string first = text.substr(0, text.find_first_of(" ,:"));
  const std::vector<std::string> words = words_of(flag);
  if (std::find(words.begin(), words.end(), first) == words.end()) {
    text.replace(0, 1, upper(text.substr(0, 1)));
  }
  return text.ends_with('.') ? text : text + '.';
}

}  // namespace

std::vector<std::string> sentences_about(const Flag& flag) {
  std::vector<std::string> sentences = {sentence(flag, flag.help)};
  if (!flag.more.empty()) sentences.emplace_back(flag.more);
  if (flag.family == Family::kDlrover) sentences.emplace_back("An option of dlrover-run.");
  if (flag.family == Family::kOurs) {
    sentences.emplace_back("An option of elastic-run only.");
  }
  return sentences;
}

std::string_view state_name(FlagState state) {
  constexpr std::string_view kNames[] = {"works", "nothing to do", "a warning", "error"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(FlagState::kRefused) + 1);
  return kNames[static_cast<std::size_t>(state)];
}

std::string shown_default(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return flag.group == FlagGroup::kAbout ? "" : "off";
  return std::string(flag.by_default.value_or(""));
}

}  // namespace elastic::cli
