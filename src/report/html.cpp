#include "src/report/html.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "src/base/html.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/hang_html.h"
#include "src/report/python_traceback.h"
#include "src/report/root_cause.h"

namespace elastic::report {
namespace {

constexpr std::string_view kStyle =
    R"(pre { background: #f4f4f2; padding: .7em; overflow-x: auto; font-size: 13px; }
summary { cursor: pointer; } .cause { border-left: 4px solid #c33; padding-left: .8em; }
.evidence { font-family: monospace; overflow-wrap: anywhere; }
.round { fill: #8ab4d8; stroke: #fff; } .round.odd { fill: #b5cfe6; }
.failed { fill: #c33; } .stopped { fill: #999; }
@media (prefers-color-scheme: dark) {
  pre { background: #24272a; } .round { fill: #3d6f9c; stroke: #17191b; } .round.odd { fill: #54789a; }
}
)";

std::string heading(const JobReport& report) {
  const std::string title = html_text(report.title.empty() ? report.run_id : report.title);
  switch (report.outcome) {
    case JobReport::Outcome::kSucceeded: return title + " succeeded";
    case JobReport::Outcome::kStopped: return title + " was stopped";
    case JobReport::Outcome::kFailed: return title + " failed";
  }
  return title;
}

std::string how(const FailedWorker& worker) {
  if (!worker.oom_evidence.empty()) return worker.exit.text() + " (out of memory)";
  return worker.exit.text() + (worker.timer ? " (its timer expired)" : "");
}

std::string facts(const JobReport& report) {
  std::string out = "<table>\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += format("<tr><th>{}</th><td>{}</td></tr>\n", name, html_text(value));
  };
  row("run id", report.run_id);
  row("program", report.program);
  row("reason", report.reason);
  row("restarts used", format("{} of {}", report.restarts_used, report.max_restarts));
  row("log directory", report.log_directory);
  row("left behind", report.left_behind);
  row("elastic-run", report.version);
  row("times are in", utc_offset_text(report.utc_offset_s));
  return out + "</table>\n";
}

std::string first_cause(const JobReport& report) {
  const FailedWorker* first = report.first_failure();
  if (first == nullptr) return {};
  std::string out = "<h2>First failure</h2>\n<div class=\"cause\">\n";
  out += format("<p><b>{} {}</b><br>at {}{}</p>\n", html_text(first->name()), html_text(how(*first)),
                wall_time_ms(first->wall_ms, report.utc_offset_s),
                first->host.empty() ? "" : " on " + html_text(first->host));
  if (const auto root_cause = find_root_cause(report)) {
    const std::string whose = root_cause->worker == first ? "" : root_cause->worker->name() + ": ";
    out += format("<p>Likely cause: {}<br><span class=\"evidence\">{}: {}</span></p>\n",
                  html_text(whose + root_cause->cause.sentence), html_text(root_cause->cause.source),
                  html_text(root_cause->cause.evidence));
  }
  return out + "</div>\n";
}

// --- Time line -------------------------------------------------------------------------------

struct Mark {
  std::int64_t at_ms;
  const FailedWorker* worker;
};

struct Row {
  std::string host;
  int node_rank = 0;
  std::vector<const RoundReport*> rounds;
  std::vector<Mark> marks;
};

std::vector<Row> rows_of(const JobReport& report) {
  std::map<std::tuple<int, std::string>, Row> rows;
  const auto row_of = [&](int node_rank, const std::string& host) -> Row& {
    Row& row = rows[{node_rank, host}];
    row.host = host;
    row.node_rank = node_rank;
    return row;
  };
  for (const RoundReport& round : report.rounds) {
    row_of(round.node_rank, round.host).rounds.push_back(&round);
    for (const FailedWorker& worker : round.failures) {
      row_of(worker.node_rank, worker.host).marks.push_back({worker.wall_ms, &worker});
    }
  }
  for (const FailedWorker& worker : report.failures) {
    row_of(worker.node_rank, worker.host).marks.push_back({worker.wall_ms, &worker});
  }
  std::vector<Row> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  if (out.size() > kPageNodes) {
    std::ranges::stable_sort(out, {}, [](const Row& row) { return row.marks.empty(); });
    out.resize(kPageNodes);
  }
  return out;
}

// Maps times between the first and the last one to the width of 800, in hundredths.
class Scale {
 public:
  explicit Scale(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      for (const RoundReport* round : row.rounds) {
        see(round->began_ms);
        see(round->ended_ms);
      }
      for (const Mark& mark : row.marks) see(mark.at_ms);
    }
  }
  bool empty() const { return first_ms_ == 0; }
  std::int64_t first_ms() const { return first_ms_; }
  std::int64_t last_ms() const { return last_ms_; }
  double x(std::int64_t at_ms) const {
    const double span = static_cast<double>(std::max<std::int64_t>(last_ms_ - first_ms_, 1));
    return kLeft + 800.0 * static_cast<double>(std::clamp(at_ms, first_ms_, last_ms_) - first_ms_) / span;
  }
  static constexpr double kLeft = 200;

 private:
  void see(std::int64_t at_ms) {
    if (at_ms <= 0) return;  // not known
    first_ms_ = first_ms_ == 0 ? at_ms : std::min(first_ms_, at_ms);
    last_ms_ = std::max(last_ms_, at_ms);
  }
  std::int64_t first_ms_ = 0;
  std::int64_t last_ms_ = 0;
};

std::string ranks_of(const RoundReport& round) {
  if (round.rank_count <= 0) return "no rank";
  if (round.rank_count == 1) return format("rank {}", round.first_rank);
  const std::int64_t last = std::int64_t{round.first_rank} + round.rank_count - 1;
  return format("ranks {}-{}", round.first_rank, last);
}

std::string bars(const Row& row, const Scale& scale, std::size_t y) {
  std::string out;
  const std::size_t skipped = row.rounds.size() - std::min(row.rounds.size(), kPageRoundsOfNode);
  for (std::size_t i = skipped; i < row.rounds.size(); ++i) {
    const RoundReport& round = *row.rounds[i];
    if (round.began_ms <= 0) continue;
    const std::int64_t ended_ms = round.ended_ms > 0 ? round.ended_ms : scale.last_ms();
    const double left = scale.x(round.began_ms);
    out += format(
        "<rect class=\"round{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"16\">"
        "<title>round {}, restart count {}, {}, {}{}</title></rect>\n",
        round.round % 2 == 1 ? " odd" : "", left, y, std::max(scale.x(ended_ms) - left, 1.0), round.round,
        round.restart_count, ranks_of(round), span_text(ended_ms - round.began_ms),
        round.reason.empty() ? "" : ": " + html_text(round.reason));
  }
  return out;
}

std::string marks(const Row& row, const Scale& scale, std::size_t y) {
  std::string out;
  // Many ranks end at the same moment; marks at the same place are drawn once, a failure rather than a stop.
  std::map<std::int64_t, std::vector<const FailedWorker*>> places;
  for (const Mark& mark : row.marks) {
    if (mark.at_ms > 0) {
      places[static_cast<std::int64_t>(scale.x(mark.at_ms) * 2)].push_back(mark.worker);
    }
  }
  for (auto& [place, workers] : places) {
    std::ranges::stable_sort(workers, {}, &FailedWorker::stopped_by_us);
    const FailedWorker& worker = *workers.front();
    const std::string more = workers.size() == 1 ? "" : format(" and {} more", workers.size() - 1);
    out += format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{}\" r=\"5\"><title>{} {}{}</title></circle>\n",
                  worker.stopped_by_us ? "stopped" : "failed", static_cast<double>(place) / 2, y + 8,
                  html_text(worker.name()), html_text(how(worker)), more);
  }
  return out;
}

std::string time_line(const JobReport& report) {
  const std::vector<Row> rows = rows_of(report);
  const Scale scale(rows);
  if (scale.empty()) return {};
  const std::size_t height = rows.size() * 24 + 30;
  std::string out = format("<h2>Time line</h2>\n<svg viewBox=\"0 0 1010 {}\" role=\"img\" width=\"100%\">\n", height);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t y = i * 24 + 4;
    std::string name = format("node {}", rows[i].node_rank);
    if (!rows[i].host.empty()) name += " " + printable(rows[i].host, 20);
    out += format("<text x=\"0\" y=\"{}\">{}</text>\n", y + 12, html_text(name));
    out += bars(rows[i], scale, y) + marks(rows[i], scale, y);
  }
  out += format("<text x=\"{}\" y=\"{}\">{}</text>\n", Scale::kLeft, height - 6,
                wall_time_ms(scale.first_ms(), report.utc_offset_s));
  out += format("<text x=\"1000\" y=\"{}\" text-anchor=\"end\">{} (after {})</text>\n</svg>\n", height - 6,
                wall_time_ms(scale.last_ms(), report.utc_offset_s), span_text(scale.last_ms() - scale.first_ms()));
  out +=
      "<p class=\"quiet\">Bars are rounds, red marks are ranks that failed, grey ones ranks that "
      "were stopped because of that.";
  if (rows.size() == kPageNodes) out += format(" At most {} nodes are drawn.", kPageNodes);
  return out + "</p>\n";
}

// --- Ranks -----------------------------------------------------------------------------------

std::string whole_output(std::string_view bytes) {
  const LastLines all = last_lines(bytes, bytes.size() + 1, kPageLineBytes);
  return html_text(join(all.lines, "\n"));
}

std::string details(std::string_view title, const std::string& escaped) {
  return format("<details><summary>{}</summary><pre>{}</pre></details>\n", title, escaped);
}

std::string stack_of(const ExpiredTimer& timer) {
  std::string out;
  for (const HangFrame& frame : timer.stack) {
    out += format("{}  {}:{}\n", html_text(frame.function), html_text(frame.file), frame.line);
  }
  return out;
}

std::string last_words(const FailedWorker& worker) {
  std::string out;
  const std::string_view tail = worker.tail.bytes;
  if (worker.error) {
    const ErrorFile& error = *worker.error;
    out += details("error.json", html_text(error.traceback.empty() ? error.message : error.traceback));
  } else if (const auto found = last_traceback(without_colours(tail))) {
    out += details("traceback", html_text(found->text));
  }
  if (!worker.error_file_problem.empty()) {
    out += details("error.json", html_text(worker.error_file_problem));
  }
  if (!tail.empty()) out += details("stderr", whole_output(tail));
  if (tail.empty() && !worker.tail.none_because.empty()) {
    out += details("no stderr", html_text(worker.tail.none_because));
  }
  if (worker.timer && !worker.timer->stack.empty()) out += details("stack at its timer", stack_of(*worker.timer));
  if (!worker.oom_evidence.empty()) out += details("memory", html_text(worker.oom_evidence));
  if (!worker.kernel_log.empty()) out += details("kernel log", html_text(worker.kernel_log));
  if (!worker.core_file.empty()) out += details("core", html_text(worker.core_file));
  return out;
}

std::string rank_row(const FailedWorker& worker, std::int64_t first_ms, int utc_offset_s) {
  const auto cause = likely_cause(worker);
  const std::string cause_text =
      cause                  ? format("{}<br><span class=\"evidence\">{}: {}</span>", html_text(cause->sentence),
                                      html_text(cause->source), html_text(cause->evidence))
      : worker.stopped_by_us ? std::string("<span class=\"quiet\">stopped because of the first failure</span>")
                             : std::string();
  return format(
      "<tr><td class=\"number\">{}</td><td>{} {}</td><td class=\"number\">{}</td>"
      "<td class=\"number\">{}</td><td>{}</td><td>{}<br><span class=\"quiet\">+{}</span></td>"
      "<td>{}\n{}</td></tr>\n",
      worker.rank, worker.node_rank, html_text(worker.host), worker.local_rank, worker.pid, html_text(how(worker)),
      wall_time_ms(worker.wall_ms, utc_offset_s), span_text(worker.wall_ms - first_ms), cause_text, last_words(worker));
}

std::string ranks_table(std::string_view title, const std::vector<FailedWorker>& failures, int utc_offset_s) {
  if (failures.empty()) return {};
  std::string out = format(
      "<h2>{}</h2>\n<table>\n<tr><th>rank</th><th>node</th><th>local rank</th><th>pid</th>"
      "<th>exit</th><th>time</th><th>cause and last output</th></tr>\n",
      title);
  for (const FailedWorker& worker : failures) out += rank_row(worker, failures.front().wall_ms, utc_offset_s);
  return out + "</table>\n";
}

}  // namespace

std::string html_page(const JobReport& report) {
  const std::string title = heading(report);
  const std::string hang_rules = report.hang ? std::string(hang_style()) : std::string();
  std::string out = html_beginning(title, std::string(kStyle) + hang_rules);
  out += format("<h1>{}</h1>\n", title);
  out += facts(report) + first_cause(report);
  if (report.hang) out += "<h2>The last hang</h2>\n" + hang_section(*report.hang, report.utc_offset_s);
  out += time_line(report);
  out += ranks_table("Ranks of the last round", report.failures, report.utc_offset_s);
  for (auto round = report.rounds.rbegin(); round != report.rounds.rend(); ++round) {
    const std::string where = report.node_rank != round->node_rank ? format(", node {}", round->node_rank) : "";
    out += ranks_table(format("Failures of round {}{}", round->round, where), round->failures, report.utc_offset_s);
  }
  out += html_end();
  return out;
}

}  // namespace elastic::report
