#include "health/progress/step_line.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic::progress;

TEST_CASE("a script says its step, its phase, or both") {
  CHECK(read_script_word("step=12 phase=train") == ScriptWord{12, Phase::kTrain});
  CHECK(read_script_word("step=0") == ScriptWord{0, {}});
  CHECK(read_script_word("  phase=checkpoint\t") == ScriptWord{{}, Phase::kCheckpoint});
  CHECK(read_script_word("loss=2.3 step=7 phase=eval of=9") == ScriptWord{7, Phase::kEval});
}

TEST_CASE("garbage is passed over") {
  for (const char* line : {"", "hello", "step=", "step=x", "step=-1", "step=1.5", "phase=", "phase=training", "step",
                           "step=99999999999999999999", "xstep=1", "\x01\x02"}) {
    CHECK_FALSE(read_script_word(line));
  }
}

TEST_CASE("a runtime-metrics file has a step, or is being written") {
  CHECK(read_metrics_file(R"({"step": 42, "timestamp": 1700000000.5})") == MetricsFile{42, 1700000000500});
  CHECK(read_metrics_file("{\"timestamp\": 1, \"step\": 3}\n") == MetricsFile{3, 1000});
  CHECK(read_metrics_file(R"({"step": 3})") == MetricsFile{3});
  CHECK(read_metrics_file(R"({"step": 3, "timestamp": 1e300})") == MetricsFile{3});
  for (const char* text : {"", "{\"step\": 4", "[]", "{}", R"({"step": "4"})", R"({"step": -4})", R"({"step": 4.5})"}) {
    CHECK_FALSE(read_metrics_file(text));
  }
  CHECK_FALSE(read_metrics_file(std::string(5000, ' ') + R"({"step": 42})"));
  CHECK_FALSE(read_metrics_file(std::string(2000, '[')));
}
