#include "cli/detect/systems.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "cli/limits.h"
#include "src/base/limits.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli::detect {
namespace {

constexpr const char* kSlurm = "Slurm";
constexpr const char* kByHand = "give options instead (--nnodes, --rdzv-endpoint, ...), or set ELASTIC_RUN_DETECT=off";
// Slurm uses step numbers from here on for a batch script, an interactive shell and a step that is yet to come.
constexpr std::int64_t kFirstSpecialStep = 0xFFFFFFF0;

// A step, as the environment of one of its tasks describes it.
struct Step {
  std::int64_t job = 0;
  std::int64_t step = 0;
  std::int64_t nodes = 1;
  std::int64_t node = 0;         // of this task, from 0 on
  std::int64_t local_task = 0;   // the same among the tasks of the node
  std::int64_t local_tasks = 1;  // on this node
};

class SlurmReader {
 public:
  explicit SlurmReader(const EnvironmentLookup& environment) : environment_(environment) {}

  Result<Detected> read();

 private:
  Result<Step> read_step() const;
  Result<std::int64_t> read_local_tasks(const Step& step) const;
  Status take_nodes(const Step& step);
  Status take_workers(const Step& step);
  void take_name(const Step& step);
  std::string name_of(const Step& step) const;

  // An empty variable counts as unset.
  std::optional<std::string> variable(const char* name) const {
    auto value = environment_(name);
    if (value && value->empty()) value.reset();
    return value;
  }
  Result<std::int64_t> number(const char* name, std::int64_t least, std::int64_t most) const;
  void take(FlagId flag, std::string value, std::string source) {
    found_.defaults.push_back({flag, std::move(value), format("{}: {}", kSlurm, source)});
  }
  static std::string told(const char* name, const std::string& value) {
    return format("{}={}", name, printable(value));
  }

