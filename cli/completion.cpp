#include "cli/help.h"

#include <vector>

#include "cli/flag_table.h"
#include "src/base/check.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

bool names_directory(const Flag& flag) { return flag.metavar == "DIR"; }

// In a shell's script "@NAME@" is replaced by what the table says.
std::string fill(std::string_view script, std::string_view name, std::string_view text) {
  return replace_all(std::string(script), format("@{}@", name), text);
}

// --- bash ----------------------------------------------------------------------------------------

// The script splits the line itself, since bash also splits words at "=" and ":".
constexpr std::string_view kBash =
    R"bash(# bash completion for elastic-run, made by: elastic-run --print-completion bash
# Load it with: source <(elastic-run --print-completion bash)

_elastic_run() {
  local line=${COMP_LINE:0:COMP_POINT} words=() current flag='' script='' i
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current=${words[-1]}
  COMPREPLY=()

  for ((i = 1; i < ${#words[@]} - 1; ++i)); do
    if [[ -n $flag ]]; then
      flag=''
      continue
    fi
    case ${words[i]//_/-} in
      --*=*) ;;
      @VALUE_FLAGS@) flag=${words[i]} ;;
      -[!-]* | --?*) ;;
      *) script=1; break ;; # the script, or "--" before it
    esac
  done

  if [[ -z $script && -z $flag ]]; then
    case $current in
      --*=*) flag=${current%%=*} current=${current#*=} ;;
      -*)
        mapfile -t COMPREPLY < <(compgen -W '@OPTIONS@' -- "$current")
        return
        ;;
    esac
  fi

  local known=''
  case ${flag//_/-} in
@KNOWN_VALUES@    @DIRECTORY_FLAGS@)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    '') # the script, or an argument of it
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
  esac
  local before=''
  [[ $line == *"$flag=$current" && $COMP_WORDBREAKS != *=* ]] && before="$flag="
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$known" -- "$current")
}

complete -F _elastic_run elastic-run
)bash";

std::string bash_script() {
  std::vector<std::string> options;
  std::vector<std::string> value_flags;
  std::vector<std::string> directory_flags;
  std::string known_values;
  for (const Flag& flag : flag_table()) {
    const std::string name = long_spelling(flag);
    options.push_back(name);
    std::vector<std::string> spellings = {name};
    if (flag.letter != 0) {
      spellings.push_back(format("-{}", flag.letter));
      options.push_back(spellings.back());
    }
    if (takes_value(flag)) value_flags.push_back(join(spellings, "|"));
    if (names_directory(flag)) directory_flags.push_back(join(spellings, "|"));
    if (!flag.words.empty()) {
      known_values += format("    {}) known='{}' ;;\n", join(spellings, "|"), join(words_of(flag), " "));
    }
  }
  std::string script = fill(kBash, "OPTIONS", join(options, " "));
  script = fill(script, "VALUE_FLAGS", join(value_flags, "|"));
  script = fill(script, "DIRECTORY_FLAGS", join(directory_flags, "|"));
  return fill(script, "KNOWN_VALUES", known_values);
}

// --- zsh -----------------------------------------------------------------------------------------

constexpr std::string_view kZsh = R"zsh(#compdef elastic-run
# zsh completion for elastic-run, made by: elastic-run --print-completion zsh
# Put it into a directory of $fpath as _elastic-run, or load it after compinit with:
# source <(elastic-run --print-completion zsh)

_elastic-run() {
  # No option is completed behind the script (-A).
  _arguments -s -S -A '-*' \
@SPECIFICATIONS@    '1:script:_files' \
    '*:argument of the script:_files'
}

if [[ ${funcstack[1]} == _elastic-run ]]; then
  _elastic-run "$@"
else
  compdef _elastic-run elastic-run
fi
)zsh";

// What completes the value: ":METAVAR:(a b)", ":METAVAR:_files -/", or nothing that is known.
std::string zsh_value(const Flag& flag) {
  const std::string metavar = replace_all(std::string(flag.metavar), ":", "\\:");
  if (names_directory(flag)) return format(":{}:_files -/", metavar);
  if (!flag.words.empty()) return format(":{}:({})", metavar, join(words_of(flag), " "));
  return format(":{}: ", metavar);
}

std::string zsh_script() {
  std::string specifications;
  for (const Flag& flag : flag_table()) {
    const std::string name = long_spelling(flag);
    std::string help = replace_all(std::string(flag.help), "[", "\\[");
    help = format("[{}]", replace_all(help, "]", "\\]"));
    const std::string value = takes_value(flag) ? zsh_value(flag) : std::string();
    std::vector<std::string> forms;
    if (flag.letter != 0) {
      const std::string others = format("(-{} {})", flag.letter, name);
      forms.push_back(format("{}-{}{}", others, flag.letter, takes_value(flag) ? "+" : ""));
      forms.push_back(format("{}{}{}", others, name, takes_value(flag) ? "=" : ""));
    } else if (flag.kind == FlagKind::kOptionalChoice) {
      forms.push_back(name + "=-");
    } else {
      forms.push_back(name + (takes_value(flag) ? "=" : ""));
    }
    for (const std::string& form : forms) {
      const bool optional = flag.kind == FlagKind::kOptionalChoice;
      const std::string tail = optional ? ":" + zsh_value(flag) : value;
      specifications += format("    {} \\\n", shell_quote(form + help + tail));
    }
  }
  return fill(kZsh, "SPECIFICATIONS", specifications);
}

// --- fish ----------------------------------------------------------------------------------------

constexpr std::string_view kFish =
    R"fish(# fish completion for elastic-run, made by: elastic-run --print-completion fish
# Put it into ~/.config/fish/completions/elastic-run.fish, or load it with:
# elastic-run --print-completion fish | source

# True while the script is not named yet: only then options are ours.
function __elastic_run_before_script
    set -l words (commandline -opc)
    set -e words[1]
    set -l is_value 0
    for word in $words
        if test $is_value = 1
            set is_value 0
            continue
        end
        switch (string replace -a _ - -- $word)
            case '--*=*'
            case @VALUE_FLAGS@
                set is_value 1
            case -
                return 1
            case '-*'
            case '*'
                return 1
        end
    end
    return 0
end

complete -c elastic-run -e
@SPECIFICATIONS@)fish";

std::string fish_quote(std::string_view text) {
  return "'" + replace_all(replace_all(std::string(text), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_script() {
  std::vector<std::string> value_flags;
  std::string specifications;
  for (const Flag& flag : flag_table()) {
    std::string line = format("complete -c elastic-run -n __elastic_run_before_script -l {}", flag.name);
    if (flag.letter != 0) line += format(" -s {}", flag.letter);
    if (takes_value(flag)) {
      line += " -x";
      value_flags.push_back(long_spelling(flag));
      if (flag.letter != 0) value_flags.push_back(format("-{}", flag.letter));
    }
    if (names_directory(flag)) {
      line += " -a '(__fish_complete_directories)'";
    } else if (!flag.words.empty()) {
      line += " -a " + fish_quote(join(words_of(flag), " "));
    }
    specifications += format("{} -d {}\n", line, fish_quote(flag.help));
  }
  return fill(fill(kFish, "VALUE_FLAGS", join(value_flags, " ")), "SPECIFICATIONS", specifications);
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return in_our_name(bash_script());
  if (shell == "zsh") return in_our_name(zsh_script());
  ELASTIC_CHECK(shell == "fish");
  return in_our_name(fish_script());
}

}  // namespace elastic::cli
