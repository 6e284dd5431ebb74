#include "cli/help.h"

#include <doctest/doctest.h>

#include "cli/flag_table.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli;

TEST_CASE("no line of the help is wider than 80 columns or ends in blanks") {
  for (const std::string& line : split(help_text(), '\n')) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
    CHECK(!line.ends_with(' '));
  }
  CHECK(help_text().ends_with("\n"));
}

TEST_CASE("help, manual, reference and completions hold every flag of the table") {
  const std::string man = replace_all(man_page(), "\\-", "-");
  const std::string zsh = completion_script("zsh");
  const std::string bash = completion_script("bash");
  const std::string fish = completion_script("fish");
  for (const Flag& flag : flag_table()) {
    const std::string name = long_spelling(flag);
    CAPTURE(name);
    const std::string help = replace_all(help_text(), ", ", "    ");
    CHECK(help.find("    " + name) != std::string::npos);
    CHECK(man.find(name) != std::string::npos);
    CHECK(reference_page().find("`" + name) != std::string::npos);
    CHECK(bash.find(name) != std::string::npos);
    CHECK(zsh.find(name) != std::string::npos);
    CHECK(fish.find("-l " + std::string(flag.name) + " ") != std::string::npos);
  }
}

TEST_CASE("the version is one line with the program's name") {
  CHECK(version_text() == "elastic-run " ELASTIC_RUN_VERSION "\n");
}

TEST_CASE("started in torchrun's place it helps and completes by that name, and says what it is") {
  set_program_name("/opt/venv/bin/torchrun");
  const std::string help = help_text();
  const std::string version = version_text();
  const std::string bash = completion_script("bash");
  set_program_name("elastic-run");
  CHECK(help.starts_with("Usage: torchrun [OPTION]... SCRIPT [ARGUMENT]...\n"));
  CHECK(help.find("\nStarted as torchrun, this is elastic-run " ELASTIC_RUN_VERSION ".\n") != std::string::npos);
  CHECK(help.find("\n  torchrun --standalone ") != std::string::npos);
  CHECK(help.find("\nMore: man elastic-run, ") != std::string::npos);
  CHECK(split(help, '\n').size() == split(help_text(), '\n').size() + 1);
  CHECK(version == "torchrun (elastic-run " ELASTIC_RUN_VERSION ")\n");
  CHECK(bash.find("\ncomplete -F _torchrun torchrun\n") != std::string::npos);
  CHECK(bash.find("elastic") == std::string::npos);
  CHECK(help_text().find("torchrun, this is") == std::string::npos);
}