  const EnvironmentLookup& environment_;
  Detected found_{.system = kSlurm};
};

Result<std::int64_t> SlurmReader::number(const char* name, std::int64_t least, std::int64_t most) const {
  const auto text = variable(name);
  if (!text) return fail(name, "it is not set, though this is a step of Slurm", kByHand);
  const auto value = parse_int(*text);
  if (value && *value >= least && *value <= most) return *value;
  return fail(told(name, *text), format("this is not a number from {} to {}", least, most), kByHand);
}

// Reads how many tasks each node has, node by node: "2(x3),1".
Result<std::int64_t> SlurmReader::read_local_tasks(const Step& step) const {
  constexpr const char* kName = "SLURM_STEP_TASKS_PER_NODE";
  const auto text = variable(kName);
  if (!text) return 1;
  std::int64_t node = 0;
  for (const std::string& part : split(*text, ',')) {
    const std::size_t open = part.find("(x");
    const bool repeats = open != std::string::npos && part.ends_with(')');
    const auto tasks = parse_int(part.substr(0, open));
    const auto times = repeats ? parse_int(part.substr(open + 2, part.size() - open - 3)) : 1;
    const bool is_bad = (open != std::string::npos) != repeats;
    if (is_bad || !tasks || !times || *tasks < 0 || *tasks > limits::kMaxWorkersPerNode || *times < 1 ||
        *times > static_cast<std::int64_t>(limits::kHostListHosts)) {
      return fail(told(kName, *text), "this does not say how many tasks the nodes have", kByHand);
    }
    node += *times;
    if (step.node < node) return std::max<std::int64_t>(*tasks, 1);
  }
  return fail(told(kName, *text), format("it describes {} nodes, but this is node {}", node, step.node), kByHand);
}

Result<Step> SlurmReader::read_step() const {
  constexpr auto kMost = static_cast<std::int64_t>(limits::kHostListHosts);
  Step step;
  struct Field {
    const char* name;
    std::int64_t Step::*field;
    std::int64_t least;
    std::int64_t most;
  };
  for (const Field& field :
       {Field{"SLURM_JOB_ID", &Step::job, 1, kFirstSpecialStep - 1},
        Field{"SLURM_STEP_ID", &Step::step, 0, kFirstSpecialStep - 1},
        Field{"SLURM_STEP_NUM_NODES", &Step::nodes, 1, kMost}, Field{"SLURM_NODEID", &Step::node, 0, kMost - 1},
        Field{"SLURM_LOCALID", &Step::local_task, 0, limits::kMaxWorkersPerNode - 1}}) {
    const auto value = number(field.name, field.least, field.most);
    if (!value) return std::unexpected(value.error());
    step.*field.field = *value;
  }
  if (step.node >= step.nodes) {
    return fail(format("SLURM_NODEID={}", step.node),
                format("the last node of a step of {} is number {}", step.nodes, step.nodes - 1), kByHand);
  }
  const auto tasks = read_local_tasks(step);
  if (!tasks) return std::unexpected(tasks.error());
  step.local_tasks = std::max(*tasks, step.local_task + 1);
  return step;
}

// "slurm-1234.0", "slurm-1234.0-1230_4" in an array, "slurm-1234.0-restart2" after two requeues: what is left of the
// job from before the requeue has another id.
std::string SlurmReader::name_of(const Step& step) const {
  std::string name = format("{}{}.{}", kSlurmRunId, step.job, step.step);
  const auto array = variable("SLURM_ARRAY_JOB_ID");
  const auto task = variable("SLURM_ARRAY_TASK_ID");
  if (array && task) name += format("-{}_{}", printable(*array, 20), printable(*task, 20));
  if (const auto restarts = variable("SLURM_RESTART_COUNT"); restarts && parse_int(*restarts).value_or(0) > 0) {
    name += format("-restart{}", *parse_int(*restarts));
  }
  return name;
}

void SlurmReader::take_name(const Step& step) {
  std::string source = format("SLURM_JOB_ID={} SLURM_STEP_ID={}", step.job, step.step);
  for (const char* more : {"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"}) {
    if (const auto value = variable(more)) source += format(" {}", told(more, *value));
  }
  take(FlagId::kRdzvId, name_of(step), source);
}

Status SlurmReader::take_nodes(const Step& step) {
  constexpr const char* kList = "SLURM_STEP_NODELIST";
  take(FlagId::kNnodes, format("{}", step.nodes), format("SLURM_STEP_NUM_NODES={}", step.nodes));
  take(FlagId::kNodeRank, format("{}", step.node), format("SLURM_NODEID={}", step.node));
  const auto list = variable(kList);
  if (!list) return fail(kList, "it is not set, though this is a step of Slurm", kByHand);
  const auto hosts = expand_host_list(*list, kList);
  if (!hosts) return std::unexpected(hosts.error());
  if (hosts->size() != static_cast<std::size_t>(step.nodes)) {
    return fail(told(kList, *list), format("it names {} hosts, and SLURM_STEP_NUM_NODES={}", hosts->size(), step.nodes),
                kByHand);
  }
  const auto ports = ports_of_step(static_cast<std::uint64_t>(step.job), static_cast<std::uint64_t>(step.step));
  found_.ports.assign(ports.begin(), ports.end());
  found_.is_host = step.node == 0;
  found_.is_host_source = format("this is node {} of the step (SLURM_NODEID)", step.node);
  take(FlagId::kRdzvBackend, "c10d", "of a step of many nodes");
  found_.has_all_nodes = true;
  found_.hosts = *hosts;
  found_.node = step.node;
  found_.more_hosts.assign(hosts->begin() + 1, hosts->end());
  take(FlagId::kRdzvEndpoint, format("{}:{}", hosts->front(), ports.front()),
       format("first host of {}; port of step {}.{}", told(kList, *list), step.job, step.step));
  return {};
}

// Counts the devices in a list like CUDA_VISIBLE_DEVICES.
std::int64_t count_of(const std::string& devices) { return static_cast<std::int64_t>(split(devices, ',').size()); }

Status SlurmReader::take_workers(const Step& step) {
  constexpr auto kMost = limits::kMaxWorkersPerNode;
  std::int64_t gpus = 0;
  std::string source;
  if (variable("SLURM_GPUS_ON_NODE")) {
    const auto value = number("SLURM_GPUS_ON_NODE", 0, kMost);
    if (!value) return std::unexpected(value.error());
    gpus = *value;
    source = format("SLURM_GPUS_ON_NODE={}", gpus);
  } else if (const auto list = variable("SLURM_STEP_GPUS")) {
    gpus = count_of(*list);
    source = told("SLURM_STEP_GPUS", *list);
  }
  if (gpus == 0) return {};
  // If Slurm has bound each task to a GPU of its own, the task that launches sees only its own.
  const auto visible = variable("CUDA_VISIBLE_DEVICES");
  if (visible && step.local_tasks > 1 && count_of(*visible) < gpus) {
    found_.warnings.push_back(
        format("Slurm gives each task of this node only some of its {} GPUs: this task sees CUDA_VISIBLE_DEVICES={}, "
               "and so do its workers; "
               "for all of them, start one task on each node: srun --ntasks-per-node=1 --gpus-per-node={}",
               gpus, printable(*visible), gpus));
    gpus = count_of(*visible);
    source = told("CUDA_VISIBLE_DEVICES", *visible);
  }
  take(FlagId::kNprocPerNode, format("{}", gpus), source);
  return {};
}

Result<Detected> SlurmReader::read() {
  const auto job = variable("SLURM_JOB_ID");
  if (!job) return Detected{};
  const auto step_text = variable("SLURM_STEP_ID");
  const auto step_number = step_text ? parse_int(*step_text) : std::nullopt;
  if (!step_text || (step_number && *step_number >= kFirstSpecialStep)) {
    found_.notes.push_back(
        format("Slurm job {}: this is its batch script or a shell of salloc, not a step, so nothing is taken "
               "from SLURM_*; `srun {} ...` launches on all of its nodes",
               printable(*job), program_name()));
    return std::move(found_);
  }
  found_.signals_the_node = true;
  if (const auto size = variable("SLURM_HET_SIZE")) {
    return fail(format("Slurm job {}, SLURM_HET_SIZE={}", printable(*job), printable(*size)),
                "it is a heterogeneous job, whose components do not list each other's nodes",
                "submit a job that is not heterogeneous, or give --nnodes and --rdzv-endpoint=HOST:PORT");
  }
  const auto step = read_step();
  if (!step) return std::unexpected(step.error());
  if (const Status nodes = take_nodes(*step); !nodes) return std::unexpected(nodes.error());
  if (const Status workers = take_workers(*step); !workers) return std::unexpected(workers.error());
  take_name(*step);
  found_.step = name_of(*step);
  found_.local_tasks = {.name = format("{}-node{}", name_of(*step), step->node),
                        .index = static_cast<int>(step->local_task),
                        .members = static_cast<int>(step->local_tasks),
                        .source = format("{}: SLURM_LOCALID={}, SLURM_STEP_TASKS_PER_NODE={}", kSlurm, step->local_task,
                                         printable(variable("SLURM_STEP_TASKS_PER_NODE").value_or("")))};
  return std::move(found_);
}

constexpr std::size_t kMostDigits = 18;
// The longest name of a host.
constexpr std::size_t kMostBytes = 255;

// "007-012" as its first and last number and the digits of the first.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t digits = 1;
};

