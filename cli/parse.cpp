#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ranges>
#include <utility>

#include "cli/argv_normalizer.h"
#include "cli/lost_value.h"
#include "src/base/check.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// A value on its way to its flag. A switch has a number: "1" on the command line, any other in a variable.
struct Given {
  const Flag* flag;
  std::string value;
  bool is_typed;  // or else the value follows from the flag: of a switch, or of a kOptionalChoice without "="
  Origin origin;
  std::string source;  // as in FlagValue
};

// Whether the value itself can be wrong, or the flag without another one.
bool can_be_wrong(const Given& one) {
  const Flag& flag = *one.flag;
  if (flag.state == FlagState::kRefused || flag.needs) return true;
  return one.is_typed && flag.kind != FlagKind::kText && flag.kind != FlagKind::kTextList;
}

// Gives the flag a value that is right.
void keep(ParsedFlags& flags, const Given& one) {
  FlagValue& slot = flags[one.flag->id];
  const bool is_further = one.flag->repeats && slot.origin == Origin::kCommandLine;
  std::string text = is_further ? *slot.text + "\n" + one.value : one.value;
  if (one.flag->kind == FlagKind::kSwitch) text = parse_int(one.value) != 0 ? "true" : "false";
  slot = {.text = std::move(text), .origin = one.origin, .source = one.source};
}

// CLI::App's other constructors make a flag for help.
class BareApp : public CLI::App {
 public:
  BareApp() : App("", "", nullptr) {}
};

// Checks values by CLI11, which is told of these flags and no others, as the flag table says, and then which flags go
// together. The normaliser has dealt with argparse's habits before. CLI11's own reading of variables stays unused: it
// takes an empty one for none, and asks the process.
class Reader {
 public:
  Reader(const std::vector<Given>& given, ParsedFlags& flags) : given_(given), flags_(flags) {}

  Status read() {
    for (const Given& one : given_) last_[static_cast<std::size_t>(one.flag->id)] = &one;
    for (const Given* one : last_) {
      if (one != nullptr) add_option(*one);
    }
    std::vector<std::string> words;  // CLI11 takes them from the end
    for (const Given& one : given_ | std::views::reverse) {
      words.push_back(one.value);
      words.push_back(long_spelling(*one.flag));
    }
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError&) {
      return refuse_value();
    }
    return check_company();
  }

 private:
  bool is_alone() const { return stands_alone(flags_.mode); }

  // Which flags of the command line need others, or exclude each other.
  Status check_company() const {
    for (const Given* one : last_) {
      if (one == nullptr || one->origin != Origin::kCommandLine) continue;
      const Flag& flag = *one->flag;
      if (is_alone() && flag.mode != flags_.mode && !flag.beside.has(flags_.mode)) {
        const auto of_mode = std::ranges::find(flag_table(), flags_.mode, &Flag::mode);
        const std::string name = long_spelling(*of_mode);
        return fail(flags_.input(flag.id), format("{} starts no job", name), format("leave it out, or {}", name));
      }
      if (flag.needs && counts(flag.id) && !counts(flag.needs->flag)) {
        return fail(flags_.input(flag.id), std::string(flag.needs->why), std::string(flag.needs->remedy));
      }
    }
    return {};
  }

  // Where flags need each other, an empty text is as good as none.
  bool counts(FlagId id) const {
    const Given* one = last_[static_cast<std::size_t>(id)];
    return one != nullptr && (!one->value.empty() || is_alone());
  }

  void add_option(const Given& last) {
    const Flag& flag = *last.flag;
    const bool is_bounded = last.origin == Origin::kCommandLine || !is_alone() || flag.mode == flags_.mode;
    CLI::Option* option = app_.add_option(long_spelling(flag), [this](const CLI::results_t&) { return take(); });
    option->trigger_on_parse();  // each value is checked, in the order in which they are given
    if (flag.state == FlagState::kRefused) {
      option->check([this, &flag](const std::string&) { return refuse(flag.why); });
    }
    switch (flag.kind) {
      case FlagKind::kInteger:
        option->transform(CLI::Validator([this](std::string& text) { return read_integer(text, kNoInteger); }, ""));
        if (is_bounded && (flag.least || flag.most)) {
          using Limits = std::numeric_limits<std::int64_t>;
          option->check(CLI::Range(flag.least.value_or(Limits::min()), flag.most.value_or(Limits::max()), "bounds"));
        }
        break;
      case FlagKind::kSwitch:
        option->transform(CLI::Validator([this](std::string& text) { return read_integer(text, kNoSwitch); }, ""));
        break;
      case FlagKind::kNumber:
        option->transform(CLI::Validator([this](std::string& text) { return read_number(text); }, ""));
        if (is_bounded && flag.above) {
          using Limits = std::numeric_limits<double>;
          const double least = std::nextafter(static_cast<double>(*flag.above), Limits::infinity());
          option->check(CLI::Range(least, Limits::max(), "bounds"));
        }
        break;
      case FlagKind::kChoice:
      case FlagKind::kOptionalChoice: option->check(CLI::IsMember(words_of(flag))); break;
      case FlagKind::kText:
      case FlagKind::kTextList: break;
    }
  }

  // For a check of ours, which keeps the reason for the message.
  std::string refuse(std::string_view reason) { return reason_ = reason; }

  // As Python's int() reads it, turned to plain digits, which CLI11 reads as well.
  std::string read_integer(std::string& text, std::string_view otherwise) {
    const auto number = parse_int(text);
    if (!number) return refuse(otherwise);
    text = format("{}", *number);
    return {};
  }

  std::string read_number(std::string& text) {
    const auto number = parse_float(text);
    if (!number) return refuse("the value is not a number");
    text = format("{}", *number);
    return {};
  }

  // The value that CLI11 looks at.
  const Given& next() const {
    ELASTIC_CHECK(taken_ < given_.size());
    return given_[taken_];
  }

  // That value is right.
  bool take() {
    keep(flags_, next());
    ++taken_;
    return true;
  }

  Status refuse_value() {
    const Given& one = next();
    const Flag& flag = *one.flag;
    flags_[flag.id] = {.text = one.value, .origin = one.origin, .source = one.source};
    std::string input = flags_.input(flag.id);
    if (flag.state != FlagState::kRefused) {
      if (auto lost = lost_value(flag, input, one.value, one.origin == Origin::kCommandLine)) {
        return std::unexpected(std::move(*lost));
      }
    }
    if (flag.state == FlagState::kRefused) {
      return fail(std::move(input), reason_, format("leave {} out", long_spelling(flag)));
    }
    if (reason_.empty() && flag.kind == FlagKind::kInteger) {
      return fail(std::move(input), format("{} is out of range", *parse_int(one.value)),
                  format("give a number from {} to {}", *flag.least, *flag.most));
    }
    if (reason_.empty() && flag.kind == FlagKind::kNumber) {
      return fail(std::move(input), format("{} is out of range", *parse_float(one.value)),
                  format("give a number above {}", *flag.above));
    }
    if (reason_.empty()) reason_ = format("the value must be one of {}", join(words_of(flag), ", "));
    if (one.origin == Origin::kCommandLine) {
      return fail(std::move(input), reason_, format("write {}={}", long_spelling(flag), flag.metavar));
    }
    return fail(std::move(input), reason_,
                format("correct the variable or unset it, or give {} on the command line", long_spelling(flag)));
  }

  static constexpr std::string_view kNoInteger = "the value is not a whole number";
  static constexpr std::string_view kNoSwitch = "the value is not a whole number (0 is off, 1 is on)";

  const std::vector<Given>& given_;
  ParsedFlags& flags_;
  BareApp app_;
  std::array<const Given*, kFlagCount> last_{};  // of each flag
  std::size_t taken_ = 0;                        // how many of the values were right
  std::string reason_;                           // why the next one is not, where a check of ours says so
};

