#include "rendezvous/coordinator/hang_desk.h"

#include <doctest/doctest.h>

#include "rendezvous/coordinator/hang_desk_test_support.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/test_messages.h"

namespace elastic::coordinator {
namespace {

using namespace protocol;
using testing::Answer;
using testing::job_terms;
using testing::kLimitMs;
using testing::kSuspectMs;
using testing::NextLeader;
using testing::report_of;
using testing::Watched;
using testing::watching;

TEST_CASE("a job that makes no progress for its limit is judged by the evidence of all its nodes, which all are told") {
  Watched job(2);
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 118);
  const CollectEvidence order = job.hang();
  CHECK(order.limit_ms == kLimitMs);
  CHECK(order.silent_ms >= kSuspectMs);
  CHECK(job.tells(1, order).all<HangTold>().empty());
  const auto told = job.tells(2, order).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].second == told[1].second);
  const HangTold& verdict = told[0].second;
  CHECK(verdict.what == HangTold::What::kVerdict);
  CHECK(verdict.text.find("rank 3 (node node2)") != std::string::npos);
  CHECK(verdict.text.find("load_batch") != std::string::npos);
  CHECK(verdict.text.find("step 118 (megatron)\", rank 0") != std::string::npos);
  const Json report = report_of(verdict);
  CHECK(report.find("verdict")->find("rule")->as_integer() == 8);
  CHECK(report.find("culprits")->as_array()->front().find("rank")->as_integer() == 3);
  CHECK(*report.find_text("limit_from") == "flag");
  CHECK(job.coordinator.hang().status(job.now_ms).state == hang::HangState::kJudged);
  // The hang is told once, and no worker is stopped.
  const Answer later = job.wait(60'000);
  CHECK(later.all<HangTold>().empty());
  CHECK(later.all<StopWorkers>().empty());
}

TEST_CASE("of two steps that are as old as each other the greater one was the last") {
  Watched job(2);
  job.step(1, 117);
  job.step(1, 118);
  job.step(2, 118, 1);  // ages are rounded
  job.step(1, 119, 2);
  job.step(2, 50, 6);
  const auto told = job.all_tell(job.hang()).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(*report_of(told[0].second).find_text("last_line") == "step 119 (megatron)");
}

TEST_CASE("progress after the verdict is told once, and a job that hangs again is judged again") {
  Watched job(2);
  job.step(1, 1);
  job.all_tell(job.hang());
  const auto over = job.step(2, 2).all<HangOver>();
  REQUIRE(over.size() == 2);
  CHECK(over[0].second.why == HangOver::Why::kRecovered);
  CHECK(over[0].second.after_ms >= kSuspectMs);
  CHECK(job.step(2, 3).all<HangOver>().empty());
  CHECK(job.coordinator.hang().status(job.now_ms).recovered == 1);
  CHECK(job.coordinator.hang().status(job.now_ms).last->is_over);
  const CollectEvidence again = job.hang();
  CHECK(again.collection == 2);
  CHECK(job.all_tell(again).all<HangTold>().size() == 2);
  CHECK(job.coordinator.hang().status(job.now_ms).told == 2);
}

TEST_CASE("progress that returns while evidence is collected withdraws the alarm") {
  Watched job(2);
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  CHECK(job.tells(1, order).all<HangTold>().empty());
  const Answer moves = job.step(2, 2);
  const auto over = moves.all<HangOver>();
  REQUIRE(over.size() == 2);
  CHECK(over[0].second.why == HangOver::Why::kWithdrawn);
  // Later evidence is of a collection that is over.
  CHECK(job.tells(2, order).all<HangTold>().empty());
  CHECK(job.tells(1, order).all<HangTold>().empty());
  CHECK(job.coordinator.hang().status(job.now_ms).state == hang::HangState::kArmed);
  CHECK(job.coordinator.hang().status(job.now_ms).told == 0);
  CHECK(job.coordinator.hang().status(job.now_ms).withdrawn == 1);
  CHECK(job.all_tell(job.hang()).all<HangTold>().size() == 2);
}

