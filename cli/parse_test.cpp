#include "cli/parse.h"

#include <doctest/doctest.h>

#include <map>

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
  CHECK(flags->request == Request::kRun);
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
  CHECK(parse({"--help"})->request == Request::kHelp);
  CHECK(parse({"--version"})->request == Request::kVersion);
  CHECK(parse({"--print-completion=zsh"})->request == Request::kPrintCompletion);
  CHECK(parse({"--print-completion=zsh"})->text(FlagId::kPrintCompletion) == "zsh");
  CHECK(parse({"--max-restarts=2", "-h"}, {{"PET_NNODES", ""}, {"PET_MAX_RESTARTS", "x"}})->request == Request::kHelp);
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

TEST_CASE("one warning names every flag that is set and has no effect yet") {
  CHECK(!no_effect_warning(*parse({"t"})).has_value());
  CHECK(!no_effect_warning(*parse({"-r0", "--training_port=60000", "--max-restarts=3", "--monitor-interval=3", "t"}))
             .has_value());
  CHECK(no_effect_warning(*parse({"--auto_tunning", "--save-at-breakpoint", "t"}, {{"PET_NUMA_AFFINITY", "1"}})) ==
        "no effect yet: PET_NUMA_AFFINITY=true, --auto_tunning, --save-at-breakpoint (--help marks all options like "
        "these)");
  CHECK(!no_effect_warning(*parse({"--precheck=2", "--comm-perf-test", "t"})).has_value());
  CHECK(!no_effect_warning(*parse({"--event-log-handler=console", "t"})).has_value());
}

TEST_CASE("the flags that ask for something else than a job are marked in the table, and no others") {
  for (const Flag& flag : flag_table()) {
    if (flag.id == FlagId::kHelp || flag.state == FlagState::kRefused) continue;
    const std::string value = flag.words.empty() ? "1" : words_of(flag).front();
    std::vector<std::string> line{flag.kind == FlagKind::kSwitch ? long_spelling(flag)
                                                                 : long_spelling(flag) + "=" + value};
    if (!flag.replaces_job) line.emplace_back("a.py");
    CAPTURE(line.front());
    const auto flags = parse_command_line(line, [](const std::string&) { return std::nullopt; });
    REQUIRE_MESSAGE(flags.has_value(), (flags ? "" : flags.error().text()));
    const bool is_job = flags->request == Request::kRun && !flags->on(FlagId::kCheckOnly);
    CHECK(is_job != flag.replaces_job);
  }
}
