#include "src/status/metrics.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::status {
namespace {

struct Label {
  std::string_view name;
  std::string_view value;
};

// A label's value in this format: any UTF-8, with three characters escaped. Invalid bytes are written as text, so that
// two different values stay different.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : to_utf8(value) == value ? std::string(value) : printable(value, value.size() * 4)) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '"': out += "\\\""; break;
      case '\n': out += "\\n"; break;
      default: out += c;
    }
  }
  return out;
}

class Samples {
 public:
  Samples(std::string& out, std::string_view name) : out_(out), name_(name) {}

  void add(std::initializer_list<Label> labels, std::int64_t value) { put(labels, format("{}", value)); }
  void add(std::initializer_list<Label> labels, double value) { put(labels, format("{:g}", value)); }
  // Adds a sample in seconds, to the millisecond, however large it is.
  void add_seconds(std::initializer_list<Label> labels, std::int64_t ms) {
    put(labels, format("{}.{:03}", ms / 1000, ms % 1000));
  }
  // Adds one sample for each value, labelled by the names of an enumeration.
  template <class Name, class Array>
  void each(std::string_view run_id, std::string_view label, const Array& values, bool is_seconds = false) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view name = name_of(static_cast<Name>(i));
      if (is_seconds) {
        add_seconds({{"run_id", run_id}, {label, name}}, values[i]);
      } else {
        add({{"run_id", run_id}, {label, name}}, values[i]);
      }
    }
  }

 private:
  void put(std::initializer_list<Label> labels, const std::string& value) {
    out_ += name_;
    char before = '{';
    for (const Label& label : labels) {
      out_ += format("{}{}=\"{}\"", std::exchange(before, ','), label.name, escaped(label.value));
    }
    out_ += format("{}{}\n", labels.size() == 0 ? " " : "} ", value);
  }

  std::string& out_;
  std::string_view name_;
};

using Write = void (*)(const Snapshot&, Samples&);

struct Metric {
  MetricFamily family;
  Write write;
};

template <class Each>
void for_jobs(const Snapshot& snapshot, const Each& each) {
  if (!snapshot.coordinator) return;
  for (const Job& job : snapshot.coordinator->jobs) each(job);
}

template <auto Member>
void job_number(const Snapshot& snapshot, Samples& out) {
  for_jobs(snapshot, [&](const Job& job) { out.add({{"run_id", job.id}}, std::int64_t{job.*Member}); });
}

template <auto Member>
void job_hangs(const Snapshot& snapshot, Samples& out) {
  for_jobs(snapshot, [&](const Job& job) { out.add({{"run_id", job.id}}, job.hang.*Member); });
}

template <class Each>
void for_checks(const Snapshot& snapshot, const Each& each) {
  for_jobs(snapshot, [&](const Job& job) {
    if (job.check) each(job, *job.check);
  });
}

template <class Each>
void for_node(const Snapshot& snapshot, const Each& each) {
  if (snapshot.node) each(*snapshot.node);
}

// Calls each(job, rank, progress) for each worker of this node that has shown progress.
template <class Each>
void for_progress(const Snapshot& snapshot, const Each& each) {
  for_node(snapshot, [&](const Node& node) {
    for (const Worker& worker : node.workers) {
      if (worker.progress) each(node.job, format("{}", worker.rank), *worker.progress);
    }
  });
}

double per_second(std::int64_t thousandths) { return static_cast<double>(thousandths) / 1000; }

