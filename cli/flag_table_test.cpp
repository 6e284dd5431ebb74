#include "cli/flag_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli;

TEST_CASE("spellings, argparse's name and the variable of a flag derive from its name") {
  const Flag& flag = flag_of(FlagId::kNprocPerNode);
  CHECK(long_spelling(flag) == "--nproc-per-node");
  CHECK(underscore_spelling(flag) == "--nproc_per_node");
  CHECK(dest_of(flag) == "nproc_per_node");
  CHECK(variable_of(flag) == "PET_NPROC_PER_NODE");
  CHECK(underscore_spelling(flag_of(FlagId::kNnodes)) == "--nnodes");
}

TEST_CASE("the flags that torchrun reads no variable for have none, nor have ours") {
  std::set<std::string> without;
  for (const Flag& flag : flag_table()) {
    if (variable_of(flag).empty()) without.insert(dest_of(flag));
  }
  CHECK(without == std::set<std::string>{"logs_specs", "numa_binding", "print_completion", "help", "version", "dry_run",
                                         "coordinator_only", "store_only", "port", "report", "html", "record", "replay",
                                         "status", "watch", "drain", "stop", "stacks", "status_key"});
}

TEST_CASE("every flag of the table is whole: help, words for choices, a metavar for a value") {
  std::set<std::string> names;
  std::set<char> letters;
  for (const Flag& flag : flag_table()) {
    CAPTURE(flag.name);
    CHECK(names.insert(std::string(flag.name)).second);
    CHECK((flag.letter == 0 || letters.insert(flag.letter).second));
    CHECK(!flag.help.empty());
    CHECK(flag.help.find('.') != flag.help.size() - 1);  // a phrase: the full stop is set elsewhere
    CHECK((flag.more.empty() || flag.more.ends_with('.')));
    CHECK(takes_value(flag) == !flag.metavar.empty());
    CHECK((flag.state == FlagState::kRefused || flag.state == FlagState::kUnmet) == !flag.why.empty());
    const bool choice = flag.kind == FlagKind::kChoice || flag.kind == FlagKind::kOptionalChoice;
    CHECK((!choice || words_of(flag).size() > 1));
    CHECK((flag.kind != FlagKind::kSwitch || flag.by_default == "false"));
  }
}

TEST_CASE("the help of an endpoint names the port that is taken where none is given") {
  const std::string port = std::to_string(transport::kDefaultPort);
  for (const FlagId id : {FlagId::kRdzvEndpoint, FlagId::kStatus}) {
    CHECK(flag_of(id).more.find(port + " unless it is given") != std::string::npos);
  }
}

TEST_CASE("every default is a value of its flag's kind") {
  for (const Flag& flag : flag_table()) {
    if (!flag.by_default) continue;
    CAPTURE(flag.name);
    const std::string text(*flag.by_default);
    if (flag.kind == FlagKind::kInteger) CHECK(parse_int(text).has_value());
    if (flag.kind == FlagKind::kNumber) CHECK(parse_float(text).has_value());
    if (flag.kind == FlagKind::kChoice) {
      const auto words = words_of(flag);
      CHECK(std::find(words.begin(), words.end(), text) != words.end());
    }
  }
}
