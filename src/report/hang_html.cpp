#include "src/report/hang_html.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "src/base/html.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::report {
namespace {

constexpr std::string_view kStyle =
    R"(.headline { font-size: 1.15em; border-left: .3em solid #8a8f94; padding: .3em .8em; background: #f4f4f2;
  overflow-wrap: anywhere; }
.headline.soft { border-color: #d9822b; } .headline.hard { border-color: #b3202a; }
.headline.script { border-color: #5b4bb0; } .headline.over { border-color: #2e7d4f; }
.tiles { display: flex; flex-wrap: wrap; gap: .6em; }
.tile { background: #f4f4f2; padding: .5em .9em; min-width: 5.5em; } .tile b { display: block; font-size: 1.3em; }
.wide { overflow-x: auto; }
.stand { border: 1px solid #d5d5d0; border-left: .3em solid #b9c6d2; padding: .5em .8em; margin: .7em 0; }
.stand.odd { border-left-color: #b3202a; background: #fdf3ee; }
.stand h3 { font-size: 1em; margin: 0; display: inline; overflow-wrap: anywhere; }
.stand p { margin: .5em 0 .3em; } .stand .place { overflow-wrap: anywhere; }
.mark { display: inline-block; margin-left: .6em; padding: 0 .5em; border-radius: .6em; background: #b3202a;
  color: #fff; font-size: .9em; }
.share { height: .35em; background: #e7e7e4; margin: .4em 0; }
.share span { display: block; height: 100%; min-width: 3px; background: #7f97ab; }
.odd .share span { background: #b3202a; }
.frames { font: 13px/1.5 monospace; border: 0; width: auto; } .frames td { border: 0; padding: 0 1.5em 0 0; }
.frames td { overflow-wrap: anywhere; } .frames tr:first-child td { font-weight: bold; }
summary { cursor: pointer; padding: .4em 0; }
@media (prefers-color-scheme: dark) {
  .headline, .tile { background: #24272a; } .stand { border-color: #3a3f44; border-left-color: #55687a; }
  .stand.odd { background: #2c1f1f; border-left-color: #e0525b; } .share { background: #33373b; }
  .share span { background: #6f8aa1; } .odd .share span, .mark { background: #c23a44; }
}
@media (max-width: 40em) { .frames tr, .frames td { display: block; } .frames td + td { padding-left: 1.5em; } }
)";

// Groups that stand open; of the others one sees the first line.
constexpr std::size_t kOpenGroups = 12;

std::string span(double seconds) { return span_text(ms_of(seconds)); }

// A clause as a sentence.
std::string sentence(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 32);
  if (!text.empty() && !text.ends_with('.') && !text.ends_with('?')) text += '.';
  return text;
}

using Words = std::pair<std::string_view, std::string_view>;

// The words for a name that docs/hangs.md lists; an unknown one is shown unchanged.
std::string words(std::string_view name, std::initializer_list<Words> all) {
  const auto found = std::ranges::find(all, name, &Words::first);
  return std::string(found == all.end() ? name : found->second);
}

std::string fault_words(std::string_view fault) {
  return words(fault, {
                          {"hard", "the node is at fault"},
                          {"soft", "the node may be at fault, or the script"},
                          {"script", "the script is at fault, and no node"},
                          {"none", "no node is at fault as far as is known"},
                      });
}

std::string limit_words(std::string_view from) {
  return words(from, {
                         {"learned", "learned from this job"},
                         {"flag", "by --hang-timeout"},
                         {"first", "by --hang-first-timeout"},
                         {"none", "the longest, since no time was learned"},
                         {"fact", "for a fact that speaks for itself"},
                         {"section", "by --progress-sections"},
                     });
}

std::string state_words(std::string_view state) {
  return words(state, {
                          {"run", "running"},
                          {"sleep", "sleeping"},
                          {"disk", "in an uninterruptible wait (D)"},
                          {"stopped", "stopped (T)"},
                          {"gone", "gone"},
                          {"unknown", "state unknown"},
                      });
}

std::string source_words(std::string_view state) {
  return words(state, {
                          {"ok", "read"},
                          {"off", "not asked"},
                          {"refused", "refused"},
                          {"partial", "read in part"},
                          {"late", "no answer in time"},
                          {"lost", "lost"},
                      });
}

std::string paragraph(std::string_view before, const std::optional<std::string>& text) {
  if (!text || text->empty()) return {};
  return format("<p>{}{}</p>\n", before, html_text(sentence(*text)));
}

std::string ending(const Hang& hang) {
  if (hang.end == HangEnd::kOpen) return {};
  if (hang.end == HangEnd::kEnded) return "<p>It is over: another round has begun.</p>\n";
  if (!hang.recovered_after_s) return "<p>It is over: progress came by itself.</p>\n";
  return format("<p>It is over: progress came by itself, after {}.</p>\n", span(*hang.recovered_after_s));
}

std::string headline(const Hang& hang) {
  const bool is_over = hang.end != HangEnd::kOpen;
  std::string kind = is_over ? "over" : "";
  for (const char* fault : {"soft", "hard", "script"}) {
    if (!is_over && hang.fault == fault) kind = fault;
  }
  std::string out = format("<p class=\"headline{}{}\">{}</p>\n", kind.empty() ? "" : " ", kind,
                           html_text(sentence(hang.cause.empty() ? "the cause is not known" : hang.cause)));
  return out + ending(hang) + paragraph("", hang.others) + paragraph("<b>What to do:</b> ", hang.remedy) +
         paragraph("<b>What is done:</b> ", hang.action);
}

std::string tiles(const Hang& hang) {
  std::string out = "<div class=\"tiles\">\n";
  const auto tile = [&](const std::string& figure, const std::string& what) {
    out += format("<div class=\"tile\"><b>{}</b>{}</div>\n", figure, what);
  };
  tile(span(hang.silent_s), "without progress");
  if (hang.limit_s > 0) tile(span(hang.limit_s), "limit, " + html_text(limit_words(hang.limit_from)));
  if (hang.longest_gap_s > 0) tile(span(hang.longest_gap_s), "the longest time before");
  std::int64_t ranks = 0;
  for (const HangGroup& group : hang.groups) ranks += group.count;
  const bool is_whole = hang.groups_left_out == 0;
  if (ranks > 0) {
    tile(format("{}{}", is_whole ? "" : "over ", ranks), plural("rank", ranks));
    const std::int64_t groups = static_cast<std::int64_t>(hang.groups.size()) + hang.groups_left_out;
    tile(format("{}", groups), plural("place", groups) + " where they stand");
  }
  return out + "</div>\n";
}

std::string facts(const Hang& hang, int utc_offset_s) {
  std::vector<std::string> parts = {format("round {}", hang.round)};
  if (hang.wall_ms > 0) {
    parts.push_back(format("told at {} ({})", wall_time(hang.wall_ms, utc_offset_s), utc_offset_text(utc_offset_s)));
  }
  parts.push_back(
      format("rule {} ({}): {}", hang.verdict.rule, html_text(hang.verdict.name), html_text(fault_words(hang.fault))));
  if (hang.phase != "unknown") parts.push_back("phase " + html_text(hang.phase));
  if (hang.section) {
    const std::string rank = hang.section_rank ? format(" of rank {}", *hang.section_rank) : "";
    parts.push_back(format("section \"{}\"{}", html_text(*hang.section), rank));
  }
  std::string last = "no step line was seen";
  if (hang.last_line) last = format("the last sign of progress: \"{}\"", html_text(*hang.last_line));
  if (hang.last_line && hang.last_rank) last += format(", rank {}", *hang.last_rank);
  parts.push_back(std::move(last));
  return format("<p class=\"quiet\">{}</p>\n", join(parts, "; "));
}

std::string culprits(const Hang& hang) {
  if (hang.culprits.empty()) return {};
  std::string out =
      "<h2>At fault</h2>\n<div class=\"wide\"><table>\n<tr><th>rank</th><th>node</th><th>pid</th><th>why</th></tr>\n";
  for (std::size_t i = 0; i < std::min(hang.culprits.size(), kHangCulprits); ++i) {
    const HangCulprit& culprit = hang.culprits[i];
    out += format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                  culprit.rank ? format("{}", *culprit.rank) : std::string("the node"), html_text(culprit.node),
                  culprit.pid ? format("{}", *culprit.pid) : std::string("-"), html_text(culprit.why));
  }
  return out + "</table></div>\n";
}

std::string frames(const HangStack& stack) {
  std::string out = "<table class=\"frames\">\n";
  for (const HangFrame& frame : stack) {
    out += format("<tr><td>{}</td><td>{}:{}</td></tr>\n", html_text(frame.function), html_text(frame.file), frame.line);
  }
  return out + "</table>\n";
}

// "sleeping, hrtimer_nanosleep; in all_reduce number 1904"
std::string state_text(const HangGroup& group) {
  std::string out = state_words(group.state);
  if (group.wchan) out += ", " + *group.wchan;
  if (group.op) out += "; in " + *group.op;
  if (group.op && group.seq) out += format(" number {}", *group.seq);
  return out;
}

std::string group_heading(const HangGroup& group, std::int64_t all_ranks) {
  std::string out = format("<h3>{} {}</h3>", plural("rank", group.count), html_text(group.ranks));
  if (group.is_odd) out += "<span class=\"mark\">look here first</span>";
  // One sees how many "3" or "0-4" are, but not "0-36,38-63".
  if (all_ranks > group.count) out += format(" <span class=\"quiet\">{} of {}</span>", group.count, all_ranks);
  return out;
}

std::string group_body(const HangGroup& group, std::int64_t all_ranks) {
  std::string out = format("<p class=\"place\">{}</p>\n", html_text(state_text(group)));
  if (all_ranks > group.count) {
    const double percent =
        std::clamp(100.0 * static_cast<double>(group.count) / static_cast<double>(all_ranks), 0.0, 100.0);
    out += format("<div class=\"share\" title=\"{0} of {1} ranks\"><span style=\"width:{2:.2f}%\"></span></div>\n",
                  group.count, all_ranks, percent);
  }
  out += group.stack ? frames(*group.stack) : "<p class=\"quiet\">Its stack is not known.</p>\n";
  if (group.child_stack) {
    out += "<p>A child process of it, which is unlike its siblings:</p>\n" + frames(*group.child_stack);
  }
  return out;
}

std::string groups(const Hang& hang) {
  if (hang.groups.empty()) return {};
  std::int64_t all_ranks = 0;
  for (const HangGroup& group : hang.groups) all_ranks += group.count;
  std::string out = "<h2>Where the ranks stand</h2>\n";
  for (std::size_t i = 0; i < hang.groups.size(); ++i) {
    const HangGroup& group = hang.groups[i];
    const std::string body = group_body(group, all_ranks);
    const char* odd = group.is_odd ? " odd" : "";
    out += i < kOpenGroups ? format("<div class=\"stand{}\">{}\n{}</div>\n", odd, group_heading(group, all_ranks), body)
                           : format("<details class=\"stand{}\"><summary>{}</summary>\n{}</details>\n", odd,
                                    group_heading(group, all_ranks), body);
  }
  if (hang.groups_left_out > 0) {
    out +=
        format("<p class=\"quiet\">And {} more, which stand elsewhere.</p>\n", counted(hang.groups_left_out, "group"));
  }
  return out;
}

std::string evidence(const Hang& hang) {
  std::string out = "<h2>What the verdict follows from</h2>\n<div class=\"wide\"><table>\n";
  const auto row = [&](std::string_view name, const std::string& text) {
    out += format("<tr><th>{}</th><td>{}</td></tr>\n", name, html_text(text));
  };
  row("stacks of all ranks", source_words(hang.sources.stacks));
  row("NCCL RAS", source_words(hang.sources.ras));
  row("flight recorder", source_words(hang.sources.fr));
  row("GPUs (NVML)", source_words(hang.sources.nvml));
  row("InfiniBand", source_words(hang.sources.links));
  row("worker store", source_words(hang.sources.store));
  if (!hang.without_evidence.empty()) row("nothing known of ranks", hang.without_evidence);
  if (hang.evidence) row("files", *hang.evidence);
  out += "</table></div>\n";
  return out +
         "<p class=\"quiet\">A source has the worst state of all nodes. Ranks that stand at the same place, by the "
         "innermost frames of their main threads and by what these do, are one group: first those to look at first, "
         "then the smallest. The innermost frame is on top.</p>\n";
}

}  // namespace

std::string_view hang_style() { return kStyle; }

std::string hang_section(const Hang& hang, int utc_offset_s) {
  return headline(hang) + facts(hang, utc_offset_s) + tiles(hang) + culprits(hang) + groups(hang) + evidence(hang);
}

std::string hang_page(const Hang& hang, std::string_view run_id, int utc_offset_s) {
  const std::string job = html_text(printable(run_id));
  const bool is_over = hang.end != HangEnd::kOpen;
  std::string out = html_beginning("Hang of " + job, kStyle);
  out += format("<h1>Job {} {}</h1>\n", job, is_over ? "made no progress for a time" : "makes no progress");
  out += hang_section(hang, utc_offset_s);
  out += html_end();
  return out;
}

}  // namespace elastic::report
