#include "health/hang/hang_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "health/hang/hang_test_support.h"
#include "src/base/json_archive.h"
#include "src/report/hang.h"

namespace elastic::hang {
namespace {

HangStory story() {
  return {.silent_ms = 250'000,
          .limit = {60'000, LimitFrom::kLearned},
          .phase = Phase::kTrain,
          .longest_gap_ms = 12'000,
          .last_line = "iteration 118/500\n",
          .last_rank = 7,
          .evidence = "logs/attempt_0/hang/"};
}

HungJob job_with_rank_5_behind() {
  HungJob job(4, 2);
  job.record(1904);
  job.let_lag(5);
  RankFacts& rank = job.put(5, {{{"load_batch", "/home/u/data.py", 88}, {"train_step", "/home/u/train.py", 141}}});
  rank.wchan = "hrtimer_nanosleep";
  rank.cpu_percent = 0;
  return job;
}

}  // namespace

TEST_CASE("the screen has the cause first, then the stack of the culprit, the others, and where the files are") {
  const HangPicture picture(job_with_rank_5_behind().facts);
  CHECK(hang_screen(picture, judge(picture), story()) ==
        "no progress for 4 min 10 s (longest gap before: 12.0 s; last step line: \"iteration 118/500\", rank 7)\n"
        "  cause: rank 5 (node gpu-2) is not in the collective that others wait in\n"
        "         others: 7 ranks in all_reduce number 1904 of group \"tp_0\"; rank 5 has launched 1903\n"
        "         rank 5: sleeping, hrtimer_nanosleep, 0 % CPU\n"
        "           load_batch               data.py:88\n"
        "           train_step               train.py:141\n"
        "  not the cause: ranks 0-4,6-7 in all_reduce   train.py:150\n"
        "  evidence: logs/attempt_0/hang/\n");
}

TEST_CASE("the section whose limit is over is told with the rank that is in it, on the screen and as JSON") {
  const HangPicture picture(job_with_rank_5_behind().facts);
  HangStory told = story();
  told.limit = {30'000, LimitFrom::kSection};
  told.section = "step";
  told.section_rank = 5;
  CHECK(hang_screen(picture, judge(picture), told)
            .starts_with("no progress for 4 min 10 s (limit of section \"step\", in which rank 5 is: 30.0 s; longest"));
  const auto read = report::hang_of(hang_json(picture, judge(picture), told).dump());
  REQUIRE(read.has_value());
  CHECK(read->limit_from == "section");
  CHECK(read->section == "step");
  CHECK(read->section_rank == 5);
  CHECK(!report::hang_of(hang_json(picture, judge(picture), story()).dump())->section);
}

TEST_CASE("where nobody is at fault the groups are told, and what could not be had") {
  HungJob job(4, 1);
  job.put(3, stack_in("train_step"));
  job.put(2, stack_in("train_step"));
  job.lose_evidence(1);
  job.facts.nodes[0].ras_source = {Source::kRefused, "connection refused"};
  const HangPicture picture(job.facts);
  CHECK(hang_screen(picture, judge(picture), {.silent_ms = 5'000}) ==
        "no progress for 5.000 s\n"
        "  cause: it is not known which rank the others wait for\n"
        "         others: nothing is known of 1 of 4 ranks\n"
        "  without evidence: rank 1\n"
        "  group: rank 0 in all_reduce   train.py:150\n"
        "  group: ranks 2-3 in train_step train.py:150\n"
        "  remedy: compare the groups of ranks\n"
        "  not had: RAS refused (connection refused) of 1 node; nothing in time of 1 node\n");
}

TEST_CASE("a source that has said a part is told as partial, with the reason, and is better than none") {
  HungJob job(2, 1);
  job.facts.nodes[0].ras_source = {Source::kPartial, "NCCL 2.26.2 reports without counts"};
  HangPicture picture(job.facts);
  const std::string screen = hang_screen(picture, judge(picture), {});
  CHECK(screen.find("  not had: RAS partial (NCCL 2.26.2 reports without counts) of 1 node\n") != std::string::npos);
  CHECK(hang_json(picture, judge(picture), {}).find("sources")->text_or_empty("ras") == "partial");
  job.facts.nodes[1].ras_source = {Source::kRefused};
  const HangPicture refused(job.facts);
  CHECK(hang_json(refused, judge(refused), {}).find("sources")->text_or_empty("ras") == "refused");
}

TEST_CASE("groups of equally many ranks are in the order of their first ranks") {
  HungJob job(6, 1);
  for (const int rank : {1, 4}) job.put(rank, stack_in("zeta"));
  for (const int rank : {2, 3}) job.put(rank, stack_in("alpha"));
  const HangPicture picture(job.facts);
  std::vector<std::string> texts;
  for (const RankGroup& group : rank_groups(picture, {})) texts.push_back(group.ranks.text());
  CHECK(texts == std::vector<std::string>{"0,5", "1,4", "2-3"});
}

TEST_CASE("the number of a group's collective is known from any of its ranks") {
  HungJob job(3, 1);
  job.record(7);
  job.facts.nodes[0].group_facts.clear();  // its dump is lost
  const std::vector<RankGroup> groups = rank_groups(HangPicture(job.facts), {});
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].number == 7);
}

TEST_CASE("JSON has the verdict, culprits with their pids, groups of ranks, and the state of each source") {
  const HangPicture picture(job_with_rank_5_behind().facts);
  const Json json = hang_json(picture, judge(picture), story());
  CHECK(json.find("silent_s")->as_number() == 250);
  CHECK(json.text_or_empty("limit_from") == "learned");
  CHECK(json.text_or_empty("fault") == "soft");
  CHECK(json.find("verdict")->dump() == R"({"rule":7,"name":"behind"})");
  REQUIRE(json.find("culprits")->as_array()->size() == 1);
  const Json& culprit = json.find("culprits")->as_array()->front();
  CHECK(culprit.find("rank")->as_integer() == 5);
  CHECK(culprit.text_or_empty("node") == "gpu-2");
  CHECK(culprit.find("pid")->as_integer() == 4005);
  REQUIRE(json.find("groups")->as_array()->size() == 2);
  const Json& others = (*json.find("groups")->as_array())[1];
  CHECK(others.text_or_empty("ranks") == "0-4,6-7");
  CHECK(others.text_or_empty("op") == "all_reduce");
  CHECK(others.find("seq")->as_integer() == 1904);
  CHECK(json.find("sources")->dump() ==
        R"({"stacks":"ok","ras":"off","fr":"ok","nvml":"off","links":"off","store":"off"})");
  CHECK(json.find("action")->is_null());
}

TEST_CASE("every node can read the JSON again, member by member, to keep it in its files") {
  HungJob job = job_with_rank_5_behind();
  job.lose_evidence(0);
  job.facts.nodes[1].ras_source = {Source::kRefused, "connection refused"};
  job.facts.nodes[1].ranks.front().child_stack = job.facts.nodes[1].ranks.front().stack;
  for (const auto& [told, verdict_of] : {std::pair{job.facts, story()}, std::pair{HungJob(2, 2).facts, HangStory{}}}) {
    const HangPicture picture(told);
    const Json json = hang_json(picture, judge(picture), verdict_of);
    const auto read = report::hang_of(json.dump());
    REQUIRE(read.has_value());
    const Json again = write_json(*read, JsonForm::kPlain);
    for (const auto& member : *json.as_object()) {
      CAPTURE(member.first);
      REQUIRE(again.find(member.first) != nullptr);
      CHECK(again.find(member.first)->dump() == member.second.dump());
    }
  }
}

TEST_CASE("a node as the culprit has no rank and no pid") {
  HungJob job(2, 1);
  job.lose_evidence(1);
  job.facts.nodes[1].lost = "its connection was reset";
  const HangPicture picture(job.facts);
  const Json json = hang_json(picture, judge(picture), {});
  CHECK(json.find("culprits")->dump() ==
        R"([{"rank":null,"node":"gpu-1","pid":null,"why":"its connection was reset"}])");
  CHECK(json.text_or_empty("without_evidence") == "1");
}

TEST_CASE("the groups of ten thousand ranks have the odd one on top, and are as many as there are places") {
  HungJob job(1250, 8);
  job.put(4321, stack_in("load_batch", "data.py", 88));
  for (int rank = 0; rank < 100; ++rank) job.put(rank, in_torch("all_gather"));
  const HangPicture picture(job.facts);
  const HangVerdict verdict = judge(picture);
  const std::vector<RankGroup> groups = rank_groups(picture, verdict);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].ranks.text() == "4321");
  CHECK(groups[0].is_odd);
  CHECK(groups[1].ranks.text() == "0-99");
  CHECK(groups[2].ranks.text() == "100-4320,4322-9999");
  CHECK(hang_json(picture, verdict, {}).dump().size() < 8'192);
}

TEST_CASE("ranks that all stand elsewhere are counted, not all told") {
  HungJob job(200, 1);
  for (int rank = 0; rank < 200; ++rank) job.put(rank, stack_in("step", "train.py", rank + 1));
  const HangPicture picture(job.facts);
  const std::string screen = hang_screen(picture, judge(picture), {});
  CHECK(std::ranges::count(screen, '\n') < 20);
  CHECK(screen.find("and 192 ranks in 192 groups more\n") != std::string::npos);
  const Json json = hang_json(picture, judge(picture), {});
  CHECK(json.find("groups")->as_array()->size() == bounds::kGroupsShown);
  CHECK(json.find("groups_left_out")->as_integer() == 200 - static_cast<std::int64_t>(bounds::kGroupsShown));
}

TEST_CASE("no control character of a worker, a node or a file reaches a report") {
  HungJob job = job_with_rank_5_behind();
  const std::string evil = "\x1b[2J\x07\n\xff";
  for (NodeFacts& node : job.facts.nodes) {
    node.name += evil;
    node.nvml = {Source::kRefused, evil};
    for (Stack& stack : node.different_stacks) {
      for (Frame& frame : stack.frames) {
        frame.function += evil;
        frame.file = evil + "/" + evil;
      }
    }
    for (RankFacts& rank : node.ranks) rank.wchan = evil;
    for (Group& group : node.groups) group.name += evil;
    for (GroupFact& fact : node.group_facts) fact.operation = evil;
  }
  const HangPicture picture(job.facts);
  const HangStory told{.last_line = evil, .evidence = evil, .action = evil};
  const std::string screen = hang_screen(picture, judge(picture), told);
  const std::string json = hang_json(picture, judge(picture), told).dump();
  const auto is_control = [](char byte) {
    return byte != '\n' && (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f);
  };
  CHECK(std::ranges::none_of(screen, is_control));
  CHECK(screen.find('\xff') == std::string::npos);
  CHECK(json.find("\\u001b") == std::string::npos);
  CHECK(std::ranges::none_of(json, is_control));
}

}  // namespace elastic::hang
