#include "cli/argv_normalizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/lost_value.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr const char* kHelpHint = "elastic-run --help lists all options";
constexpr std::string_view kScriptHint = "options of the script go after its name";

// What an argument is, in a place where an option may stand.
struct Reading {
  enum class Kind { kPositional, kOption, kUnknown, kAmbiguous } kind = Kind::kPositional;
  const Flag* flag = nullptr;                  // kOption
  bool is_letter = false;                      // kOption: -r, not --redirects
  std::optional<std::string_view> attached{};  // kOption: what stands behind "=" or the letter
  std::vector<const Flag*> candidates{};       // kAmbiguous
};

// Whether the flag's name begins with `text`, spelt with dashes or with underscores, but not with both.
bool begins(std::string_view text, const Flag& flag) {
  if (text.size() > flag.name.size()) return false;
  bool dashes = true;
  bool underscores = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separator = flag.name[i] == '-';
    if (text[i] != flag.name[i]) dashes = false;
    if (text[i] != (separator ? '_' : flag.name[i])) underscores = false;
  }
  return dashes || underscores;
}

const Flag* flag_by_letter(char letter) {
  const auto table = flag_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Flag& flag) { return letter != 0 && flag.letter == letter; });
  return found == table.end() ? nullptr : &*found;
}

// Resolves a long name or a beginning of one: a whole name first, then family by family.
Reading read_long_name(std::string_view name) {
  std::vector<const Flag*> candidates;
  for (const Flag& flag : flag_table()) {
    if (!begins(name, flag)) continue;
    if (name.size() == flag.name.size()) {
      return {.kind = Reading::Kind::kOption, .flag = &flag};
    }
    candidates.push_back(&flag);
  }
  if (candidates.empty()) return {.kind = Reading::Kind::kUnknown};
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Flag* a, const Flag* b) { return a->family < b->family; });
  if (candidates.size() == 1 || candidates[0]->family != candidates[1]->family) {
    return {.kind = Reading::Kind::kOption, .flag = candidates[0]};
  }
  return {.kind = Reading::Kind::kAmbiguous, .candidates = std::move(candidates)};
}

// Whether it matches argparse's ^-\d+$|^-\d*\.\d+$
bool looks_like_negative_number(std::string_view token) {
  token.remove_prefix(1);
  const auto digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::size_t dot = token.find('.');
  if (dot == std::string_view::npos) return !token.empty() && digits(token);
  const std::string_view fraction = token.substr(dot + 1);
  return digits(token.substr(0, dot)) && !fraction.empty() && digits(fraction);
}

Reading read_token(std::string_view token) {
  if (token.size() < 2 || token[0] != '-') return {};
  const std::size_t equals = token.find('=');
  Reading reading{.kind = Reading::Kind::kUnknown};
  if (token[1] == '-') {
    reading = read_long_name(token.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    if (equals != std::string_view::npos) reading.attached = token.substr(equals + 1);
  } else if (const Flag* flag = flag_by_letter(token[1])) {
    reading = {.kind = Reading::Kind::kOption, .flag = flag, .is_letter = true};
    if (token.size() > 2) reading.attached = token.substr(2);
  }
  if (reading.kind != Reading::Kind::kUnknown) return reading;
  if (looks_like_negative_number(token)) return {};
  if (token.find(' ') != std::string_view::npos) return {};
  return reading;
}

// The Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The flag whose name is nearest to what was typed; null where none is near.
const Flag* nearest_flag(std::string_view token) {
  constexpr std::size_t kLongestTypo = 64;
  std::string name(token.substr(0, token.find('=')));
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.size() < 2 || name.size() > kLongestTypo) return nullptr;
  const Flag* nearest = nullptr;
  std::size_t least = name.size() / 3 + 1;  // one third of the letters may be wrong
  for (const Flag& flag : flag_table()) {
    const std::size_t far = distance(name, flag.name);
    if (far < least) {
      least = far;
      nearest = &flag;
    }
  }
  return nearest;
}

Error unknown_option(std::string_view token) {
  const Flag* near = nearest_flag(token);
  return {printable(token), "there is no such option",
          near ? format("did you mean {}? ({})", long_spelling(*near), kScriptHint)
               : format("{}; {}", kScriptHint, in_our_name(kHelpHint))};
}

Error ambiguous_option(std::string_view token, const std::vector<const Flag*>& candidates) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (const Flag* flag : candidates) names.push_back(long_spelling(*flag));
  if (names.size() > kMostNamed) {
    names.resize(kMostNamed);
    names.push_back("...");
  }
  return {printable(token), "this may be " + join(names, ", "),
          format("write more of the one you mean ({})", kScriptHint)};
}

Error unwanted_value(std::string_view token, const Flag& flag) {
  return {printable(token), long_spelling(flag) + " is a switch and takes no value",
          "write " + long_spelling(flag) + " alone"};
}

// Reads the arguments from left to right. Each object reads one command line.
class Normalizer {
 public:
  explicit Normalizer(std::span<const std::string> arguments) : arguments_(arguments) {}