const std::vector<Metric>& table() {
  static const std::vector<Metric> kTable = {
      {{"elastic_run_build_info", "gauge", "version", "Always 1; which elastic-run this is."},
       [](const Snapshot& s, Samples& out) {
         out.add({{"version", s.version}}, std::int64_t{1});
       }},
      {{"elastic_run_uptime_seconds", "gauge", "", "Time since this process began to serve."},
       [](const Snapshot& s, Samples& out) { out.add_seconds({}, s.uptime_ms); }},
      {{"elastic_run_http_responses_total", "counter", "code",
        "HTTP requests that were answered, by the answer's status."},
       [](const Snapshot& s, Samples& out) {
         for (const auto& [code, count] : s.http_answers) out.add({{"code", format("{}", code)}}, count);
       }},

      // --- The coordinator and its jobs; only where the coordinator is in this process.
      {{"elastic_run_agent_connections", "gauge", "", "Connections of agents to this coordinator."},
       [](const Snapshot& s, Samples& out) {
         if (s.coordinator) out.add({}, s.coordinator->connections);
       }},
      {{"elastic_run_jobs", "gauge", "", "Jobs that this coordinator serves now."},
       [](const Snapshot& s, Samples& out) {
         if (s.coordinator) out.add({}, static_cast<std::int64_t>(s.coordinator->jobs.size()));
       }},
      {{"elastic_run_jobs_ended_total", "counter", "outcome", "Jobs of this coordinator that are over."},
       [](const Snapshot& s, Samples& out) {
         if (!s.coordinator) return;
         for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
           out.add({{"outcome", name_of(static_cast<Outcome>(i))}}, s.coordinator->ended[i]);
         }
       }},
      {{"elastic_run_job_nodes", "gauge", "run_id, state", "Nodes of the job, by state; kept_out and unfit are hosts."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) { out.each<MemberPlace>(job.id, "state", job.nodes); });
       }},
      {{"elastic_run_job_min_nodes", "gauge", "run_id", "The least nodes that a round needs (--nnodes)."},
       job_number<&Job::min_nodes>},
      {{"elastic_run_job_max_nodes", "gauge", "run_id", "The most nodes that a round takes (--nnodes)."},
       job_number<&Job::max_nodes>},
      {{"elastic_run_job_world_size", "gauge", "run_id", "Workers of the last round."}, job_number<&Job::world_size>},
      {{"elastic_run_job_round", "gauge", "run_id", "Number of the last round, counted from 0."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           if (job.round) out.add({{"run_id", job.id}}, *job.round);
         });
       }},
      {{"elastic_run_job_phase", "gauge", "run_id, phase", "1 for the phase that the job is in, 0 for the others."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           std::array<std::int64_t, kJobPhases> is_in{};
           is_in[static_cast<std::size_t>(job.phase)] = 1;
           out.each<JobPhase>(job.id, "phase", is_in);
         });
       }},
      {{"elastic_run_job_phase_seconds_total", "counter", "run_id, phase",
        "Time that the job has spent in each phase; the share of running is the time in a round, with imports and "
        "hangs."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) { out.each<JobPhase>(job.id, "phase", job.phase_ms, true); });
       }},
      {{"elastic_run_job_rounds_total", "counter", "run_id, cause", "Rounds begun, by cause."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) { out.each<RoundCause>(job.id, "cause", job.rounds); });
       }},
      {{"elastic_run_job_restarts_total", "counter", "run_id, cause",
        "Rounds begun after one whose workers had run, by cause."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) { out.each<RoundCause>(job.id, "cause", job.restarts); });
       }},
      {{"elastic_run_job_restarts_charged", "gauge", "run_id", "Restarts that were charged to --max-restarts."},
       job_number<&Job::restarts_charged>},
      {{"elastic_run_job_max_restarts", "gauge", "run_id",
        "Restarts that may be charged before the job fails (--max-restarts)."},
       job_number<&Job::max_restarts>},
      {{"elastic_run_job_node_losses_total", "counter", "run_id", "Nodes that were lost."},
       job_number<&Job::node_losses>},
      {{"elastic_run_job_lost_work_seconds_total", "counter", "run_id, cause",
        "Time that the workers of rounds had run when these were stopped or failed; an upper bound of the work lost."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) { out.each<RoundCause>(job.id, "cause", job.lost_work_ms, true); });
       }},
      {{"elastic_run_job_checks_total", "counter", "run_id", "Checks before training that are over."},
       job_number<&Job::checks>},
      {{"elastic_run_job_check_nodes", "gauge", "run_id, verdict", "Nodes of the last check, by its verdict."},
       [](const Snapshot& s, Samples& out) {
         for_checks(s, [&](const Job& job, const Check& check) {
           for (const auto& [verdict, count] : {std::pair{"fit", check.fit},
                                                {"slow", check.slow},
                                                {"faulty", check.faulty},
                                                {"undetermined", check.undetermined}}) {
             out.add({{"run_id", job.id}, {"verdict", verdict}}, count);
           }
         });
       }},
      {{"elastic_run_job_check_bad_links", "gauge", "run_id",
        "Links between two good nodes that the last check found bad."},
       [](const Snapshot& s, Samples& out) {
         for_checks(s, [&](const Job& job, const Check& check) { out.add({{"run_id", job.id}}, check.bad_links); });
       }},
      {{"elastic_run_job_check_duration_seconds", "gauge", "run_id", "Time that the last check took."},
       [](const Snapshot& s, Samples& out) {
         for_checks(s, [&](const Job& job, const Check& check) { out.add({{"run_id", job.id}}, check.seconds); });
       }},
      {{"elastic_run_job_check_slowest_busbw_bytes_per_second", "gauge", "run_id",
        "Bus bandwidth of the slowest pair of nodes that passed the last check."},
       [](const Snapshot& s, Samples& out) {
         for_checks(s, [&](const Job& job, const Check& check) {
           if (check.slowest_busbw_bytes) out.add({{"run_id", job.id}}, *check.slowest_busbw_bytes);
         });
       }},
      {{"elastic_run_job_step", "gauge", "run_id", "The last training step that was seen of the job's ranks."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           if (job.newest && job.newest->step) out.add({{"run_id", job.id}}, *job.newest->step);
         });
       }},
      {{"elastic_run_job_steps_per_second", "gauge", "run_id",
        "Training steps a second, over the last ones; falls while none comes."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           const bool is_known = job.newest && job.newest->millisteps_per_second;
           if (is_known) out.add({{"run_id", job.id}}, per_second(*job.newest->millisteps_per_second));
         });
       }},
      {{"elastic_run_job_progress_age_seconds", "gauge", "run_id",
        "Time since the last sign of progress of any rank of the job."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           if (job.newest) out.add_seconds({{"run_id", job.id}}, job.newest->age_ms);
         });
       }},
      {{"elastic_run_job_progress_ranks", "gauge", "run_id",
        "Ranks of the job in whose output, or by whose word, progress was seen in this round."},
       job_number<&Job::speakers>},
      {{"elastic_run_job_hang_state", "gauge", "run_id, state",
        "1 for where the watch for hangs stands, 0 for the others; judged: the job hangs."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           std::array<std::int64_t, kHangStates> is_in{};
           is_in[static_cast<std::size_t>(job.hang.state)] = 1;
           out.each<HangState>(job.id, "state", is_in);
         });
       }},
      {{"elastic_run_job_hang_silent_seconds", "gauge", "run_id",
        "Time since the last sign of progress, or since the round began, while hangs are watched for."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           const bool is_watched = job.hang.state != HangState::kOff && job.hang.state != HangState::kIdle;
           if (is_watched) out.add_seconds({{"run_id", job.id}}, job.hang.silent_ms);
         });
       }},
      {{"elastic_run_job_hang_limit_seconds", "gauge", "run_id",
        "Time without progress that is no hang; missing while there is no limit."},
       [](const Snapshot& s, Samples& out) {
         for_jobs(s, [&](const Job& job) {
           if (job.hang.limit_ms) out.add_seconds({{"run_id", job.id}}, *job.hang.limit_ms);
         });
       }},
      {{"elastic_run_job_hangs_total", "counter", "run_id", "Hangs that were told, with a verdict."},
       job_hangs<&HangLine::told>},
      {{"elastic_run_job_hangs_recovered_total", "counter", "run_id",
        "Hangs that were told and after which progress came by itself."},
       job_hangs<&HangLine::recovered>},
      {{"elastic_run_job_hang_alarms_withdrawn_total", "counter", "run_id",
        "Alarms without a verdict, since progress came while evidence was collected."},
       job_hangs<&HangLine::withdrawn>},

      // --- This node; not of --coordinator-only.
      {{"elastic_run_node_ready", "gauge", "run_id", "1 while this node's workers run in a round."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, std::int64_t{node.ready() ? 1 : 0}); });
       }},
      {{"elastic_run_node_state", "gauge", "run_id, state", "1 for what this node does, 0 for the others."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) {
           std::array<std::int64_t, kNodeActivities> does{};
           does[static_cast<std::size_t>(node.activity)] = 1;
           out.each<NodeActivity>(node.job, "state", does);
         });
       }},
      {{"elastic_run_node_workers", "gauge", "run_id", "Workers that run on this node."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) {
           std::int64_t running = 0;
           for (const Worker& worker : node.workers) running += worker.running ? 1 : 0;
           out.add({{"run_id", node.job}}, running);
         });
       }},
      {{"elastic_run_node_workers_started_total", "counter", "run_id",
        "Workers that this node has started, of all rounds."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.workers_started); });
       }},
      {{"elastic_run_node_workers_failed_total", "counter", "run_id",
        "Workers of this node that failed by themselves."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.workers_failed); });
       }},
      {{"elastic_run_node_workers_started_warm_total", "counter", "run_id",
        "Workers that this node has started warm (--warm-workers), of all rounds."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.warm_started); });
       }},
      {{"elastic_run_node_spared_cpu_seconds_total", "counter", "run_id",
        "Processor time of imports that warm workers did not need, of all rounds."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add_seconds({{"run_id", node.job}}, node.spared_cpu_ms); });
       }},
      {{"elastic_run_node_warm_workers", "gauge", "run_id", "Warm workers that wait for the next round."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, std::int64_t{node.warm.waiting}); });
       }},
      {{"elastic_run_node_warm_state", "gauge", "run_id, state",
        "1 for the state of this node's warm workers, 0 for the others."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) {
           std::array<std::int64_t, kWarmths> is_in{};
           is_in[static_cast<std::size_t>(node.warm.state)] = 1;
           out.each<Warmth>(node.job, "state", is_in);
         });
       }},
      {{"elastic_run_node_coordinator_connected", "gauge", "run_id",
        "1 while this node is connected to its coordinator."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, std::int64_t{node.connected ? 1 : 0}); });
       }},
      {{"elastic_run_worker_step", "gauge", "run_id, rank", "The last training step that was seen of this rank."},
       [](const Snapshot& s, Samples& out) {
         for_progress(s, [&](std::string_view job, std::string_view rank, const Progress& progress) {
           if (progress.step) out.add({{"run_id", job}, {"rank", rank}}, *progress.step);
         });
       }},
      {{"elastic_run_worker_steps_per_second", "gauge", "run_id, rank",
        "Training steps a second of this rank, over the last ones; falls while none comes."},
       [](const Snapshot& s, Samples& out) {
         for_progress(s, [&](std::string_view job, std::string_view rank, const Progress& progress) {
           if (!progress.millisteps_per_second) return;
           out.add({{"run_id", job}, {"rank", rank}}, per_second(*progress.millisteps_per_second));
         });
       }},
      {{"elastic_run_worker_progress_age_seconds", "gauge", "run_id, rank",
        "Time since the last sign of progress of this rank."},
       [](const Snapshot& s, Samples& out) {
         for_progress(s, [&](std::string_view job, std::string_view rank, const Progress& progress) {
           out.add_seconds({{"run_id", job}, {"rank", rank}}, progress.age_ms);
         });
       }},
      {{"elastic_run_store_operations_total", "counter", "run_id, operation",
        "Operations of the worker stores that this node has served."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) {
           for (const auto& [name, count] : node.store.operations) {
             out.add({{"run_id", node.job}, {"operation", name}}, count);
           }
         });
       }},
      {{"elastic_run_store_connections", "gauge", "run_id", "Clients of the worker store that this node serves now."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.store.connections); });
       }},
      {{"elastic_run_store_keys", "gauge", "run_id", "Keys in the worker store that this node serves now."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.store.keys); });
       }},
      {{"elastic_run_store_bytes", "gauge", "run_id",
        "Bytes that this store keeps, including the overhead of each entry."},
       [](const Snapshot& s, Samples& out) {
         for_node(s, [&](const Node& node) { out.add({{"run_id", node.job}}, node.store.bytes); });
       }},
  };
  return kTable;
}

}  // namespace

std::span<const MetricFamily> metric_families() {
  static const std::vector<MetricFamily> kFamilies = [] {
    std::vector<MetricFamily> families;
    for (const Metric& metric : table()) families.push_back(metric.family);
    return families;
  }();
  return kFamilies;
}

std::string metrics_text(const Snapshot& snapshot) {
  std::string out;
  for (const Metric& metric : table()) {
    const MetricFamily& family = metric.family;
    out += format("# HELP {} {}\n# TYPE {} {}\n", family.name, family.help, family.name, family.type);
    Samples samples(out, family.name);
    metric.write(snapshot, samples);
  }
  return out;
}

}  // namespace elastic::status