// What is wrong with the list, as a clause.
struct Problem {
  std::string reason;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > kMostDigits) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::expected<Range, Problem> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  const auto from = number_of(first);
  const auto to = number_of(last);
  if (!from || !to)
    return std::unexpected(Problem{format("\"{}\" is neither a number nor a range of numbers", printable(text))});
  if (*to < *from) return std::unexpected(Problem{format("the range \"{}\" runs backwards", printable(text))});
  return Range{*from, *to, first.size()};
}

std::string padded(std::uint64_t number, std::size_t digits) { return format("{:0{}}", number, digits); }

// Appends each number in the brackets to each name so far.
std::expected<std::vector<std::string>, Problem> continued(const std::vector<std::string>& names,
                                                           std::string_view inside) {
  std::vector<std::string> out;
  std::vector<Range> ranges;
  for (const std::string& part : split(inside, ',')) {
    auto range = range_of(part);
    if (!range) return std::unexpected(std::move(range.error()));
    ranges.push_back(*range);
  }
  const Problem too_many{format("it stands for more than {} hosts", limits::kHostListHosts)};
  for (const std::string& name : names) {
    for (const Range& range : ranges) {
      if (range.last - range.first >= limits::kHostListHosts - out.size()) return std::unexpected(too_many);
      for (std::uint64_t number = range.first; number <= range.last; ++number) {
        out.push_back(name + padded(number, range.digits));
      }
    }
  }
  return out;
}

