#include "cli/wrap_rules.h"

#include <charconv>
#include <optional>
#include <utility>

#include "cli/path_search.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr const char* kForm = "write --wrap='RANKS:COMMAND', for example --wrap='0,8-15:nsys profile -o %r'";

std::optional<int> rank_of(std::string_view text) {
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0) return {};
  return rank;
}

// "8" or "8-15".
std::optional<run::WrapRule::Ranks> ranks_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = rank_of(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : rank_of(text.substr(dash + 1));
  if (!first || !last || *first > *last) return {};
  return run::WrapRule::Ranks{*first, *last};
}

Result<run::WrapRule> read_rule(const std::string& line, const std::string& input, const Environment& environment,
                                const HostView& host) {
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) return fail(input, "there is no colon between ranks and command", kForm);
  run::WrapRule rule;
  const std::string ranks(trim(std::string_view(line).substr(0, colon)));
  for (const std::string& part : ranks == "all" ? std::vector<std::string>() : split(ranks, ',')) {
    const auto range = ranks_of(trim(part));
    if (!range) return fail(input, format("\"{}\" names no ranks", printable(part)), kForm);
    rule.ranks.push_back(*range);
  }
  auto words = words_of_command(std::string_view(line).substr(colon + 1));
  if (!words) return fail(input, "a quote is not closed", "close it, or put a backslash before it");
  if (words->empty()) return fail(input, "there is no command after the colon", kForm);
  const std::string& name = words->front();
  const bool is_path = name.contains('/');
  const auto program =
      is_path ? (can_execute(host, name) ? std::optional(name) : std::nullopt) : on_path(environment, host, name);
  if (!program) {
    return fail(input, format("{}: {}", printable(name), is_path ? "not an executable file" : "not found on PATH"),
                "install it on this node, or leave --wrap out");
  }
  rule.program = *program;
  rule.arguments = std::move(*words);
  return rule;
}

}  // namespace

Result<std::vector<run::WrapRule>> read_wrap_rules(std::string_view text, const std::string& input,
                                                   const Environment& environment, const HostView& host) {
  std::vector<run::WrapRule> rules;
  if (text.empty()) return rules;
  for (const std::string& line : split(text, '\n')) {
    auto rule = read_rule(line, input, environment, host);
    if (!rule) return std::unexpected(std::move(rule.error()));
    rules.push_back(std::move(*rule));
  }
  return rules;
}

Status plan_wrap(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  const std::string& text = flags.text(FlagId::kWrap);
  if (text.empty()) return {};
  auto rules = read_wrap_rules(text, flags.input(FlagId::kWrap), environment, host);
  if (!rules) return std::unexpected(std::move(rules.error()));
  for (const std::string& line : split(text, '\n')) {
    plan.entry("wrap", printable(line, 4096), flags.origin_text(FlagId::kWrap));
  }
  plan.settings.wrap = std::move(*rules);
  return {};
}

}  // namespace elastic::cli