// Gives the flags their values. CLI11 costs time at every start, so it sees only what can be wrong: in a mode that
// stands alone everything, as any flag may be excluded there.
Status take_values(ParsedFlags& flags, std::vector<Given> given) {
  std::array<bool, kFlagCount> is_checked{};
  for (const Given& one : given) {
    if (!stands_alone(flags.mode) && !can_be_wrong(one)) continue;
    is_checked[static_cast<std::size_t>(one.flag->id)] = true;
    if (one.flag->needs) is_checked[static_cast<std::size_t>(one.flag->needs->flag)] = true;
  }
  std::erase_if(given, [&](const Given& one) {
    if (is_checked[static_cast<std::size_t>(one.flag->id)]) return false;
    keep(flags, one);
    return true;
  });
  return given.empty() ? Status() : Reader(given, flags).read();
}

void add_tokens(std::vector<Given>& given, std::vector<FlagToken>& tokens) {
  for (FlagToken& token : tokens) {
    const Flag& flag = flag_of(token.flag);
    const bool is_typed = token.value.has_value();
    if (!is_typed) token.value = flag.kind == FlagKind::kSwitch ? "1" : words_of(flag).front();
    given.push_back({&flag, std::move(*token.value), is_typed, Origin::kCommandLine, std::move(token.typed)});
  }
}

// Variables count where the command line does not give the flag.
void add_variables(std::vector<Given>& given, const EnvironmentLookup& environment) {
  std::array<bool, kFlagCount> is_typed{};
  for (const Given& one : given) is_typed[static_cast<std::size_t>(one.flag->id)] = true;
  for (const Flag& flag : flag_table()) {
    if (!flag.has_variable || is_typed[static_cast<std::size_t>(flag.id)]) continue;
    std::string name = variable_of(flag);
    std::optional<std::string> value = environment(name);
    if (value) given.push_back({&flag, std::move(*value), true, Origin::kEnvironment, std::move(name)});
  }
}

Mode mode_of(const std::vector<Given>& given) {
  Mode mode = Mode::kJob;
  for (const Given& one : given) {
    if (one.flag->kind == FlagKind::kSwitch && parse_int(one.value) == 0) continue;
    mode = std::max(mode, one.flag->mode);
  }
  return mode;
}

