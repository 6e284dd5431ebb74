#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flag_table.h"
#include "src/base/result.h"

namespace elastic::cli {

// Each wins over those before it. kDetected: from where elastic-run was started, see cli/detect/detect.h.
enum class Origin : unsigned char { kDefault, kDetected, kEnvironment, kCommandLine };

struct FlagValue {
  std::optional<std::string> text;  // "true" or "false" for a switch; none: unset
  Origin origin = Origin::kDefault;
  std::string source;  // kCommandLine: as typed ("--max-r 3"); kEnvironment: the variable's name;
                       // kDetected: "Slurm: SLURM_STEP_NUM_NODES=3"
};

// Every flag with its value and where it came from. What the flag table says of a flag holds: each value is of its
// flag's kind and within its bounds, and no flag stands beside one that excludes it or without one that it needs. What
// a value means beyond that is checked in flag_checks.h.
class ParsedFlags {
 public:
  Mode mode = Mode::kJob;
  std::string script;  // empty only if the mode needs none, or if the empty string was typed
  std::vector<std::string> script_arguments;

  const FlagValue& operator[](FlagId id) const { return values_[static_cast<std::size_t>(id)]; }
  FlagValue& operator[](FlagId id) { return values_[static_cast<std::size_t>(id)]; }

  // The flag was given, on the command line or by its variable.
  bool is_given(FlagId id) const { return (*this)[id].origin > Origin::kDetected; }
  bool is_detected(FlagId id) const { return (*this)[id].origin == Origin::kDetected; }
  // Either of them: it is not the flag's own default.
  bool is_known(FlagId id) const { return (*this)[id].origin != Origin::kDefault; }
  bool is_set(FlagId id) const { return (*this)[id].text.has_value(); }
  // A switch.
  bool on(FlagId id) const;
  // The value; the empty text where the flag is unset.
  const std::string& text(FlagId id) const;
  // Of flags of kind kInteger and kNumber. The flag must be set.
  std::int64_t integer(FlagId id) const;
  double number(FlagId id) const;
  // Of flags of kind kTextList: the parts; none where the flag is unset.
  std::vector<std::string> list(FlagId id) const;

  // How the user knows the value, to begin a message with: "--max-restarts=abc", "PET_NNODES=''".
  std::string input(FlagId id) const;
  // "default", "command line: --max-r 3", "environment: PET_MAX_RESTARTS" or "Slurm: SLURM_NODEID=1".
  std::string origin_text(FlagId id) const;

 private:
  std::array<FlagValue, kFlagCount> values_;
};

// Looks up an environment variable by its name; nothing if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Reads the arguments (without the program's name) and the PET_ variables. The command line wins over a variable, a
// variable over the default; of a repeated flag the last one counts. Fails on anything that the flag table forbids
// (kind, bounds, choices, refused flags, flags that need or exclude others), and where the script is missing. In a mode
// that stands alone, variables must be of their flag's kind and nothing more: they are meant for the jobs of that
// shell.
Result<ParsedFlags> parse_command_line(std::span<const std::string> arguments, const EnvironmentLookup& environment);

// How the error of a wrong command line is reported.
struct RefusalStyle {
  bool in_json = false;  // the log was to be JSON, so the error is JSON, too
  bool of_job = true;    // no flag replaces the job: torch's error file is written as for a job that failed
};
RefusalStyle refusal_style(std::span<const std::string> arguments, const EnvironmentLookup& environment);

// A warning for each flag that is given and asks for what is not done.
std::vector<std::string> unmet_warnings(const ParsedFlags& flags);

// The parts of a comma list with torchrun's rule: ",," is taken from left to right for a comma
// within a part, nothing is trimmed, an empty text has one empty part.
std::vector<std::string> split_filters(std::string_view text);

}  // namespace elastic::cli