// Reads one name of the list, with its brackets.
std::expected<std::vector<std::string>, Problem> names_of(std::string_view text) {
  std::vector<std::string> names{""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    if (names.front().size() + text.substr(0, open).size() > kMostBytes) {
      return std::unexpected(Problem{format("a host's name has more than {} bytes", kMostBytes)});
    }
    for (std::string& name : names) name += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    auto more = continued(names, text.substr(open + 1, close - open - 1));
    if (!more) return std::unexpected(std::move(more.error()));
    names = std::move(*more);
    text.remove_prefix(close + 1);
  }
  return names;
}

// Splits the list at the commas outside brackets.
std::expected<std::vector<std::string_view>, Problem> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' && std::exchange(inside, true)) return std::unexpected(Problem{"brackets stand in brackets"});
    if (c == ']' && !std::exchange(inside, false)) return std::unexpected(Problem{"a \"]\" has no \"[\""});
    if (i == text.size() && inside) return std::unexpected(Problem{"a \"[\" has no \"]\""});
    if (c <= ' ' || c == 0x7F) return std::unexpected(Problem{"it has blanks or control characters"});
    if (c != ',' || inside) continue;
    if (i == begin) return std::unexpected(Problem{text.empty() ? "it is empty" : "a name between commas is empty"});
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::expected<std::vector<std::string>, Problem> expand(std::string_view text) {
  if (text.size() > limits::kHostListBytes) {
    return std::unexpected(Problem{format("it has more than {} bytes", limits::kHostListBytes)});
  }
  const auto parts = parts_of(text);
  if (!parts) return std::unexpected(parts.error());
  std::vector<std::string> hosts;
  for (const std::string_view part : *parts) {
    auto names = names_of(part);
    if (!names) return std::unexpected(std::move(names.error()));
    if (names->size() > limits::kHostListHosts - hosts.size()) {
      return std::unexpected(Problem{format("it stands for more than {} hosts", limits::kHostListHosts)});
    }
    hosts.insert(hosts.end(), std::make_move_iterator(names->begin()), std::make_move_iterator(names->end()));
  }
  return hosts;
}

}  // namespace

// 37 lies between two jobs, so that the steps of one seldom meet those of the next; the ports of one step lie far from
// each other.
std::array<std::uint16_t, kPortsPerStep> ports_of_step(std::uint64_t job, std::uint64_t step) {
  std::array<std::uint16_t, kPortsPerStep> ports{};
  for (std::size_t i = 0; i < ports.size(); ++i) {
    ports.at(i) = static_cast<std::uint16_t>(kFirstSlurmPort +
                                             (job * 37 + step + i * (kSlurmPorts / kPortsPerStep)) % kSlurmPorts);
  }
  return ports;
}

Result<Detected> detect_slurm(const EnvironmentLookup& environment) { return SlurmReader(environment).read(); }

Result<std::vector<std::string>> expand_host_list(std::string_view text, std::string_view input) {
  auto hosts = expand(text);
  if (hosts) return std::move(*hosts);
  return fail(format("{}={}", input, printable(text)), format("this is not a list of hosts: {}", hosts.error().reason),
              "`scontrol show hostnames` shows how Slurm reads it; or name host and port with --rdzv-endpoint");
}

}  // namespace elastic::cli::detect
