#include "cli/parse.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli;

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Result<ParsedFlags> parse(const Words& arguments, const Variables& variables = {}) {
  return parse_command_line(arguments, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string error_of(const Words& arguments, const Variables& variables = {}) {
  const auto flags = parse(arguments, variables);
  return flags ? "no error" : flags.error().text();
}

}  // namespace

TEST_CASE("without flags every value is its default") {
  const auto flags = parse({"t.py", "a"});
  REQUIRE(flags.has_value());
  CHECK(flags->script == "t.py");
  CHECK(flags->script_arguments == Words{"a"});
  CHECK(flags->text(FlagId::kNnodes) == "1:1");
  CHECK(flags->integer(FlagId::kMaxRestarts) == 0);
  CHECK(flags->number(FlagId::kMonitorInterval) == 0.1);
  CHECK(!flags->on(FlagId::kStandalone));
  CHECK(!flags->is_set(FlagId::kMasterPort));
  CHECK(!flags->is_set(FlagId::kDryRun));
  CHECK(flags->list(FlagId::kDuplicateStdoutFilters).empty());
  CHECK(flags->origin_text(FlagId::kNnodes) == "default");
}

TEST_CASE("the command line wins over a variable, a variable over the default") {
  const Variables variables = {{"PET_MAX_RESTARTS", "5"}, {"PET_ROLE", "r"}};
  const auto flags = parse({"--max-r", "3", "t"}, variables);
  REQUIRE(flags.has_value());
  CHECK(flags->integer(FlagId::kMaxRestarts) == 3);
  CHECK(flags->origin_text(FlagId::kMaxRestarts) == "command line: --max-r 3");
  CHECK(flags->text(FlagId::kRole) == "r");
  CHECK(flags->origin_text(FlagId::kRole) == "environment: PET_ROLE");
  CHECK(flags->input(FlagId::kRole) == "PET_ROLE=r");
}

TEST_CASE("of a repeated flag the last one counts, but each must be right") {
  CHECK(parse({"--role=a", "--role=b", "t"})->text(FlagId::kRole) == "b");
  CHECK(error_of({"--max-restarts=x", "--max-restarts=1", "t"}) ==
        "--max-restarts=x: the value is not a whole number; write --max-restarts=N");
}

TEST_CASE(
    "an error about a value that is empty, or is the script's name, says so, and that a variable may not be set") {
  const std::string empty = "its value is empty, perhaps because a variable is not set; ";
  CHECK(error_of({"--max-restarts=", "t.py"}) == "--max-restarts=: " + empty + "write --max-restarts=N");
  CHECK(error_of({"--crash-loop=", "t.py"}).contains(empty));
  CHECK(error_of({"--monitor-interval=", "t.py"}).contains(empty));
  CHECK(error_of({"t.py"}, {{"PET_MAX_RESTARTS", ""}}) ==
        "PET_MAX_RESTARTS='': " + empty +
            "correct the variable or unset it, or give --max-restarts on the command line");
  const std::string script = "its value is the script's name, t.py, perhaps because a variable is not set; ";
  CHECK(error_of({"--max-restarts", "t.py", "data.csv"}) ==
        "--max-restarts t.py: " + script + "write --max-restarts=N");
  // Any value would do, but the line ends without a script.
  CHECK(error_of({"--rdzv-id", "t.py"}) == "--rdzv-id t.py: " + script + "write --rdzv-id=ID");
  CHECK(error_of({"--rdzv-id", "t.py", "u.py"}) == "no error");
}

TEST_CASE("a switch is on by the command line, or by a variable that is not 0") {
  CHECK(parse({"--standalone", "t"})->on(FlagId::kStandalone));
  CHECK(parse({"t"}, {{"PET_STANDALONE", "1"}})->on(FlagId::kStandalone));
  CHECK(parse({"t"}, {{"PET_STANDALONE", " -2 "}})->on(FlagId::kStandalone));
  CHECK(!parse({"t"}, {{"PET_STANDALONE", "0"}})->on(FlagId::kStandalone));
  CHECK(parse({"--standalone", "t"}, {{"PET_STANDALONE", "0"}})->on(FlagId::kStandalone));
}

TEST_CASE("a variable of the wrong kind is an error that names it") {
  CHECK(error_of({"t"}, {{"PET_MAX_RESTARTS", "abc"}}) ==
        "PET_MAX_RESTARTS=abc: the value is not a whole number; correct the variable or unset it, or "
        "give --max-restarts on the command line");
  CHECK(error_of({"t"}, {{"PET_MAX_RESTARTS", ""}}).starts_with("PET_MAX_RESTARTS='': "));
  CHECK(error_of({"t"}, {{"PET_STANDALONE", "yes"}}).starts_with("PET_STANDALONE=yes: "));
  CHECK(error_of({"t"}, {{"PET_STANDALONE", ""}}).starts_with("PET_STANDALONE='': "));
  CHECK(error_of({"t"}, {{"PET_START_METHOD", "bad"}}).starts_with("PET_START_METHOD=bad: "));
}

TEST_CASE("a wrong variable does no harm where the command line sets the flag") {
  CHECK(parse({"--max-restarts=1", "t"}, {{"PET_MAX_RESTARTS", "abc"}}).has_value());
}

TEST_CASE("a flag without a variable does not read one") {
  const Variables variables = {{"PET_NUMA_BINDING", "bad"}, {"PET_LOGS_SPECS", "x"}, {"PET_HELP", "1"}};
  const auto flags = parse({"t"}, variables);
  REQUIRE(flags.has_value());
  CHECK(flags->mode == Mode::kJob);
  CHECK(!flags->is_set(FlagId::kNumaBinding));
}

TEST_CASE("integers and numbers are read as Python reads them") {
  CHECK(parse({"--max-restarts", " 1_0 ", "t"})->integer(FlagId::kMaxRestarts) == 10);
  CHECK(parse({"--max-restarts=+4", "t"})->integer(FlagId::kMaxRestarts) == 4);
  CHECK(parse({"--monitor-interval=1e-1", "t"})->number(FlagId::kMonitorInterval) == 0.1);
  for (const char* bad : {"", "1.5", "0x10", "1e3", "99999999999999999999", "1 2"}) {
    CAPTURE(bad);
    CHECK(!parse({std::string("--max-restarts=") + bad, "t"}).has_value());
  }
  CHECK(!parse({"--monitor-interval=nan", "t"}).has_value());
}

TEST_CASE("a choice must be one of its words, on the command line and in a variable") {
  CHECK(parse({"--start-method=fork", "t"}).has_value());
  CHECK(error_of({"--start-method", "bad", "t"}) ==
        "--start-method bad: the value must be one of spawn, fork, forkserver; write "
        "--start-method=METHOD");
  CHECK(error_of({"--print-completion=tcsh"}) ==
        "--print-completion=tcsh: the value must be one of bash, zsh, fish; write "
        "--print-completion=SHELL");
  CHECK(error_of({"--dry-run=xml", "t"}).starts_with("--dry-run=xml: the value must be one of text, json"));
  CHECK(parse({"--dry-run", "t"})->text(FlagId::kDryRun) == "text");
}

TEST_CASE("a refused flag is an error that says why") {
  CHECK(error_of({"--logs-specs=mine", "t"}) ==
        "--logs-specs=mine: it names a plug-in in Python, which a program without Python cannot "
        "load; "
        "leave --logs-specs out");
}

TEST_CASE("the script must be there, unless help, version or completion is asked for") {
  CHECK(error_of({"--nnodes=1"}).starts_with("SCRIPT: "));
  CHECK(error_of({}).starts_with("SCRIPT: "));
  CHECK(parse({"--help"})->mode == Mode::kHelp);
  CHECK(parse({"--version"})->mode == Mode::kVersion);
  CHECK(parse({"--print-completion=zsh"})->mode == Mode::kPrintCompletion);
  CHECK(parse({"--print-completion=zsh"})->text(FlagId::kPrintCompletion) == "zsh");
  CHECK(parse({"--max-restarts=2", "-h"}, {{"PET_NNODES", ""}, {"PET_MAX_RESTARTS", "x"}})->mode == Mode::kHelp);
}

TEST_CASE("a list of filters is split at commas, and two commas are one within a part") {
  CHECK(split_filters("a,,b,c") == Words{"a,b", "c"});
  CHECK(split_filters("a,,,b") == Words{"a,", "b"});
  CHECK(split_filters(",") == Words{"", ""});
  CHECK(split_filters("") == Words{""});
  CHECK(split_filters(" x ,y") == Words{" x ", "y"});
  CHECK(parse({"t"}, {{"PET_DUPLICATE_STDOUT_FILTERS", "x,y"}})->list(FlagId::kDuplicateStdoutFilters) ==
        Words{"x", "y"});
}

TEST_CASE("a flag that asks for what is not done is named in a line that says what that is") {
  CHECK(unmet_warnings(*parse({"--ucp-device-type=cuda", "--precheck=2", "-r0", "t"})).empty());
  CHECK(unmet_warnings(*parse({"t"}, {{"PET_SAVE_AT_BREAKPOINT", "0"}})).empty());
  const std::string why =
      ": checkpoints that are only in memory are not saved when a worker fails; let the script write to storage what "
      "must not be lost";
  CHECK(unmet_warnings(*parse({"--save_at_breakpoint", "t"})) == Words{"--save_at_breakpoint" + why});
  CHECK(unmet_warnings(*parse({"t"}, {{"PET_SAVE_AT_BREAKPOINT", "1"}})) == Words{"PET_SAVE_AT_BREAKPOINT=true" + why});
}

namespace {

// The flag as a user writes it, with a value that is right.
std::string typed(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return long_spelling(flag);
  return long_spelling(flag) + "=" + (flag.words.empty() ? "1" : words_of(flag).front());
}

std::vector<Mode> modes_that_stand_alone() {
  std::vector<Mode> modes;
  for (const Flag& flag : flag_table()) {
    if (stands_alone(flag.mode)) modes.push_back(flag.mode);
  }
  return modes;
}

const Flag& flag_of_mode(Mode mode) { return *std::ranges::find(flag_table(), mode, &Flag::mode); }

}  // namespace

TEST_CASE("a flag asks for the mode that the table names, and where several are given the strongest holds") {
  for (const Flag& flag : flag_table()) {
    if (flag.state == FlagState::kRefused || flag.needs) continue;
    Words line{typed(flag)};
    if (flag.mode == Mode::kJob) line.emplace_back("a.py");
    CAPTURE(line.front());
    const auto flags = parse(line);
    REQUIRE_MESSAGE(flags.has_value(), (flags ? "" : flags.error().text()));
    CHECK(flags->mode == flag.mode);
  }
  CHECK(parse({"a.py"}, {{"PET_CHECK_ONLY", "1"}})->mode == Mode::kCheckOnly);
  CHECK(parse({"a.py"}, {{"PET_CHECK_ONLY", "0"}})->mode == Mode::kJob);
  CHECK(error_of({"--report=d", "--status=h"}) == "--report=d: --status starts no job; leave it out, or --status");
}

TEST_CASE("a bound of the table holds on the command line and in a variable, and belongs to what is right") {
  int bounds = 0;
  for (const Flag& flag : flag_table()) {
    if (!flag.least) continue;
    CAPTURE(flag.name);
    REQUIRE((flag.kind == FlagKind::kInteger && flag.most));
    const std::string name = long_spelling(flag);
    const Words beside = flag.needs ? Words{long_spelling(flag_of(flag.needs->flag))} : Words{"a.py"};
    const auto line_with = [&](std::int64_t value) {
      Words line{format("{}={}", name, value)};
      line.insert(line.end(), beside.begin(), beside.end());
      return line;
    };
    for (const std::int64_t right : {*flag.least, *flag.most}) CHECK(error_of(line_with(right)) == "no error");
    for (const std::int64_t wrong : {*flag.least - 1, *flag.most + 1}) {
      const std::string why = format("{} is out of range; give a number from {} to {}", wrong, *flag.least, *flag.most);
      CHECK(error_of(line_with(wrong)) == format("{}={}: {}", name, wrong, why));
      if (!flag.has_variable) continue;
      const std::string text = format("{}", wrong);
      CHECK(error_of({"a.py"}, {{variable_of(flag), text}}) == format("{}={}: {}", variable_of(flag), wrong, why));
    }
    ++bounds;
  }
  CHECK(bounds == 8);
  CHECK(error_of({"--max-restarts", " -1_0 ", "t"})
            .ends_with(": -10 is out of range; give a number from 0 to 1000000000"));
  CHECK(error_of({"--monitor-interval=0", "t"}) == "--monitor-interval=0: 0 is out of range; give a number above 0");
  CHECK(error_of({"--monitor-interval=-1", "t"}).find("-1 is out of range") != std::string::npos);
  CHECK(error_of({"--monitor-interval=5e-324", "t"}) == "no error");
}

TEST_CASE("a flag that needs another is refused without it, in the words of the table") {
  int needing = 0;
  for (const Flag& flag : flag_table()) {
    if (!flag.needs) continue;
    CAPTURE(flag.name);
    CHECK(error_of({typed(flag), "a.py"}) == format("{}: {}; {}", typed(flag), flag.needs->why, flag.needs->remedy));
    Words line{typed(flag), typed(flag_of(flag.needs->flag))};
    if (flag_of(flag.needs->flag).mode == Mode::kJob) line.emplace_back("a.py");
    CHECK(error_of(line) == "no error");
    ++needing;
  }
  CHECK(needing == 6);
  // A variable serves as well, an empty text does not, and what only a variable asks for may lack what it needs.
  const Words kinds{"--on-event-kinds=job_ends", "a.py"};
  CHECK(error_of(kinds, {{"PET_ON_EVENT", "true"}}) == "no error");
  CHECK(error_of(kinds, {{"PET_ON_EVENT", ""}}).starts_with("--on-event-kinds=job_ends: "));
  CHECK(error_of({"--on-event=", "--on-event-kinds=job_ends", "a.py"}).starts_with("--on-event-kinds=job_ends: "));
  CHECK(error_of({"a.py"}, {{"PET_ON_EVENT_KINDS", "job_ends"}}) == "no error");
}

TEST_CASE("a mode that stands alone takes the flags that the table puts beside it, and refuses all others") {
  CHECK(modes_that_stand_alone().size() == 9);
  for (const Mode mode : modes_that_stand_alone()) {
    const Flag& alone = flag_of_mode(mode);
    const std::string name = long_spelling(alone);
    for (const Flag& flag : flag_table()) {
      if (flag.id == alone.id || flag.state == FlagState::kRefused || flag.mode >= mode) continue;
      CAPTURE(name);
      CAPTURE(flag.name);
      const std::string expected = flag.beside.has(mode)
                                       ? "no error"
                                       : format("{}: {} starts no job; leave it out, or {}", typed(flag), name, name);
      const bool lacks = alone.needs && alone.needs->flag != flag.id;
      const Words needed = lacks ? Words{typed(flag_of(alone.needs->flag))} : Words{};
      for (Words line : {Words{typed(flag), typed(alone)}, Words{typed(alone), typed(flag)}}) {
        line.insert(line.end(), needed.begin(), needed.end());
        CHECK(error_of(line) == expected);
      }
    }
  }
  // Of several the first in the table is named.
  CHECK(error_of({"--dry-run", "--role=x", "--store-only", "--nnodes=2"}).starts_with("--nnodes=2: --store-only"));
  CHECK(error_of({"--store-only", "train.py"}) ==
        "train.py: --store-only starts no script; leave it out, or --store-only");
}

TEST_CASE("variables are for the jobs of the shell: a mode that stands alone asks only that they are of their kind") {
  CHECK(error_of({"--store-only"}, {{"PET_NNODES", "2"}, {"PET_MAX_RESTARTS", "-1"}}) == "no error");
  CHECK(error_of({"--store-only"}, {{"PET_MAX_RESTARTS", "x"}}).starts_with("PET_MAX_RESTARTS=x: "));
}

TEST_CASE("where JSON is asked for, a command line that is wrong is told so in JSON, too") {
  const auto wants = [](const Words& arguments, const Variables& variables) {
    return refusal_style(arguments,
                         [&](const std::string& name) {
                           const auto found = variables.find(name);
                           return found == variables.end() ? std::nullopt : std::optional(found->second);
                         })
        .in_json;
  };
  const Variables json{{"PET_LOG_FORMAT", "json"}};
  CHECK(wants({"--log-form", "json", "--max-restarts=x", "a.py"}, {}));
  CHECK(wants({"--max-restarts=-1", "a.py"}, json));
  CHECK_FALSE(wants({"--log-format=text", "a.py"}, json));
  CHECK_FALSE(wants({"a.py", "--log-format=json"}, {}));
  CHECK(wants({"--bogus"}, json));
}

TEST_CASE("a command line that is wrong is a job's, unless a flag of it replaces the job") {
  const auto of_job = [](const Words& arguments) {
    return refusal_style(arguments, [](const std::string&) { return std::optional<std::string>(); }).of_job;
  };
  CHECK(of_job({"--max-restarts=x", "a.py"}));
  CHECK(of_job({"--check-only", "--max-restarts=x"}));
  CHECK(of_job({"a.py", "--store-only"}));
  CHECK_FALSE(of_job({"--store-only", "--port=-1"}));
  CHECK_FALSE(of_job({"--port=-1", "--coordinator-only"}));
}
