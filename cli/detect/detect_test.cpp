#include "cli/detect/detect.h"

#include <doctest/doctest.h>

#include <map>

using namespace elastic;
using namespace elastic::cli;
using namespace elastic::cli::detect;

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

struct Outcome {
  ParsedFlags flags;
  Result<Detected> found;
};

Outcome parse_and_look(Words arguments, const Variables& more = {}) {
  Variables variables = {{"SLURM_JOB_ID", "1234"},      {"SLURM_STEP_ID", "2"},
                         {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NODELIST", "a[1-3]"},
                         {"SLURM_NODEID", "1"},         {"SLURM_LOCALID", "1"},
                         {"SLURM_GPUS_ON_NODE", "8"},   {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}};
  for (const auto& [name, value] : more) variables[name] = value;
  const auto lookup = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  arguments.emplace_back("train.py");
  auto flags = parse_command_line(arguments, lookup);
  REQUIRE(flags);
  Result<Detected> found = detect::detect(*flags, lookup, [](const std::string&) { return std::string(); });
  return {std::move(*flags), std::move(found)};
}

// The flags that were detected, in the order of the table.
std::string taken(const Words& arguments, const Variables& more = {}) {
  const Outcome outcome = parse_and_look(arguments, more);
  if (!outcome.found) return outcome.found.error().text();
  std::string out;
  for (const Flag& flag : flag_table()) {
    if (flag.id == FlagId::kForwardSignals) continue;
    if (outcome.flags.is_detected(flag.id)) out += (out.empty() ? "" : " ") + std::string(flag.name);
  }
  return out;
}

constexpr const char* kAll = "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id node-rank";

}  // namespace

TEST_CASE("what is detected stands between variables and defaults, and --dry-run can say where it is from") {
  const Outcome outcome = parse_and_look({});
  CHECK(taken({}) == kAll);
  CHECK(outcome.flags.text(FlagId::kNnodes) == "3");
  CHECK(outcome.flags.origin_text(FlagId::kNnodes) == "Slurm: SLURM_STEP_NUM_NODES=3");
  CHECK(outcome.flags.input(FlagId::kNnodes) == "--nnodes=3 (Slurm: SLURM_STEP_NUM_NODES=3)");
  CHECK_FALSE(outcome.flags.is_given(FlagId::kNnodes));
  CHECK(outcome.flags.is_known(FlagId::kNnodes));
  CHECK(outcome.found->local_tasks.index == 1);
}

TEST_CASE("a worker of another launcher, which has all that its node knows, is no node of that job") {
  const std::string own = parse_and_look({}).flags.text(FlagId::kRdzvId);
  for (const std::string& id : {own, std::string("none")}) {
    CHECK(taken({}, {{"TORCHELASTIC_RUN_ID", id}}) == "");
    CHECK(parse_and_look({}, {{"TORCHELASTIC_RUN_ID", id}}).found->notes.size() == 1);
  }
  // Submitted by a worker of another step.
  CHECK(taken({}, {{"TORCHELASTIC_RUN_ID", "slurm-1.0"}}) == kAll);
}

TEST_CASE("a flag that is given wins by itself, on the command line and by its variable") {
  CHECK(taken({"--nnodes=2:3"}) == "nproc-per-node rdzv-backend rdzv-endpoint rdzv-id node-rank");
  CHECK(taken({}, {{"PET_NNODES", "2:3"}}) == "nproc-per-node rdzv-backend rdzv-endpoint rdzv-id node-rank");
  CHECK(taken({"--nproc-per-node=2"}) == "nnodes rdzv-backend rdzv-endpoint rdzv-id node-rank");
  CHECK(taken({"--rdzv-id=run7", "--node-rank=2"}) == "nnodes nproc-per-node rdzv-backend rdzv-endpoint");
  CHECK(taken({"--rdzv-backend=c10d"}) == "nnodes nproc-per-node rdzv-endpoint rdzv-id node-rank");
  CHECK(taken({"--rdzv-conf=join_timeout=5"}) == kAll);
  CHECK(taken({"--max-restarts=3"}) == kAll);
}

TEST_CASE("beside a rendezvous of the user's own nothing is taken, and each elastic-run launches") {
  const std::vector<Words> own = {{"--rdzv-endpoint=h:1"},
                                  {"--standalone"},
                                  {"--master-addr=h"},
                                  {"--master-port=1"},
                                  {"--rdzv-backend=static"},
                                  {"--nnodes=1"},
                                  {"--nnodes=1:1"},
                                  {"--nnodes=3", "--node_rank=1", "--rdzv_endpoint=a1:29500", "--rdzv_backend=c10d"},
                                  {"--rdzv-conf=store_type=file", "--nnodes=2"}};
  for (const Words& arguments : own) {
    CAPTURE(arguments.front());
    const Outcome outcome = parse_and_look(arguments);
    REQUIRE(outcome.found);
    CHECK(taken(arguments).empty());
    CHECK(outcome.found->local_tasks.members == 1);
    CHECK(outcome.found->ports.empty());
    CHECK(outcome.found->signals_the_node);
  }
  CHECK(taken({}, {{"PET_RDZV_ENDPOINT", "h:1"}}).empty());
  CHECK(taken({"--standalone"}, {{"SLURM_HET_SIZE", "2"}, {"SLURM_STEP_NODELIST", "a["}}).empty());
}

