#include "cli/run/log_writer.h"

#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/report/likely_cause.h"

namespace elastic::run {

void write_log(const events::LogEvent& event) {
  using Level = events::LogEvent::Level;
  switch (event.level) {
    case Level::kDebug: return log::write_event(log::Level::kDebug, event.event, event.text, event.fields);
    case Level::kInfo: return log::write_event(log::Level::kInfo, event.event, event.text, event.fields);
    case Level::kWarning: return log::write_event(log::Level::kWarning, event.event, event.text, event.fields);
    case Level::kAlways: return log::write_answer(event.event, event.text, event.fields);
  }
}

void write_log(const events::LogEvents& events) {
  for (const events::LogEvent& event : events) write_log(event);
}

void log_failure(const report::JobReport& report) {
  Json fields = Json::object().set("reason", report.reason);
  const report::FailedWorker* const first = report.first_failure();
  if (first == nullptr) return log::write_event(log::Level::kDebug, "failure", report.reason, fields);
  const auto cause = report::likely_cause(*first);
  fields.set("rank", first->rank)
      .set("local_rank", first->local_rank)
      .set("failed_node", first->node_rank)
      .set("failed_host", first->host)
      .set("pid", first->pid)
      .set("exit_code", first->exit.python_code())
      .set("signal", first->exit.signal != 0 ? Json(signal_name(first->exit.signal)) : Json())
      .set("out_of_memory", !first->oom_evidence.empty())
      .set("error", first->error ? Json(first->error->message) : Json())
      .set("cause", cause ? Json(cause->rule) : Json())
      .set("cause_text", cause ? Json(cause->sentence) : Json())
      .set("failures", static_cast<std::int64_t>(report.failures.size()));
  log::write_event(log::Level::kDebug, "failure", format("{} {}", first->name(), first->exit.text()), fields);
}

void log_end(int status, std::int64_t milliseconds) {
  log::write_event(log::Level::kDebug, "launch_ended", format("{} ends with status {}", program_name(), status),
                   Json::object().set("exit_status", status).set("milliseconds", milliseconds));
}

}  // namespace elastic::run
