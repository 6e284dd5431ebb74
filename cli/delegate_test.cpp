#include "cli/delegate.h"

#include <doctest/doctest.h>

#include "cli/host_test_support.h"

using namespace elastic;
using namespace elastic::cli;
using Words = std::vector<std::string>;

namespace {

struct Trial {
  Trial() { host.program("/usr/bin/python3"); }

  std::optional<Delegation> of(const Words& arguments) const {
    auto made = delegate(arguments, environment, host);
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().text()));
    return *made;
  }
  // What torchrun gets.
  Words kept(const Words& arguments) const {
    const Words command = of(arguments).value().command;
    CHECK(Words(command.begin(), command.begin() + 3) == Words{"/usr/bin/python3", "-m", "torch.distributed.run"});
    return {command.begin() + 3, command.end()};
  }

  FakeHost host;
  Environment environment{"PATH=/usr/bin", "ELASTIC_RUN_DELEGATE=torchrun"};
};

}  // namespace

TEST_CASE("what is torchrun's goes on to torchrun as it was typed, and so does all from the script on") {
  Trial trial;
  const Words line{"--nnodes=2", "--nproc_per", "4", "-mr3", "--", "train", "--events=x", "-t"};
  CHECK(trial.kept(line) == line);
  CHECK(trial.of(line)->warnings.empty());
}

TEST_CASE("options and variables that torchrun does not have are left out, each with a warning that names it") {
  Trial trial;
  trial.environment.emplace_back("PET_EVENTS=f");
  const Words line{"--events", "a b", "--network_check", "--log-form=json", "--nnodes", "2", "a.py", "--events", "c"};
  CHECK(trial.kept(line) == Words{"--nnodes", "2", "a.py", "--events", "c"});
  CHECK(trial.of(line)->warnings == Words{"--events 'a b': torchrun has no such option; it is left out",
                                          "--network_check: torchrun has no such option; it is left out",
                                          "--log-form=json: torchrun has no such option; it is left out",
                                          "PET_EVENTS=f: torchrun does not read it"});
}

TEST_CASE("a command line that cannot be read here is torchrun's to judge") {
  const Words line{"--of-tomorrow", "--events=f", "a.py"};
  CHECK(Trial().kept(line) == line);
}

TEST_CASE("what starts no job is not delegated, and a dry run only says what would be executed") {
  Trial trial;
  for (const char* option : {"--version", "--status=h", "--status-key", "--report=d", "--replay=f", "--store-only",
                             "--coordinator-only", "--check-only", "--print-completion=bash"}) {
    CAPTURE(option);
    CHECK_FALSE(trial.of({option}).has_value());
  }
  Trial by_variable;
  by_variable.environment.emplace_back("PET_CHECK_ONLY=1");
  CHECK_FALSE(by_variable.of({"a.py"}).has_value());
  by_variable.environment.back() = "PET_CHECK_ONLY=0";
  CHECK(by_variable.of({"a.py"}).has_value());
  const auto dry = trial.of({"--dry-run=json", "a b.py"});
  CHECK(dry->only_told);
  CHECK(command_text(dry->command) == "/usr/bin/python3 -m torch.distributed.run 'a b.py'");
  CHECK_FALSE(trial.of({"a.py", "--dry-run"})->only_told);
}

TEST_CASE("a wrapper in PYTHON_EXEC runs torchrun, too, which does not get the job's secret") {
  Trial trial;
  trial.host.program("/usr/bin/apptainer");
  trial.environment.emplace_back("PYTHON_EXEC=apptainer exec image python");
  trial.environment.emplace_back("ELASTIC_RUN_TOKEN=secret");
  const auto made = trial.of({"a.py"});
  CHECK(made->command == Words{"/usr/bin/apptainer", "exec", "image", "python", "-m", "torch.distributed.run", "a.py"});
  CHECK_FALSE(elastic::lookup(made->environment, "ELASTIC_RUN_TOKEN").has_value());
  CHECK(elastic::lookup(made->environment, "ELASTIC_RUN_DELEGATE") == "torchrun");
}

TEST_CASE("ELASTIC_RUN_DELEGATE knows torchrun; empty is not set, and anything else is refused") {
  Trial trial;
  trial.environment.back() = "ELASTIC_RUN_DELEGATE=";
  CHECK_FALSE(trial.of({"a.py"}).has_value());
  trial.environment.back() = "ELASTIC_RUN_DELEGATE=Torchrun";
  const auto refused = delegate(Words{"a.py"}, trial.environment, trial.host);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text() ==
        "ELASTIC_RUN_DELEGATE=Torchrun: not a launcher to delegate to; set it to torchrun, or unset it");
}
