#include "cli/parse.h"

#include <algorithm>
#include <utility>

#include "cli/argv_normalizer.h"
#include "src/base/check.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// The value as ParsedFlags keeps it, or the reason why it is none of the flag's kind.
using Converted = std::expected<std::string, std::string>;

Converted convert_choice(const Flag& flag, const std::string& value) {
  const std::vector<std::string> choices = words_of(flag);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  return std::unexpected(format("the value must be one of {}", join(choices, ", ")));
}

Converted convert(const Flag& flag, const std::string& value) {
  switch (flag.kind) {
    case FlagKind::kInteger:
      if (!parse_int(value)) return std::unexpected("the value is not a whole number");
      return value;
    case FlagKind::kNumber:
      if (!parse_float(value)) return std::unexpected("the value is not a number");
      return value;
    case FlagKind::kChoice:
    case FlagKind::kOptionalChoice: return convert_choice(flag, value);
    case FlagKind::kSwitch:  // from a variable; on the command line a switch has no value
      if (const auto number = parse_int(value)) return *number != 0 ? "true" : "false";
      return std::unexpected("the value is not a whole number (0 is off, 1 is on)");
    case FlagKind::kText:
    case FlagKind::kTextList: return value;
  }
  ELASTIC_CHECK(false);
}

std::string remedy_of(const Flag& flag, Origin origin) {
  if (origin == Origin::kEnvironment) {
    return format("correct the variable or unset it, or give {} on the command line", long_spelling(flag));
  }
  return format("write {}={}", long_spelling(flag), flag.metavar);
}

Status store(ParsedFlags& flags, const Flag& flag, const std::string& value, FlagValue where) {
  Converted converted = convert(flag, value);
  FlagValue& slot = flags[flag.id];
  slot = std::move(where);
  slot.text = value;  // for the message
  if (!converted) {
    return fail(flags.input(flag.id), std::move(converted.error()), remedy_of(flag, slot.origin));
  }
  slot.text = std::move(*converted);
  return {};
}

Status store_token(ParsedFlags& flags, FlagToken& token) {
  const Flag& flag = flag_of(token.flag);
  FlagValue where{.text = {}, .origin = Origin::kCommandLine, .source = std::move(token.typed)};
  if (flag.state == FlagState::kRefused) {
    return fail(where.source, std::string(flag.why), "leave " + long_spelling(flag) + " out");
  }
  if (flag.kind == FlagKind::kSwitch) return store(flags, flag, "1", std::move(where));
  if (!token.value) {
    ELASTIC_CHECK(flag.kind == FlagKind::kOptionalChoice);
    token.value = words_of(flag).front();
  }
  const FlagValue& before = flags[flag.id];
  if (flag.repeats && before.origin == Origin::kCommandLine && before.text) {
    return store(flags, flag, *before.text + "\n" + *token.value, std::move(where));
  }
  return store(flags, flag, *token.value, std::move(where));
}

Request request_of(FlagId last_flag) {
  switch (last_flag) {
    case FlagId::kHelp: return Request::kHelp;
    case FlagId::kVersion: return Request::kVersion;
    case FlagId::kPrintCompletion: return Request::kPrintCompletion;
    default: return Request::kRun;
  }
}

Status read_variables(ParsedFlags& flags, const EnvironmentLookup& environment) {
  for (const Flag& flag : flag_table()) {
    if (!flag.has_variable || flags.is_given(flag.id)) continue;
    const std::string name = variable_of(flag);
    const std::optional<std::string> value = environment(name);
    if (!value) continue;
    if (Status status = store(flags, flag, *value, {.text = {}, .origin = Origin::kEnvironment, .source = name});
        !status) {
      return status;
    }
  }
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
  for (FlagToken& token : line->flags) {
    if (Status status = store_token(flags, token); !status) {
      return std::unexpected(std::move(status.error()));
    }
    flags.request = request_of(token.flag);
  }
  if (flags.request != Request::kRun) return flags;
  if (Status status = read_variables(flags, environment); !status) {
    return std::unexpected(std::move(status.error()));
  }
  // In whose place nothing is started.
  struct Instead {
    FlagId id;
    Request request;
  };
  for (const Instead& instead :
       {Instead{FlagId::kStoreOnly, Request::kStoreOnly}, Instead{FlagId::kCoordinatorOnly, Request::kCoordinatorOnly},
        Instead{FlagId::kReplay, Request::kReplay}, Instead{FlagId::kStatus, Request::kStatus},
        Instead{FlagId::kStatusKey, Request::kStatusKey}}) {
    const Flag& flag = flag_of(instead.id);
    const bool wanted = flag.kind == FlagKind::kSwitch ? flags.on(flag.id) : flags.is_set(flag.id);
    if (!wanted) continue;
    if (line->script) {
      const std::string name = format("--{}", flag.name);
      return fail(printable(*line->script), format("{} starts no script", name), format("leave it out, or {}", name));
    }
    flags.request = instead.request;
    return flags;
  }
  if (flags.is_set(FlagId::kReport)) flags.request = Request::kReport;
  const bool needs_none = flags.request == Request::kReport || flags.on(FlagId::kCheckOnly);
  if (!line->script && needs_none) return flags;
  if (!line->script) {
    return fail("SCRIPT", "the command line names no script",
                in_our_name("write elastic-run [OPTION]... SCRIPT [ARGUMENT]...; elastic-run --help explains it"));
  }
  flags.script = std::move(*line->script);
  flags.script_arguments = std::move(line->script_arguments);
  return flags;
}

std::optional<std::string> no_effect_warning(const ParsedFlags& flags) {
  std::vector<std::string> inputs;
  for (const Flag& flag : flag_table()) {
    if (flag.state != FlagState::kLater || flags[flag.id].text == flag.by_default) continue;
    inputs.push_back(flags.input(flag.id));
  }
  if (inputs.empty()) return {};
  return format("no effect yet: {} (--help marks all options like these)", join(inputs, ", "));
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
