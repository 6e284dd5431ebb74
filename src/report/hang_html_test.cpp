#include "src/report/hang_html.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/html_test_support.h"
#include "src/base/screen_text.h"
#include "src/report/failure.h"
#include "src/report/hang_test_support.h"
#include "src/report/html.h"

using namespace elastic;
using namespace elastic::report;

TEST_CASE("the page has the cause first, then who is at fault, then the groups with the odd one on top") {
  const std::string page = hang_page(testing::full_hang(), "night", 0);
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.contains("<h1>Job night makes no progress</h1>"));
  std::size_t at = 0;
  for (const char* part :
       {"<p class=\"headline soft\">Rank 5 (node gpu-2) is not in the collective that others wait in.",
        "7 ranks in all_reduce number 1904 of group &quot;tp_0&quot;; rank 5 has launched 1903.",
        "<b>What to do:</b> Look at its data loader.", "told at 2026-11-21 16:46:43 (UTC)", "rule 7 (behind)",
        "\"iteration 118/500\", rank 7", "<b>4 min 10 s</b>without progress",
        "<b>60.0 s</b>limit, learned from this job",
        "<td>5</td><td>gpu-2</td><td>4711</td><td>rank 5 is one collective behind</td>",
        "<div class=\"stand odd\"><h3>rank 5</h3><span class=\"mark\">look here first</span>",
        "sleeping, hrtimer_nanosleep<", "<td>load_batch</td><td>/home/u/data.py:88</td>", "A child process of it",
        "<td>fetch</td>", "<h3>ranks 0-4,6-7</h3> <span class=\"quiet\">7 of 8</span>",
        "sleeping, futex_wait_queue; in all_reduce number 1904<", "<th>NCCL RAS</th><td>refused</td>",
        "<th>worker store</th><td>no answer in time</td>", "/logs/none_x/attempt_0/hang"}) {
    CAPTURE(part);
    const std::size_t found = page.find(part, at);
    REQUIRE(found != std::string::npos);
    at = found;
  }
  CHECK(balanced(page));
}

TEST_CASE("the page of a hang needs nothing from elsewhere and runs nothing") {
  const std::string page = hang_page(testing::full_hang(), "night", 0);
  CHECK(foreign_part(page).empty());
  CHECK(page.contains("default-src 'none'"));
}

TEST_CASE("a hang that is over says so, and its cause is no alarm any more") {
  Hang hang = testing::full_hang();
  hang.end = HangEnd::kRecovered;
  hang.recovered_after_s = 300;
  const std::string page = hang_page(hang, "night", 0);
  CHECK(page.contains("<h1>Job night made no progress for a time</h1>"));
  CHECK(page.contains("<p class=\"headline over\">"));
  CHECK(page.contains("progress came by itself, after 5 min 0 s."));
  hang.end = HangEnd::kEnded;
  CHECK(hang_page(hang, "night", 0).contains("It is over: another round has begun."));
}

TEST_CASE("where nobody is at fault and nothing is known the page is whole") {
  const std::string page = hang_page({}, "", 0);
  CHECK(page.contains("<p class=\"headline\">The cause is not known.</p>"));
  CHECK_FALSE(page.contains("At fault"));
  CHECK_FALSE(page.contains("Where the ranks stand"));
  CHECK(balanced(page));
}

TEST_CASE("of many groups the last ones are closed, and those that were left out are counted") {
  Hang hang;
  for (int i = 0; i < 64; ++i) hang.groups.push_back({.ranks = std::to_string(i), .count = 1});
  hang.groups_left_out = 136;
  const std::string page = hang_page(hang, "night", 0);
  CHECK(count(page, "<div class=\"stand\">") == 12);
  CHECK(count(page, "<details class=\"stand\">") == 52);
  CHECK(page.contains("And 136 groups more"));
  CHECK(page.contains("<b>over 64</b>ranks"));
  CHECK(page.contains("<b>200</b>places where they stand"));
  CHECK(balanced(page));
}

TEST_CASE("no text of a hang can break out of its place on the page") {
  const std::string evil = "</p></td></script><script>alert('1')</script>\" onload=\"x\" & \x1b[2J\x07\xff";
  Hang hang = testing::full_hang();
  hang.limit_from = hang.phase = hang.verdict.name = hang.fault = hang.cause = hang.without_evidence = evil;
  hang.others = hang.remedy = hang.last_line = hang.evidence = hang.action = evil;
  hang.sources = {evil, evil, evil, evil, evil};
  for (HangCulprit& culprit : hang.culprits) culprit.node = culprit.why = evil;
  for (HangGroup& group : hang.groups) {
    group.ranks = group.state = evil;
    group.wchan = group.op = evil;
    group.child_stack = group.stack = HangStack{{evil, evil, 3}};
  }
  const std::string page = hang_page(hang, evil, 0);
  CHECK_FALSE(page.contains("<script"));
  CHECK_FALSE(page.contains("</script"));
  CHECK_FALSE(page.contains("onload=\""));
  CHECK(page.contains("&lt;script&gt;alert(&#39;1&#39;)"));
  CHECK(is_utf8(page));
  for (const char c : page) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
  CHECK(balanced(page));
}

TEST_CASE("the page of a job that hung has the hang below its first failure, and other pages know nothing of it") {
  JobReport report{.title = "train.py", .outcome = JobReport::Outcome::kStopped, .hang = testing::full_hang()};
  const std::string page = html_page(report);
  CHECK(page.contains("<h2>The last hang</h2>\n<p class=\"headline soft\">Rank 5 (node gpu-2) is not in "));
  CHECK(page.contains(".stand.odd {"));
  CHECK(balanced(page));
  report.hang.reset();
  CHECK_FALSE(html_page(report).contains("stand"));
}