  Result<CanonicalLine> run() {
    while (next_ < arguments_.size() && !ended_) {
      const std::string& token = arguments_[next_];
      if (token == "--") {
        ++next_;
        take_script(/*dashes_used=*/true);
        break;
      }
      const Reading reading = read_token(token);
      if (reading.kind == Reading::Kind::kPositional) {
        take_script(/*dashes_used=*/false);
        break;
      }
      if (Status status = take_option(token, reading); !status) {
        return std::unexpected(std::move(status.error()));
      }
    }
    if (unknown_ && !ended_) {
      // With the script's name gone, its own options seem to be ours.
      const bool is_taken = line_.takes_script && !(line_.script && looks_like_script(*line_.script));
      return std::unexpected(std::move(is_taken ? *line_.takes_script : *unknown_));
    }
    return std::move(line_);
  }

 private:
  // An unknown option is reported only at the end: a --help after it wins, as with argparse.
  Status take_option(const std::string& token, const Reading& reading) {
    first_ = next_++;
    if (reading.kind == Reading::Kind::kAmbiguous) {
      return std::unexpected(ambiguous_option(token, reading.candidates));
    }
    if (reading.kind == Reading::Kind::kUnknown) {
      if (!unknown_) unknown_ = unknown_option(token);
      return {};
    }
    return reading.is_letter ? take_letters(token, reading) : take_long(token, reading);
  }

  Status take_long(const std::string& token, const Reading& reading) {
    const Flag& flag = *reading.flag;
    if (flag.kind == FlagKind::kSwitch && reading.attached) {
      return std::unexpected(unwanted_value(token, flag));
    }
    if (takes_value(flag) && !reading.attached) return take_next_as_value(flag, token);
    std::optional<std::string> value;
    if (reading.attached) value.emplace(*reading.attached);
    add(flag, std::move(value), shell_quote(token));
    return {};
  }

  // "-r3", "-r=3", "-mr3": letters of switches, then at most one that takes the rest as its value.
  Status take_letters(const std::string& token, const Reading& reading) {
    const Flag* flag = reading.flag;
    std::optional<std::string_view> rest = reading.attached;
    while (!takes_value(*flag) && rest && !ended_) {
      add(*flag, {}, shell_quote(token));
      if (rest->front() == '=') return std::unexpected(unwanted_value(token, *flag));
      flag = flag_by_letter(rest->front());
      if (flag == nullptr) {
        return fail(printable(token), format("there is no option -{}", printable(rest->substr(0, 1))),
                    "a long option begins with two dashes");
      }
      rest->remove_prefix(1);
      if (rest->empty()) rest.reset();
    }
    if (ended_) return {};
    if (!takes_value(*flag)) {
      add(*flag, {}, shell_quote(token));
      return {};
    }
    if (!rest) return take_next_as_value(*flag, token);
    if (rest->starts_with('=')) rest->remove_prefix(1);
    add(*flag, std::string(*rest), shell_quote(token));
    return {};
  }

  Status take_next_as_value(const Flag& flag, const std::string& token) {
    const std::string remedy =
        format("write {}={}, which also takes a value that begins with a dash", long_spelling(flag), flag.metavar);
    if (next_ == arguments_.size()) {
      return fail(printable(token),
                  "a value is missing, the command line ends here, perhaps because a variable is not set", remedy);
    }
    const std::string& value = arguments_[next_];  // "--" begins every option: no value either
    if (read_token(value).kind != Reading::Kind::kPositional) {
      return fail(printable(token),
                  format("a value is missing, {} looks like an option, perhaps because a variable is not set",
                         printable(value)),
                  remedy);
    }
    ++next_;
    add(flag, value, shell_quote(token) + " " + shell_quote(value));
    if (looks_like_script(value))
      line_.takes_script = lost_value(flag, line_.flags.back().typed, value, /*is_typed=*/true);
    return {};
  }

  void add(const Flag& flag, std::optional<std::string> value, std::string typed) {
    line_.flags.push_back({flag.id, std::move(value), printable(typed), first_, next_ - first_});
    ended_ = ended_ || flag.id == FlagId::kHelp || flag.id == FlagId::kVersion || flag.id == FlagId::kPrintCompletion;
  }

  // argparse takes the first "--" of a command line for itself if it stands before the script or right behind it. Every
  // other one belongs to the script.
  void take_script(bool dashes_used) {
    if (next_ == arguments_.size()) return;
    line_.script = arguments_[next_++];
    if (!dashes_used && next_ < arguments_.size() && arguments_[next_] == "--") ++next_;
    const auto rest = arguments_.subspan(next_);
    line_.script_arguments.assign(rest.begin(), rest.end());
  }

  std::span<const std::string> arguments_;
  std::size_t next_ = 0;
  std::size_t first_ = 0;  // of the option that is read
  bool ended_ = false;     // --help and its like: what follows is not looked at
  std::optional<Error> unknown_;
  CanonicalLine line_;
};

}  // namespace

Result<CanonicalLine> normalize_arguments(std::span<const std::string> arguments) {
  return Normalizer(arguments).run();
}

}  // namespace elastic::cli
