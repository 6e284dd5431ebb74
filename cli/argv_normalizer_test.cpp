#include "cli/argv_normalizer.h"

#include <doctest/doctest.h>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli;

namespace {

using Words = std::vector<std::string>;

// One line for a whole reading, to compare: "redirects=3 module | train.py | a b".
std::string read(const Words& arguments) {
  const auto line = normalize_arguments(arguments);
  if (!line) return "error: " + line.error().text();
  Words flags;
  for (const FlagToken& token : line->flags) {
    flags.push_back(dest_of(flag_of(token.flag)) + (token.value ? "=" + *token.value : ""));
  }
  return join(flags, " ") + " | " + line->script.value_or("(none)") + " | " + join(line->script_arguments, " ");
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a value stands behind an equals sign or is the next argument") {
  CHECK(read({"--nnodes=2", "t.py"}) == "nnodes=2 | t.py | ");
  CHECK(read({"--nnodes", "2", "t.py"}) == "nnodes=2 | t.py | ");
  CHECK(read({"--rdzv-conf=a=b,c=d", "t.py"}) == "rdzv_conf=a=b,c=d | t.py | ");
  CHECK(read({"--role=", "t.py"}) == "role= | t.py | ");
  CHECK(read({"--role", "", "t.py"}) == "role= | t.py | ");
  CHECK(read({"--role=-x", "t.py"}) == "role=-x | t.py | ");
}

TEST_CASE("dashes and underscores are two spellings, a mixture is none") {
  CHECK(read({"--nproc_per_node=2", "t"}) == "nproc_per_node=2 | t | ");
  CHECK(read({"--nproc-per-node=2", "t"}) == "nproc_per_node=2 | t | ");
  CHECK(contains(read({"--nproc-per_node=2", "t"}), "did you mean --nproc-per-node?"));
}

TEST_CASE("short options take their value joined, apart or behind an equals sign, and may be grouped") {
  CHECK(read({"-r3", "t"}) == "redirects=3 | t | ");
  CHECK(read({"-r", "3", "t"}) == "redirects=3 | t | ");
  CHECK(read({"-r=3", "t"}) == "redirects=3 | t | ");
  CHECK(read({"-r", "-1", "t"}) == "redirects=-1 | t | ");
  CHECK(read({"-mr3", "t"}) == "module redirects=3 | t | ");
  CHECK(read({"-mr=3", "t"}) == "module redirects=3 | t | ");
  CHECK(read({"-mr", "3", "t"}) == "module redirects=3 | t | ");
  CHECK(read({"-tr3", "t"}) == "tee=r3 | t | ");
  CHECK(read({"-r 3", "t"}) == "redirects= 3 | t | ");
  CHECK(read({"-mh", "t"}) == "module help | (none) | ");
  CHECK(contains(read({"-mx", "t"}), "-mx: there is no option -x"));
  CHECK(contains(read({"-m=1", "t"}), "--module is a switch"));
}

TEST_CASE("an option that has taken the script's name for its value is named, and not the script's own options") {
  const std::string taken =
      "--nproc-per-node train.py: its value is the script's name, train.py, perhaps because a variable is not set; "
      "write "
      "--nproc-per-node=";
  CHECK(contains(read({"--nproc-per-node", "train.py", "--lr", "1"}), taken));
  CHECK(contains(read({"--rdzv-endpoint", "train.py", "--lr=1"}), "--rdzv-endpoint train.py: its value is"));
  CHECK(normalize_arguments(Words{"--nproc-per-node", "train.py"})->takes_script);
  // Here the script is another one, or it is right that a file is named.
  CHECK(contains(read({"--rdzv-id", "run.sh", "--lr", "train.py"}), "--lr: there is no such option"));
  CHECK(contains(read({"--health-hook", "hook.sh", "--lr", "1"}), "--lr: there is no such option"));
  CHECK(!normalize_arguments(Words{"--nproc-per-node", "2", "train.py"})->takes_script);
  for (const Words& line : {Words{"--nproc-per-node"}, Words{"--nproc-per-node", "-m", "train"}}) {
    CHECK(contains(read(line), "--nproc-per-node: a value is missing"));
    CHECK(contains(read(line), "perhaps because a variable is not set"));
  }
}

TEST_CASE("everything behind the script goes to the script, also what argparse would call ambiguous") {
  CHECK(read({"t.py", "--nnodes", "3", "-x", "--r=16", "--d", "-m"}) == " | t.py | --nnodes 3 -x --r=16 --d -m");
  CHECK(read({"--standalone", "1", "t.py"}) == "standalone | 1 | t.py");
  CHECK(read({"t.py", "--help"}) == " | t.py | --help");
}

TEST_CASE("the first double dash is dropped before the script or directly behind it, others are kept") {
  CHECK(read({"--", "t.py", "--foo"}) == " | t.py | --foo");
  CHECK(read({"--", "--foo", "t.py"}) == " | --foo | t.py");
  CHECK(read({"t.py", "--", "--foo"}) == " | t.py | --foo");
  CHECK(read({"--", "t.py", "--", "--foo"}) == " | t.py | -- --foo");
  CHECK(read({"t.py", "--", "a", "--", "b"}) == " | t.py | a -- b");
  CHECK(read({"t.py", "a", "--", "b"}) == " | t.py | a -- b");
  CHECK(read({"-m", "--", "mod", "--", "u"}) == "module | mod | -- u");
  CHECK(read({"t.py", "--"}) == " | t.py | ");
  CHECK(read({"--"}) == " | (none) | ");
}

TEST_CASE("a negative number is a value, another word with a dash is none") {
  CHECK(read({"--max-restarts", "-1", "t"}) == "max_restarts=-1 | t | ");
  CHECK(read({"--role", "-.5", "t"}) == "role=-.5 | t | ");
  CHECK(read({"--role", "-", "t"}) == "role=- | t | ");
  CHECK(read({"--role", "-a b", "t"}) == "role=-a b | t | ");
  for (const char* word : {"-1e5", "-5.", "-x", "--", "--nnodes", "--d", "-1x"}) {
    CAPTURE(word);
    CHECK(contains(read({"--role", word, "t"}), "--role: a value is missing"));
  }
  CHECK(contains(read({"--role"}), "the command line ends here"));
}

TEST_CASE("a lone dash, the empty word, a number and a word with a blank are scripts") {
  CHECK(read({"-", "t"}) == " | - | t");
  CHECK(read({"", "x"}) == " |  | x");
  CHECK(read({"-1", "x"}) == " | -1 | x");
  CHECK(read({"-a b", "t"}) == " | -a b | t");
  CHECK(read({"--role x", "t"}) == " | --role x | t");
  CHECK(read({"--role=x y", "t"}) == "role=x y | t | ");
}

TEST_CASE("a beginning that fits one option will do") {
  CHECK(read({"--rdzv-i", "x", "t"}) == "rdzv_id=x | t | ");
  CHECK(read({"--te=3", "t"}) == "tee=3 | t | ");
  CHECK(read({"--mod", "t"}) == "module | t | ");
  CHECK(read({"--nproc", "2", "t"}) == "nproc_per_node=2 | t | ");
  CHECK(read({"--nproc_p=2", "t"}) == "nproc_per_node=2 | t | ");
}

TEST_CASE("a beginning is looked up in torchrun's options first, then in dlrover-run's, then in ours") {
  CHECK(read({"--node=1", "t"}) == "node_rank=1 | t | ");    // not --node_unit
  CHECK(read({"--v", "t"}) == "virtual_local_rank | t | ");  // not --version
  CHECK(read({"--acc=ascend-npu", "t"}) == "accelerator=ascend-npu | t | ");
  CHECK(read({"--dry", "t"}) == "dry_run | t | ");
  CHECK(contains(read({"--d", "t"}),
                 "may be --duplicate-stdout-filters, --duplicate-stderr-filters, --drain, --dry-run"));
}

TEST_CASE("an ambiguous beginning is an error that lists what it may be") {
  const std::string error = read({"--rdzv=x", "t"});
  CHECK(contains(error, "--rdzv=x: this may be --rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf"));
  CHECK(contains(read({"--=3", "t"}), "..."));
}

TEST_CASE("an unknown option is an error that names the nearest one and the place of the script's own") {
  CHECK(read({"--nodes=2", "t"}) ==
        "error: --nodes=2: there is no such option; did you mean --nnodes? "
        "(options of the script go after its name)");
  CHECK(contains(read({"--epochs=2", "t"}), "options of the script go after its name"));
  CHECK(!contains(read({"--epochs=2", "t"}), "did you mean"));
  CHECK(contains(read({"-nnodes", "2", "t"}), "did you mean --nnodes?"));
  CHECK(contains(read({"--log_dri=a", "t"}), "did you mean --log-dir?"));
  CHECK(contains(read({"-x", "t"}), "-x: there is no such option"));
  CHECK(contains(read({"--\xff\n=1", "t"}), "--\\xff\\x0a=1: there is no such option"));
}

TEST_CASE("a switch takes no value") {
  CHECK(read({"--standalone=1", "t"}) ==
        "error: --standalone=1: --standalone is a switch and takes no value; write --standalone "
        "alone");
  CHECK(contains(read({"-h1"}), "there is no option -1"));
}

TEST_CASE("the format of the dry run stands behind an equals sign only") {
  CHECK(read({"--dry-run", "json"}) == "dry_run | json | ");
  CHECK(read({"--dry-run=json", "t"}) == "dry_run=json | t | ");
}

TEST_CASE("nothing behind a request for help, version or completion is looked at") {
  CHECK(read({"--help", "--bogus"}) == "help | (none) | ");
  CHECK(read({"--bogus", "-h"}) == "help | (none) | ");
  CHECK(read({"--print-completion", "zsh", "--bogus"}) == "print_completion=zsh | (none) | ");
  CHECK(contains(read({"--d", "--help"}), "this may be"));
}

TEST_CASE("bytes of any kind reach the script and the values unchanged") {
  CHECK(read({"--role=\xff\x01", "\xfe.py", "\xfd\n"}) == "role=\xff\x01 | \xfe.py | \xfd\n");
}

TEST_CASE("a flag is remembered as it was typed, for messages") {
  const auto line = normalize_arguments(Words{"--max-r", "3", "-mr3", "--role=a b", "t"});
  REQUIRE(line.has_value());
  REQUIRE(line->flags.size() == 4);
  CHECK(line->flags[0].typed == "--max-r 3");
  CHECK(line->flags[1].typed == "-mr3");
  CHECK(line->flags[2].typed == "-mr3");
  CHECK(line->flags[3].typed == "'--role=a b'");
}
