#include "health/evidence_reader/reader_process.h"

#include <doctest/doctest.h>

#include "src/base/json.h"
#include "src/base/json_archive.h"

namespace elastic::evidence {

TEST_CASE("an answer's line is read again as it was, and another line is none") {
  hang::EvidenceAnswer answer;
  answer.facts.ranks = {
      {.rank = 3, .pid = 17, .state = hang::ThreadState::kDisk, .wchan = "nfs_wait", .gpu_watts = 118.5}};
  answer.facts.ras.emplace().missing = hang::RankRuns::of({1, 2, 9});
  answer.facts.xid = 79;
  answer.lines = {"a line", "another \"line\""};
  const std::string line = write_json(answer, JsonForm::kExact).dump();
  CHECK(read_evidence(line) == answer);
  // Lines are for people: what is no text in them is made printable on the way.
  answer.lines = {"a line\twith bytes \xff"};
  const auto printable_lines = read_evidence(write_json(answer, JsonForm::kExact).dump());
  REQUIRE(printable_lines.has_value());
  CHECK(printable_lines->lines == std::vector<std::string>{"a line\\x09with bytes \\xff"});
  CHECK(!read_evidence(""));
  CHECK(!read_evidence("{}"));
  CHECK(!read_evidence(line.substr(0, line.size() / 2)));
  CHECK(!read_evidence(std::string(100, '[')));
}

TEST_CASE("a task's line has no line's end in it") {
  const hang::EvidenceTask task{.part = hang::Part::kRas, .temporary = "/tmp/a\nb"};
  CHECK(line_of(task).find('\n') == std::string::npos);
}

}  // namespace elastic::evidence