TEST_CASE("an endpoint that is each node itself is refused on every node of a step but the first") {
  const Words arguments = {"--nnodes=3", "--rdzv-endpoint=localhost:29500"};
  const auto refused = parse_and_look(arguments).found;
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "--rdzv-endpoint=localhost:29500");
  CHECK(refused.error().reason.contains("node 1 of the step's 3"));
  CHECK(refused.error().remedy.contains("a1"));
  CHECK_FALSE(parse_and_look({"--nnodes=1:4", "--rdzv-endpoint=127.0.1.1"}).found);
  CHECK_FALSE(parse_and_look({"--nnodes=3", "--rdzv-backend=static", "--master-addr=[::1]"}).found);
  CHECK(parse_and_look(arguments, {{"SLURM_NODEID", "0"}}).found);                 // the others may be given its name
  CHECK(parse_and_look({"--nnodes=2", "--rdzv-endpoint=localhost:29500"}).found);  // a job of some of the nodes
  CHECK(parse_and_look({"--nnodes=3", "--rdzv-endpoint=localhost:1", "--rdzv-conf=is_host=1"}).found);
  CHECK(parse_and_look({"--nnodes=3", "--rdzv-endpoint=a1:29500"}).found);
  CHECK(parse_and_look({"--nnodes=3", "--rdzv-endpoint=a2:29500"}).found);
  CHECK(parse_and_look(arguments, {{"ELASTIC_RUN_DETECT", "off"}}).found);
}

TEST_CASE("an endpoint that is each pod itself is refused in every pod of an Indexed Job but the first") {
  const auto look_in = [](const std::string& index, const std::string& endpoint) {
    const Variables variables = {{"JOB_COMPLETION_INDEX", index},
                                 {"HOSTNAME", "train-" + index},
                                 {"PET_NNODES", "2"},
                                 {"PET_RDZV_ENDPOINT", endpoint}};
    const auto lookup = [&](const std::string& name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    auto flags = parse_command_line(Words{"train.py"}, lookup);
    REQUIRE(flags);
    const std::string name = "train-" + index;
    return detect::detect(*flags, lookup,
                          [&](const std::string&) { return "10.1.2.3 " + name + ".train.svc " + name + "\n"; });
  };
  const auto refused = look_in("1", "localhost:29400");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "PET_RDZV_ENDPOINT=localhost:29400");
  CHECK(refused.error().remedy.starts_with("leave the endpoint out"));
  CHECK(look_in("0", "localhost:29400"));
  CHECK(look_in("1", "train-0.train.svc:29400"));
}

TEST_CASE("one node alone needs no endpoint, but has the step's name") {
  CHECK(taken({}, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "a1"}, {"SLURM_NODEID", "0"}}) ==
        "nnodes nproc-per-node rdzv-id");
}

TEST_CASE("ELASTIC_RUN_DETECT=off looks for nothing") {
  CHECK(taken({}, {{"ELASTIC_RUN_DETECT", "off"}}).empty());
  CHECK(parse_and_look({}, {{"ELASTIC_RUN_DETECT", "off"}, {"SLURM_STEP_ID", ""}}).found->notes.empty());
}

TEST_CASE("in a step USR1 and USR2 are the workers', whoever makes them meet, unless the user has said what they are") {
  const auto forwarded = [](const Words& arguments) {
    const Outcome outcome = parse_and_look(arguments);
    return outcome.flags.text(FlagId::kForwardSignals);
  };
  CHECK(forwarded({}) == "SIGUSR1,SIGUSR2");
  CHECK(forwarded({"--standalone"}) == "SIGUSR1,SIGUSR2");
  CHECK(forwarded({"--forward-signals=HUP", "--signals-to-handle=TERM"}) == "HUP");
  CHECK(forwarded({"--signals-to-handle=SIGTERM,SIGUSR1"}) == "SIGUSR2");
  CHECK(forwarded({"--signals-to-handle=SIGNOPE,USR1"}) == "SIGUSR2");
  CHECK(forwarded({"--signals-to-handle=USR2,USR1"}).empty());
  CHECK(parse_and_look({}, {{"SLURM_STEP_ID", ""}}).flags.text(FlagId::kForwardSignals).empty());
}