TEST_CASE("progress that is older than the newest one withdraws no alarm") {
  Watched job(2);
  job.step(1, 5);
  const CollectEvidence order = job.hang();
  CHECK(job.step(2, 4, job.now_ms + 1'000).all<HangOver>().empty());
  CHECK(job.all_tell(order).all<HangTold>().size() == 2);
}

TEST_CASE(
    "a job that shows no progress but moves does not hang: it is looked at again when the limit has passed again") {
  Watched job(2);
  job.facts = hang::HungJob(2, 2, hang::stack_in("evaluate", "eval.py", 7));
  for (int rank = 0; rank < 4; ++rank) {
    const auto then = job.facts.rank(rank).stack;
    job.facts.put(rank, hang::stack_in("evaluate", "eval.py", 8)).stack_then = then;
  }
  job.step(1, 1);
  const Answer answer = job.all_tell(job.hang());
  CHECK(answer.all<HangTold>().empty());
  const auto over = answer.all<HangOver>();
  REQUIRE(over.size() == 2);
  CHECK(over[0].second.why == HangOver::Why::kWithdrawn);
  CHECK(job.wait(kLimitMs + 4'800).all<CollectEvidence>().empty());
  const auto again = job.wait(400).all<CollectEvidence>();
  REQUIRE(again.size() == 2);
  for (int rank = 0; rank < 4; ++rank) job.facts.rank(rank).stack_then = job.facts.rank(rank).stack;
  CHECK(job.all_tell(again[0].second).all<HangTold>().size() == 2);
}

TEST_CASE("a node that sends no evidence is waited for, and is not the culprit") {
  Watched job(2);
  job.facts.put(1, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  CHECK(order.within_ms < 20'000);
  job.tells(1, order);
  CHECK(job.wait(19'000).all<HangTold>().empty());
  const auto told = job.wait(1'100).all<HangTold>();
  REQUIRE(told.size() == 2);
  const Json report = report_of(told[0].second);
  CHECK(report.find("verdict")->find("rule")->as_integer() == 11);
  CHECK(*report.find_text("without_evidence") == "2-3");
  CHECK(job.tells(2, order).silent());
}

TEST_CASE("evidence that cannot be read is none") {
  Watched job(2);
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  job.tells(1, order);
  const auto told = job.say(2, NodeEvidence{order.round, order.collection, "hostile"}).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(*report_of(told[0].second).find_text("without_evidence") == "2-3");
}

TEST_CASE("a node cannot speak for another node's ranks, or under another name") {
  Watched job(2);
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  hang::NodeFacts& hostile = job.facts.facts.nodes[1];
  hostile.name = "node1";
  hostile.own_ranks = hang::RankRuns::all(4);
  hostile.lost = "its lease is over";
  hostile.ranks[0].rank = 0;
  hostile.ranks[0].state = hang::ThreadState::kStopped;
  const auto told = job.all_tell(order).all<HangTold>();
  REQUIRE(told.size() == 2);
  const Json report = report_of(told[0].second);
  CHECK(report.find("verdict")->find("rule")->as_integer() != 1);
  CHECK(report.find("verdict")->find("rule")->as_integer() != 4);
  CHECK(*report.find_text("without_evidence") == "2");
}

TEST_CASE("a job of one node that gives itself no name is told with the name that its evidence has") {
  testing::Job job(job_terms(1, 1), watching());
  NodeJoins joins = job.joiner(1, 2);
  joins.address.clear();
  job.say(1, joins);
  job.open_store();
  job.say(1, NodeProgress{0, {.rank = 0, .step = 1}, {}, 1});
  const auto asked = job.pass_with({1}, kSuspectMs + 100).all<CollectEvidence>();
  REQUIRE(asked.size() == 1);
  hang::HungJob facts(1, 2);
  facts.rank(1).state = hang::ThreadState::kStopped;
  const auto told =
      job.say(1, NodeEvidence{0, asked[0].second.collection, encode_facts(facts.facts.nodes[0])}).only<HangTold>();
  CHECK(told.text.find("rank 1 (node gpu-0)") != std::string::npos);
}

TEST_CASE("storage that stands is told when it has stood for four times the limit") {
  Watched job(2);
  job.facts.put_all(hang::stack_in("_save", "torch/serialization.py", 900));
  job.step(1, 1);
  const CollectEvidence first = job.hang();
  CHECK(job.all_tell(first).all<HangTold>().empty());
  CHECK(job.wait(2 * kLimitMs).all<CollectEvidence>().empty());
  const auto again = job.wait(kLimitMs + 5'100).all<CollectEvidence>();
  REQUIRE(again.size() == 2);
  const auto told = job.all_tell(again[0].second).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(report_of(told[0].second).find("verdict")->find("rule")->as_integer() == 2);
}

TEST_CASE("a job is not watched before its first progress, which is told once, unless a first limit is given") {
  Watched job(2);
  const auto told = job.wait(4'000).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].second.what == HangTold::What::kNotArmed);
  CHECK(told[0].second.report.empty());
  const Answer later = job.wait(600'000);
  CHECK(later.all<HangTold>().empty());
  CHECK(later.all<CollectEvidence>().empty());

  JobRules rules = watching();
  rules.hang_first_timeout_ms = 10'000;
  Watched first(2, rules);
  CHECK(first.wait(14'900).all<CollectEvidence>().empty());
  CHECK(first.wait(200).all<CollectEvidence>().size() == 2);
}

TEST_CASE("the limit is that of the section in which the rank is that has been silent the longest") {
  JobRules rules = watching();
  rules.hang_sections = {{"checkpointing", 60'000}, {"step", 20'000}};
  Watched job(2, rules);
  const auto in = [&](NodeId session, const char* section, std::int64_t age_ms) {
    const int rank = 2 * static_cast<int>(session - 1);
    const ProgressOfRank newest{.rank = rank + 1, .source = progress::Source::kNvrx, .section = "of the other rank"};
    const ProgressOfRank oldest{.rank = rank, .age_ms = age_ms, .source = progress::Source::kNvrx, .section = section};
    job.say(session, NodeProgress{*job.coordinator.round(), newest, oldest, 2});
  };
  // Rank 0 saves, and rank 2 is in the next step already.
  in(1, "checkpointing", 0);
  job.wait(1'000);
  in(2, "step", 0);
  CHECK(job.wait(64'900).all<CollectEvidence>().empty());
  const auto asked = job.wait(200).all<CollectEvidence>();
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].second.limit_ms == 60'000);
  const auto told = job.all_tell(asked[0].second).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].second.text.starts_with("no progress for "));
  CHECK(told[0].second.text.find("limit of section \"checkpointing\", in which rank 0 is: 60.0 s") !=
        std::string::npos);
  CHECK(*report_of(told[0].second).find_text("section") == "checkpointing");
  // Rank 0 goes on: now rank 2 has been silent the longest.
  in(1, "step", 0);
  const auto next = job.wait(25'100).all<CollectEvidence>();
  REQUIRE(next.size() == 2);
  CHECK(next[0].second.limit_ms == 20'000);
  // Between sections the limit of the job holds.
  in(1, "", 0);
  in(2, "", 0);
  CHECK(job.wait(kSuspectMs + 100).all<CollectEvidence>().at(0).second.limit_ms == kLimitMs);
}

TEST_CASE("a phase that begins in the millisecond in which the one before ends is progress") {
  // The second report travels as fast as the first one, or 2 ms faster.
  for (const std::int64_t faster_ms : {0, 2}) {
    Watched job(2, watching(std::nullopt));
    const auto tell = [&](NodeId session, progress::Phase phase, std::int64_t age_ms) {
      const ProgressOfRank made{
          .rank = job.first_rank(session), .age_ms = age_ms, .source = progress::Source::kNvrx, .phase = phase};
      job.say(session, NodeProgress{*job.coordinator.round(), made, made, 1});
    };
    for (int i = 0; i < 20; ++i) {
      job.wait(10'000);
      tell(1, progress::Phase::kTrain, 0);
    }
    job.wait(5'000);
    tell(1, progress::Phase::kCheckpoint, 5'000 + faster_ms);
    CHECK(job.coordinator.hang().status(job.now_ms).phase == hang::Phase::kCheckpoint);
    CHECK(job.coordinator.hang().status(job.now_ms).silent_ms == 5'000);
    // A minute is too long for a step, but not for the first checkpoint.
    CHECK(job.wait(120'000).all<CollectEvidence>().empty());
    // Of another node it is not known whether its progress of that millisecond is later.
    tell(2, progress::Phase::kTrain, 125'000);
    CHECK(job.coordinator.hang().status(job.now_ms).phase == hang::Phase::kCheckpoint);
  }
}

TEST_CASE("a section that begins in the millisecond in which the one before ends has its limit") {
  JobRules rules = watching();
  rules.hang_sections = {{"step", 2'000}};
  Watched job(2, rules);
  const auto tell = [&](const char* section, std::int64_t age_ms) {
    const ProgressOfRank made{.rank = 0, .age_ms = age_ms, .source = progress::Source::kNvrx, .section = section};
    return job.say(1, NodeProgress{*job.coordinator.round(), made, made, 1});
  };
  tell("", 0);
  job.wait(5'000);
  tell("step", 5'000);
  const auto asked = job.wait(kSuspectMs).all<CollectEvidence>();
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].second.limit_ms == 2'000);
}

TEST_CASE("a job hangs in a section with a limit of its own on good grounds: it is given") {
  JobRules rules = watching(std::nullopt);
  rules.hang_restarts = 3;
  rules.hang_sections = {{"step", 20'000}};
  Watched job(2, rules);
  const ProgressOfRank made{.rank = 0, .source = progress::Source::kNvrx, .section = "step"};
  job.say(1, NodeProgress{*job.coordinator.round(), made, made, 1});
  const auto asked = job.wait(25'100).all<CollectEvidence>();
  REQUIRE(asked.size() == 2);
  CHECK(job.all_tell(asked[0].second).all<StopWorkers>().size() == 2);
}

TEST_CASE("without a limit of the user the limit is learned") {
  Watched job(2, watching(std::nullopt));
  for (int i = 0; i < 5; ++i) {
    job.step(1, i);
    job.wait(20'000);
  }
  job.step(1, 5);
  CHECK(job.wait(104'000).all<CollectEvidence>().empty());
  CHECK(job.wait(1'200).all<CollectEvidence>().size() == 2);
}

TEST_CASE("a fact that speaks for itself shortens the wait while it holds") {
  JobRules rules = watching(600'000);
  Watched job(2, rules);
  job.step(1, 1);
  job.wait(1'000);
  job.say(2, HangSigns{.round = 0, .facts = {.is_stopped = true}});
  CHECK(job.wait(9'000).all<CollectEvidence>().empty());
  job.say(2, HangSigns{.round = 0});
  CHECK(job.wait(30'000).all<CollectEvidence>().empty());
  job.say(2, HangSigns{.round = 0, .facts = {.is_stopped = true}});
  job.say(1, HangSigns{.round = 0, .facts = {.is_stopped = true}});
  job.say(1, HangSigns{.round = 0});  // node 2 still has a stopped worker
  CHECK(job.wait(15'100).all<CollectEvidence>().size() == 2);
}

TEST_CASE("disks that move stretch the limit") {
  Watched job(2);
  job.step(1, 1);
  job.wait(1'000);
  job.say(2, HangSigns{.round = 0, .disks_move = true});
  CHECK(job.wait(60'000).all<CollectEvidence>().empty());
  job.step(1, 2);
  job.hang();
}

TEST_CASE("a job that hangs is not judged when its round is stopped, and the next round is watched anew") {
  Watched job(2);
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  job.fail(1, testing::failure(0, 1));
  job.stop(1, {testing::failure(0, 1)});
  job.stop(2);
  CHECK(job.coordinator.round() == 1);
  CHECK(job.coordinator.hang().round() == std::nullopt);
  job.open_store();
  CHECK(job.all_tell(order).silent());
  job.step(1, 1);
  CHECK(job.hang().round == 1);
}

TEST_CASE("with --hang=off nothing is watched") {
  Watched job(2, JobRules{});
  job.step(1, 1);
  job.say(2, HangSigns{.round = 0, .facts = {.is_stopped = true}});
  CHECK(job.wait(400'000).silent());
  CHECK(job.say(1, NodeEvidence{0, 0, ""}).silent());
}

TEST_CASE("a node with other flags about hangs than the job's first node is named, and the first node's hold") {
  testing::Job job(job_terms(3, 3), watching());
  job.join(1);
  const auto notes_for = [&](const JobRules& rules) {
    NodeJoins joins = job.joiner(2);
    joins.rules = rules;
    std::string texts;
    for (const Effect& effect : job.say(2, joins).effects) {
      const auto* note = std::get_if<Note>(&effect);
      if (note != nullptr && note->event == kRulesDiffer) texts += note->text;
    }
    job.on(SessionEnded{2, "reset"});
    return texts;
  };
  CHECK(notes_for(watching()) == "");
  CHECK(notes_for(watching(60'000)).find("--hang-timeout 3 s, not 60 s") != std::string::npos);
  CHECK(notes_for(JobRules{}).find("--hang=report, not off") != std::string::npos);
}

TEST_CASE("a report of many groups fits into one message") {
  Watched job(2);
  job.step(1, 1);
  const CollectEvidence order = job.hang();
  const std::string name(hang::bounds::kNameBytes, 'x');
  for (int rank = 0; rank < 4; ++rank) {
    hang::Stack stack;
    for (std::size_t i = 0; i < hang::bounds::kFrames; ++i) stack.frames.push_back({name, name, rank});
    job.facts.put(rank, stack).stack_then.reset();
  }
  const auto told = job.all_tell(order).all<HangTold>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].second.report.size() <= limits::kHangReportBytes);
  CHECK(report_of(told[0].second).find("groups")->as_array()->size() == 4);
}

TEST_CASE("a coordinator that takes over while evidence is collected collects it anew") {
  Watched job(2);
  job.facts.put(3, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  const Answer asked = job.wait(kSuspectMs + 100);
  const auto kept = asked.all<KeepState>();
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].second.transferred.number > 0);
  NextLeader after(job, kept[0].second.transferred);
  const auto again = after.answer.all<CollectEvidence>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].second.silent_ms >= kSuspectMs);
  // Evidence for the coordinator before is no answer.
  const CollectEvidence before = asked.all<CollectEvidence>().front().second;
  for (const NodeId session : job.sessions) {
    const NodeEvidence late{before.round, before.collection, encode_facts(job.facts_of_node(session))};
    CHECK(after.next.say(session, late).all<HangTold>().empty());
  }
  Answer last;
  for (const NodeId session : job.sessions) {
    last = after.next.say(session, NodeEvidence{again[0].second.round, again[0].second.collection,
                                                encode_facts(job.facts_of_node(session))});
  }
  CHECK(last.all<HangTold>().size() == 2);
}

TEST_CASE(
    "of 10,000 ranks the one that is behind is found, or nobody, though evidence is lost and the coordinator dies") {
  constexpr int kNodes = 1'250;
  Watched job(kNodes, watching(), 8);
  const int culprit = 4'711;
  job.facts.put(culprit, hang::stack_in("load_batch", "data.py", 88));
  job.step(1, 1);
  Answer asked;
  for (int second = 0; second < 8 && asked.all<KeepState>().empty(); ++second) {
    for (const NodeId session : job.sessions) job.on(KeepAliveReceived{session});
    asked = job.pass(1'000);
  }
  REQUIRE(asked.all<CollectEvidence>().size() == kNodes);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    protocol::test::Dice dice(seed);
    NextLeader after(job, asked.all<KeepState>().front().second.transferred);
    const auto again = after.answer.all<CollectEvidence>();
    REQUIRE(again.size() == kNodes);
    const bool hears_of_culprit = seed != 3;
    for (const NodeId session : job.sessions) {
      const bool is_culprits = job.first_rank(session) / 8 == culprit / 8;
      if (is_culprits ? !hears_of_culprit : dice.number() % 20 == 0) continue;
      after.next.say(session, NodeEvidence{again[0].second.round, again[0].second.collection,
                                           encode_facts(job.facts_of_node(session))});
    }
    std::vector<std::pair<NodeId, HangTold>> told;
    for (int second = 0; second < 25 && told.empty(); ++second) {
      after.next.keep_alive(job.sessions);
      told = after.next.pass(1'000).all<HangTold>();
    }
    REQUIRE(told.size() == kNodes);
    CHECK(told[0].second.report.size() <= limits::kHangReportBytes);
    const Json report = report_of(told[0].second);
    const auto& culprits = *report.find("culprits")->as_array();
    CHECK(culprits.size() == (hears_of_culprit ? 1U : 0U));
    if (!culprits.empty()) CHECK(culprits.front().find("rank")->as_integer() == culprit);
  }
}

TEST_CASE("a coordinator that takes over a round without an alarm watches it, from then on") {
  Watched job(2);
  const auto kept = job.step(1, 1).all<KeepState>();
  REQUIRE(kept.size() == 2);
  CHECK(job.step(1, 2).all<KeepState>().empty());
  // There may have been progress all the time since.
  NextLeader after(job, kept[0].second.transferred, 3'600'000);
  CHECK(after.next.pass_with(job.sessions, kSuspectMs - 100).all<CollectEvidence>().empty());
  CHECK(after.next.pass_with(job.sessions, 200).all<CollectEvidence>().size() == 2);
}

TEST_CASE("the time between two coordinators is no gap that is learned") {
  Watched job(2, watching(std::nullopt));
  const auto kept = job.step(1, 1).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader after(job, kept[0].second.transferred, 3'600'000);
  const ProgressOfRank made{.rank = 0, .step = 2, .phase = progress::Phase::kTrain};
  after.next.say(1, NodeProgress{*job.coordinator.round(), made, made, 1});
  CHECK(after.next.coordinator.hang().status(after.next.now_ms).limit ==
        hang::Limit{60'000, hang::LimitFrom::kLearned});
}

TEST_CASE("a coordinator that takes over after the verdict does not tell it again, but that the job has recovered") {
  Watched job(2);
  job.step(1, 1);
  const auto kept = job.all_tell(job.hang()).all<KeepState>();
  REQUIRE(kept.size() == 2);
  NextLeader after(job, kept[0].second.transferred, 1'000);
  CHECK(after.next.pass_with(job.sessions, 60'000).all<CollectEvidence>().empty());
  const ProgressOfRank made{.rank = 0, .step = 2};
  const auto over = after.next.say(1, NodeProgress{*job.coordinator.round(), made, made, 1}).all<HangOver>();
  REQUIRE(over.size() == 2);
  CHECK(over[0].second.why == HangOver::Why::kRecovered);
}

TEST_CASE("what was learned goes to the next round and the next coordinator") {
  Watched job(2, watching(std::nullopt));
  for (int i = 0; i < 3; ++i) {
    job.step(1, i);
    job.wait(20'000);
  }
  job.step(1, 4);
  job.fail(1, testing::failure(0, 1));
  job.stop(1, {testing::failure(0, 1)});
  const Transferred transferred = job.stop(2).all<PrepareRound>().at(0).second.transferred;
  job.open_store();
  NextLeader after(job, transferred);
  const ProgressOfRank made{.rank = 0, .step = 1, .phase = progress::Phase::kTrain};
  after.next.say(1, NodeProgress{1, made, made, 1});
  const auto limit = after.next.coordinator.hang().status(after.next.now_ms).limit;
  REQUIRE(limit);
  CHECK(limit->from == hang::LimitFrom::kLearned);
  CHECK(limit->limit_ms == 100'000);
}

}  // namespace
}  // namespace elastic::coordinator