// What is left of the command line: the script, in the modes that have one.
Status take_script(ParsedFlags& flags, CanonicalLine& line) {
  const bool may_lack = flags.mode == Mode::kReport || flags.mode == Mode::kCheckOnly;
  if (stands_alone(flags.mode) && flags.mode != Mode::kReport) {
    if (!line.script) return {};
    const std::string name = long_spelling(*std::ranges::find(flag_table(), flags.mode, &Flag::mode));
    return fail(printable(*line.script), format("{} starts no script", name), format("leave it out, or {}", name));
  }
  if (!line.script && may_lack) return {};
  if (!line.script && line.takes_script) return std::unexpected(std::move(*line.takes_script));
  if (!line.script) {
    return fail("SCRIPT", "the command line names no script",
                in_our_name("write elastic-run [OPTION]... SCRIPT [ARGUMENT]...; elastic-run --help explains it"));
  }
  flags.script = std::move(*line.script);
  flags.script_arguments = std::move(line.script_arguments);
  return {};
}

const std::string kEmpty;

}  // namespace

bool ParsedFlags::on(FlagId id) const {
  ELASTIC_CHECK(flag_of(id).kind == FlagKind::kSwitch);
  return text(id) == "true";
}

const std::string& ParsedFlags::text(FlagId id) const {
  const FlagValue& value = (*this)[id];
  return value.text ? *value.text : kEmpty;
}

std::int64_t ParsedFlags::integer(FlagId id) const {
  const auto number = parse_int(text(id));
  ELASTIC_CHECK(flag_of(id).kind == FlagKind::kInteger && number.has_value());
  return *number;
}

double ParsedFlags::number(FlagId id) const {
  const auto number = parse_float(text(id));
  ELASTIC_CHECK(flag_of(id).kind == FlagKind::kNumber && number.has_value());
  return *number;
}

std::vector<std::string> ParsedFlags::list(FlagId id) const {
  ELASTIC_CHECK(flag_of(id).kind == FlagKind::kTextList);
  return is_set(id) ? split_filters(text(id)) : std::vector<std::string>();
}

std::string ParsedFlags::input(FlagId id) const {
  const FlagValue& value = (*this)[id];
  if (value.origin == Origin::kCommandLine) return value.source;
  const std::string quoted = printable(shell_quote(text(id)));
  if (value.origin == Origin::kEnvironment) return value.source + "=" + quoted;
  const std::string spelled = long_spelling(flag_of(id)) + "=" + quoted;
  return value.origin == Origin::kDetected ? format("{} ({})", spelled, value.source) : spelled;
}

std::string ParsedFlags::origin_text(FlagId id) const {
  const FlagValue& value = (*this)[id];
  switch (value.origin) {
    case Origin::kDefault: return "default";
    case Origin::kDetected: return value.source;
    case Origin::kCommandLine: return "command line: " + value.source;
    case Origin::kEnvironment: return "environment: " + value.source;
  }
  ELASTIC_CHECK(false);
}

Result<ParsedFlags> parse_command_line(std::span<const std::string> arguments, const EnvironmentLookup& environment) {
  Result<CanonicalLine> line = normalize_arguments(arguments);
  if (!line) return std::unexpected(std::move(line.error()));

  ParsedFlags flags;
  for (const Flag& flag : flag_table()) {
    if (flag.by_default) flags[flag.id].text.emplace(*flag.by_default);
  }
  std::vector<Given> given;
  add_tokens(given, line->flags);
  const bool is_answered = mode_of(given) >= Mode::kPrintCompletion;  // whatever the variables are
  if (!is_answered) add_variables(given, environment);
  flags.mode = mode_of(given);
  Status status = take_values(flags, std::move(given));
  if (status && !is_answered) status = take_script(flags, *line);
  if (!status) return std::unexpected(std::move(status.error()));
  return flags;
}

RefusalStyle refusal_style(std::span<const std::string> arguments, const EnvironmentLookup& environment) {
  std::optional<std::string> log_format = environment(variable_of(flag_of(FlagId::kLogFormat)));
  RefusalStyle style;
  if (const auto line = normalize_arguments(arguments)) {
    for (const FlagToken& token : line->flags) {
      if (token.flag == FlagId::kLogFormat) log_format = token.value;
      style.of_job = style.of_job && !stands_alone(flag_of(token.flag).mode);
    }
  }
  style.in_json = log_format == "json";
  return style;
}

std::vector<std::string> unmet_warnings(const ParsedFlags& flags) {
  std::vector<std::string> warnings;
  for (const Flag& flag : flag_table()) {
    if (flag.state != FlagState::kUnmet || flags[flag.id].text == flag.by_default) continue;
    warnings.push_back(format("{}: {}", flags.input(flag.id), flag.why));
  }
  return warnings;
}

std::vector<std::string> split_filters(std::string_view text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      parts.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      parts.back() += ',';
      ++i;
    } else {
      parts.emplace_back();
    }
  }
  return parts;
}

}  // namespace elastic::cli
