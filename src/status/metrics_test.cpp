#include "src/status/metrics.h"

#include <doctest/doctest.h>

#include <set>

#include "src/base/text.h"
#include "src/status/test_snapshot.h"

using namespace elastic;
using namespace elastic::status;

TEST_CASE("each family has its help and type once, also where there is no sample") {
  for (const Snapshot& snapshot : {Snapshot{}, testing::full_snapshot()}) {
    const std::string text = metrics_text(snapshot);
    std::set<std::string_view> names;
    for (const MetricFamily& family : metric_families()) {
      CAPTURE(family.name);
      CHECK(names.insert(family.name).second);
      CHECK(text.contains(format("# HELP {} {}\n# TYPE {} {}\n", family.name, family.help, family.name, family.type)));
    }
  }
}

TEST_CASE("names follow Prometheus' rules: a prefix, base units, and _total for counters alone") {
  for (const MetricFamily& family : metric_families()) {
    CAPTURE(family.name);
    CHECK(family.name.starts_with("elastic_run_"));
    CHECK(family.name.ends_with("_total") == (family.type == "counter"));
    CHECK((family.type == "counter" || family.type == "gauge"));
    CHECK(!family.name.contains("_ms"));
    CHECK(family.help.ends_with("."));
  }
}

TEST_CASE("every family has a sample with the labels that its table says") {
  const std::vector<std::string> lines = split(metrics_text(testing::full_snapshot()), '\n');
  for (const MetricFamily& family : metric_families()) {
    CAPTURE(family.name);
    bool found = false;
    for (const std::string& line : lines) {
      if (!line.starts_with(std::string(family.name) + "{") && !line.starts_with(std::string(family.name) + " "))
        continue;
      found = true;
      for (const std::string& label : split(family.labels, ',')) {
        const std::string name(trim(label));
        CHECK((name.empty() || line.contains(name + "=\"")));
      }
    }
    CHECK(found);
  }
}

TEST_CASE("samples are what the snapshot says, times in seconds") {
  const std::string text = metrics_text(testing::full_snapshot());
  for (const char* line : {"elastic_run_job_phase_seconds_total{run_id=\"job\",phase=\"running\"} 90.500\n",
                           "elastic_run_job_rounds_total{run_id=\"job\",cause=\"first\"} 1\n",
                           "elastic_run_job_restarts_total{run_id=\"job\",cause=\"worker_failure\"} 2\n",
                           "elastic_run_job_nodes{run_id=\"job\",state=\"in_round\"} 3\n",
                           "elastic_run_job_lost_work_seconds_total{run_id=\"job\",cause=\"node_lost\"} 12.345\n",
                           "elastic_run_store_operations_total{run_id=\"job\",operation=\"set\"} 7\n",
                           "elastic_run_job_step{run_id=\"job\"} 118\n",
                           "elastic_run_job_steps_per_second{run_id=\"job\"} 2.345\n",
                           "elastic_run_worker_progress_age_seconds{run_id=\"job\",rank=\"0\"} 4.000\n",
                           "elastic_run_node_ready{run_id=\"job\"} 1\n",
                           "elastic_run_job_phase{run_id=\"job\",phase=\"running\"} 1\n",
                           "elastic_run_job_phase{run_id=\"job\",phase=\"waiting\"} 0\n",
                           "elastic_run_node_workers_started_warm_total{run_id=\"job\"} 4\n",
                           "elastic_run_node_spared_cpu_seconds_total{run_id=\"job\"} 9.000\n",
                           "elastic_run_node_warm_workers{run_id=\"job\"} 1\n",
                           "elastic_run_node_warm_state{run_id=\"job\",state=\"preparing\"} 1\n",
                           "elastic_run_node_warm_state{run_id=\"job\",state=\"off\"} 0\n",
                           "elastic_run_job_hang_state{run_id=\"job\",state=\"judged\"} 1\n",
                           "elastic_run_job_hang_state{run_id=\"job\",state=\"armed\"} 0\n",
                           "elastic_run_job_hang_silent_seconds{run_id=\"job\"} 250.000\n",
                           "elastic_run_job_hang_limit_seconds{run_id=\"job\"} 60.000\n",
                           "elastic_run_job_hangs_total{run_id=\"job\"} 3\n",
                           "elastic_run_job_hangs_recovered_total{run_id=\"job\"} 2\n",
                           "elastic_run_job_hang_alarms_withdrawn_total{run_id=\"job\"} 1\n",
                           "elastic_run_http_responses_total{code=\"200\"} 5\n"}) {
    CAPTURE(line);
    CHECK(text.contains(line));
  }
}

TEST_CASE("where no limit holds or nothing is watched there is no sample of it") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].hang = {};
  const std::string text = metrics_text(snapshot);
  CHECK(text.contains("elastic_run_job_hang_state{run_id=\"job\",state=\"off\"} 1\n"));
  CHECK_FALSE(text.contains("elastic_run_job_hang_silent_seconds{"));
  CHECK_FALSE(text.contains("elastic_run_job_hang_limit_seconds{"));
  CHECK(text.contains("elastic_run_job_hangs_total{run_id=\"job\"} 0\n"));
}

TEST_CASE("whatever a job is called, its label is one text in quotes") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].id = "a\"b\\c\nd\xC3\xA9";
  CHECK(metrics_text(snapshot).contains("run_id=\"a\\\"b\\\\c\\nd\xC3\xA9\""));
}

TEST_CASE("jobs whose names are no UTF-8 keep labels of their own") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].id = "a\"\xff";
  CHECK(metrics_text(snapshot).contains("run_id=\"a\\\"\\\\xff\""));
  snapshot.coordinator->jobs[0].id = "a\"\xfe";
  CHECK(metrics_text(snapshot).contains("run_id=\"a\\\"\\\\xfe\""));
}
