#include "health/hang/hang_judge.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>

#include "health/hang/hang_test_support.h"

namespace elastic::hang {
namespace {

const Stack kLoadsBatch = stack_in("load_batch", "data.py", 88);

// What a verdict comes down to: "7 soft 5".
std::string in_short(const HangVerdict& verdict) {
  return std::to_string(verdict.rule) + " " + names_of(Fault{})[static_cast<std::size_t>(verdict.fault)] + " " +
         blamed(verdict);
}
std::string in_short(const HungJob& job) { return in_short(job.judged()); }

}  // namespace

TEST_CASE("the rules are numbered in their order, and each says what it looks at and who is at fault") {
  int number = 0;
  std::set<std::string_view> names;
  for (const HangRule& rule : hang_rules()) {
    CHECK(rule.number == ++number);
    CHECK(names.insert(rule.name).second);
    for (const std::string_view text : {rule.name, rule.fact, rule.at_fault, rule.example}) CHECK(!text.empty());
  }
  CHECK(number == 11);
}

// --- 1: node lost ---

TEST_CASE("rule 1: a node whose session is lost is at fault, whatever its last facts were") {
  HungJob job(2, 2);
  job.lose_evidence(1);
  CHECK(in_short(job) == "11 none nobody");
  job.facts.nodes[1].lost = "its connection was reset";
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "1 hard gpu-1");
  CHECK(verdict.cause == "node gpu-1: its connection was reset");
  CHECK(verdict.without_evidence.text() == "2-3");
}

TEST_CASE("rule 1: where most nodes are lost, it may be this side that is cut off, and nobody is named") {
  HungJob job(3, 1);
  job.facts.nodes[1].lost = job.facts.nodes[2].lost = "its connection was reset";
  CHECK(in_short(job) == "1 none nobody");
}

TEST_CASE(
    "rule 1: a node that NCCL does not reach is at fault, if all its ranks are missing and fewer than half of the "
    "nodes are") {
  HungJob job(3, 2);
  job.count_by_ras(90);
  job.facts.nodes[0].ras->missing = RankRuns::of({2, 3});
  CHECK(in_short(job) == "1 hard gpu-1");
  job.facts.nodes[0].ras->missing = RankRuns::of({2});
  CHECK(in_short(job) == "10 none nobody");
  job.facts.nodes[0].ras->missing = RankRuns::of({2, 3, 4, 5});
  CHECK(in_short(job) == "10 none nobody");
  job.facts.nodes[0].ras->missing = RankRuns::of({2, 3});
  job.rank(3).state = ThreadState::kStopped;  // why RAS does not hear from it
  CHECK(in_short(job) == "4 soft 3");
}

// --- 2: storage ---

TEST_CASE(
    "rule 2: ranks of two nodes that save are nobody's fault, and neither is rank 0 alone where all others wait") {
  HungJob job(3, 2);
  job.put(2, stack_in("save_checkpoint"));
  CHECK(in_short(job) == "8 soft 2");
  job.put(5, stack_in("save_checkpoint"));
  CHECK(in_short(job) == "2 none nobody");
  HungJob first(3, 2, in_torch("barrier"));
  first.put(0, stack_in("save"));
  const HangVerdict verdict = first.judged();
  CHECK(in_short(verdict) == "2 none nobody");
  CHECK(verdict.is_storage());
  CHECK(verdict.cause == "rank 0 (node gpu-0) is at storage, in save train.py:150");
  CHECK(verdict.others == "5 ranks in barrier");
}

TEST_CASE(
    "rule 2: workers of two nodes in D in a network file system are nobody's fault, on one node they are the node's") {
  HungJob job(3, 2);
  for (const int rank : {2, 4}) {
    job.rank(rank).state = ThreadState::kDisk;
    job.rank(rank).wchan = "rpc_wait_bit_killable";
    CHECK(in_short(job) == (rank == 2 ? "3 hard gpu-1" : "2 none nobody"));
  }
  HungJob children(3, 2);
  children.facts.nodes[0].storage_hangs = children.facts.nodes[2].storage_hangs = true;
  CHECK(in_short(children) == "2 none nobody");
}

TEST_CASE("rule 2: a job of one node whose ranks all save waits for its storage") {
  HungJob job(1, 3);
  job.put_all(stack_in("save_checkpoint"));
  CHECK(in_short(job) == "2 none nobody");
}

TEST_CASE("rule 2: what one rank does at its storage is not held against it while others are not seen") {
  HungJob saves(4, 1);
  saves.put(2, stack_in("save_checkpoint"));
  CHECK(in_short(saves) == "8 soft 2");
  saves.rank(1).stack.reset();
  CHECK(in_short(saves) == "11 none nobody");
  HungJob waits(4, 1);
  waits.rank(2).state = ThreadState::kDisk;
  waits.rank(2).wchan = "nfs_wait_bit_killable";
  CHECK(in_short(waits) == "3 hard gpu-2");
  waits.lose_evidence(1);
  CHECK(in_short(waits) == "11 none nobody");
}

// --- 3: hardware ---

TEST_CASE("rule 3: an Xid, a GPU that has gone, a driver that does not answer and a wait in D accuse their node") {
  const std::vector<std::function<void(NodeFacts&)>> faults = {[](NodeFacts& node) { node.xid = 79; },
                                                               [](NodeFacts& node) { node.nvml.state = Source::kLost; },
                                                               [](NodeFacts& node) { node.nvml.state = Source::kLate; },
                                                               [](NodeFacts& node) {
                                                                 node.ranks[1].state = ThreadState::kDisk;
                                                                 node.ranks[1].state_ms = 10'000;
                                                                 node.ranks[1].wchan = "kernel_clone";
                                                               }};
  for (const auto& fault : faults) {
    HungJob job(4, 2);
    fault(job.facts.nodes[2]);
    CHECK(in_short(job) == "3 hard gpu-2");
    fault(job.facts.nodes[1]);
    CHECK(in_short(job) == "10 none nobody");  // half of the nodes
  }
  HungJob job(4, 2);
  faults[3](job.facts.nodes[2]);
  CHECK(job.judged().cause == "node gpu-2: rank 5 cannot be interrupted (state D) since 10 s, in kernel_clone");
  CHECK(job.judged().odd.text() == "5");
  job.facts.nodes[2].ranks[1].state_ms = 9'999;
  CHECK(in_short(job) == "10 none nobody");
  CHECK(in_short(job.judged({.disk_wait_ms = 1'000})) == "3 hard gpu-2");
}

TEST_CASE("rule 3: a source that was not asked, or was refused, accuses nobody") {
  HungJob job(3, 1);
  for (const Source state : {Source::kNotAsked, Source::kHad, Source::kRefused}) {
    job.facts.nodes[1].nvml.state = state;
    CHECK(in_short(job) == "10 none nobody");
  }
}

// --- 4: stopped ---

TEST_CASE("rule 4: a worker that is stopped is at fault, and where most nodes have one nobody is") {
  HungJob job(3, 2);
  job.rank(5).state = ThreadState::kStopped;
  CHECK(in_short(job) == "4 soft 5");
  CHECK(job.judged().remedy == "continue it with SIGCONT");
  job.rank(3).state = ThreadState::kStopped;
  CHECK(in_short(job) == "10 none nobody");
}

// --- 5: not at init ---

TEST_CASE("rule 5: a rank whose key others wait for has not come to init, by the store alone") {
  HungJob job(3, 1);
  job.forget_stacks();
  job.facts.nodes[0].store = StoreFacts{.absent = RankRuns::of({1}), .waiting = RankRuns::of({0, 2})};
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "5 soft 1");
  CHECK(verdict.cause == "rank 1 (node gpu-1) has not come to init_process_group");
  CHECK(verdict.others == "ranks 0,2 wait in the store for it");
  job.facts.nodes[0].store->waiting = {};
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("rule 5: of a rank that waits in the store itself it is told for which key") {
  HungJob job(3, 1);
  job.forget_stacks();
  job.facts.nodes[0].store = StoreFacts{.absent = RankRuns::of({1}),
                                        .waiting = RankRuns::of({0, 2}),
                                        .waits = {{.key = "mine", .ranks = RankRuns::of({1}), .clients = 1}}};
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "5 soft 1");
  CHECK(verdict.culprits[0].why == "it has not come to init_process_group, and waits in the store for the key mine");
}

TEST_CASE("rule 5: where most ranks have not come, none of them is named, and neither is one that is gone") {
  HungJob job(3, 1);
  job.facts.nodes[0].store = StoreFacts{.absent = RankRuns::of({1, 2}), .waiting = RankRuns::of({0})};
  CHECK(in_short(job) == "5 none nobody");
  job.facts.nodes[0].store->absent = RankRuns::of({1});
  job.rank(1).state = ThreadState::kGone;
  CHECK(in_short(job) == "10 none nobody");
}

// --- 6: mismatch ---

TEST_CASE(
    "rule 6: the same collective by number with another operation is the script's fault, and the minority is shown") {
  HungJob job(4, 1);
  job.record(12);
  job.recorded(2).operation = "broadcast";
  HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "6 script nobody");
  CHECK(verdict.odd.text() == "2");
  CHECK(verdict.others == "rank 2 in broadcast; ranks 0-1,3 in all_reduce");
  job.recorded(3).operation = "broadcast";
  verdict = job.judged();
  CHECK(in_short(verdict) == "6 script nobody");
  CHECK(verdict.odd.empty());
  HungJob sizes(4, 1);
  sizes.record(12);
  sizes.recorded(2).digest = 8;
  CHECK(in_short(sizes) == "6 script nobody");
}

TEST_CASE("rule 6: ranks that wait for each other are the script's fault") {
  HungJob job(2, 1);
  job.record(12);
  for (NodeFacts& node : job.facts.nodes) {
    const int rank = node.ranks[0].rank;
    node.groups.push_back({"dp_0", RankRuns::all(2)});
    node.group_facts.push_back({.group = 1, .ranks = RankRuns::of({rank}), .enqueued = 5, .retired = 5});
  }
  job.let_lag(0);
  job.facts.nodes[0].group_facts[1].enqueued = 6;
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "6 script nobody");
  CHECK(verdict.odd.text() == "0-1");
}

TEST_CASE("rule 6: by stacks all ranks must be seen in collectives that are not the same") {
  HungJob job(4, 1);
  job.put(1, in_torch("broadcast"));
  job.put(3, in_torch("broadcast"));
  CHECK(in_short(job) == "6 script nobody");
  CHECK(job.judged().odd.empty());
  job.lose_evidence(2);
  CHECK(in_short(job) == "11 none nobody");
  HungJob pipeline(4, 1);
  pipeline.put(1, in_torch("recv"));
  CHECK(in_short(pipeline) == "11 none nobody");
}

// --- 7: behind ---

TEST_CASE("rule 7: a rank that is behind and waits for nobody is at fault, and its stack says where it is") {
  HungJob job(4, 2);
  job.record(1904);
  job.let_lag(5);
  job.put(5, kLoadsBatch);
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "7 soft 5");
  CHECK(verdict.cause == "rank 5 (node gpu-2) is not in the collective that others wait in");
  CHECK(verdict.others == "7 ranks in all_reduce number 1904 of group \"tp_0\"; rank 5 has launched 1903");
  CHECK(verdict.culprits[0].why ==
        "it has launched 1903 collectives of group \"tp_0\", and others wait in number 1904, and is in load_batch "
        "data.py:88");
}

TEST_CASE("rule 7: RAS is enough, and so is the recorder without stacks") {
  HungJob job(4, 2);
  job.forget_stacks();
  job.count_by_ras(90, RankRuns::of({6}));
  CHECK(in_short(job) == "7 soft 6");
  HungJob recorded(4, 2);
  recorded.forget_stacks();
  recorded.record(90);
  recorded.let_lag(6);
  CHECK(in_short(recorded) == "7 soft 6");
}

TEST_CASE("rule 7: of two ranks the one that is behind is at fault, and of four no half is") {
  HungJob two(2, 1);
  two.record(9);
  two.put(1, kLoadsBatch);
  two.let_lag(1);
  CHECK(in_short(two) == "7 soft 1");
  HungJob four(4, 1);
  four.record(9);
  for (const int rank : {1, 3}) {
    four.put(rank, kLoadsBatch);
    four.let_lag(rank);
  }
  CHECK(in_short(four) == "11 none nobody");
}

TEST_CASE("rule 7: the ranks of one node may be behind together, if they are fewer than half") {
  HungJob job(3, 2);
  job.record(9);
  for (const int rank : {2, 3}) {
    job.put(rank, kLoadsBatch);
    job.let_lag(rank);
  }
  CHECK(in_short(job) == "7 soft 2,3");
}

TEST_CASE("rule 7: a rank behind that stands in a collective waits where nobody has counted, and is not named") {
  HungJob job(4, 1);
  job.record(9);
  job.let_lag(2);
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("rule 7: where stacks are read, a rank behind whose own stack is lost is not named") {
  HungJob job(4, 1);
  job.record(9);
  job.let_lag(2);
  job.rank(2).stack.reset();
  CHECK(in_short(job) == "11 none nobody");
  job.forget_stacks();
  CHECK(in_short(job) == "7 soft 2");
}

TEST_CASE("rule 7: a rank that waits for one of which nothing is known is not named for what that one does") {
  // dp pairs {0,2} {1,3}; tp pairs {0,1} {2,3}. Rank 3 is the culprit; rank 2 waits for it, and rank 0 for rank 2.
  HungJob job(4, 1);
  for (NodeFacts& node : job.facts.nodes) {
    const int rank = node.ranks[0].rank;
    node.ranks[0].recorder = {Source::kHad};
    node.groups = {{"tp", RankRuns::of({rank / 2 * 2, rank / 2 * 2 + 1})},
                   {"dp", RankRuns::of({rank % 2, rank % 2 + 2})}};
    node.group_facts = {{.group = 0, .ranks = RankRuns::of({rank}), .enqueued = 9, .retired = rank == 2 ? 8 : 9},
                        {.group = 1, .ranks = RankRuns::of({rank}), .enqueued = rank < 2 ? 5 : 4, .retired = 4}};
  }
  job.facts.nodes[3].group_facts[0] = {.group = 0, .ranks = RankRuns::of({3}), .enqueued = 8, .retired = 8};
  job.put(3, kLoadsBatch);
  CHECK(in_short(job) == "7 soft 3");
  job.lose_evidence(3);
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "11 none nobody");
  CHECK(verdict.others == "it may be rank 3, of which nothing is known");
}

// --- 8: outlier ---

namespace {

// Gloo's groups do not say who their members are: each node names those whose recorders have told of the group.
void record_without_members(HungJob& job, int but) {
  job.record(9);
  for (NodeFacts& node : job.facts.nodes) {
    node.groups = {{.name = "3", .members = node.own_ranks, .is_open = true}};
    if (!node.own_ranks.contains(but)) continue;
    node.groups.clear();
    node.group_facts.clear();
    job.rank(but).recorder = {Source::kPartial, "its dump is cut off"};
  }
}

}  // namespace

TEST_CASE("rule 8: where the recorder of one rank is of no use and groups do not tell their members, stacks decide") {
  HungJob job(3, 1);
  job.put(1, kLoadsBatch);
  record_without_members(job, 1);
  CHECK(in_short(job) == "8 soft 1");
  // The same, though the others name each other: nothing is known of rank 1, which is not in their group.
  for (NodeFacts& node : job.facts.nodes) {
    if (!node.groups.empty()) node.groups = {{"3", RankRuns::of({0, 2})}};
  }
  CHECK(in_short(job) == "8 soft 1");
}

TEST_CASE(
    "rule 8: a rank that has launched what the others wait in is not named, whatever is not known of another one") {
  HungJob job(4, 1);
  job.put(1, kLoadsBatch);
  for (NodeFacts& node : job.facts.nodes) {
    node.groups = {{"tp", RankRuns::of({0, 1})}};
    if (node.own_ranks.front() > 1) continue;
    node.ranks[0].recorder = {Source::kHad};
    node.group_facts = {{.ranks = node.own_ranks, .enqueued = 9, .retired = 8}};
  }
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("rule 8: one rank that stands elsewhere than all others, which are in a collective, is at fault") {
  HungJob job(4, 2);
  job.put(5, kLoadsBatch).child_stack = std::uint16_t{1};
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "8 soft 5");
  CHECK(verdict.cause == "rank 5 (node gpu-2) is not in the collective that others wait in");
  CHECK(verdict.others == "7 ranks in all_reduce");
  CHECK(verdict.culprits[0].why ==
        "it is not in a collective, and others are, and is in load_batch data.py:88 (a child of it in load_batch "
        "data.py:88)");
}

TEST_CASE("rule 8: of halves nobody is named, and neither of more than a tenth of many") {
  HungJob two(2, 1);
  two.put(1, kLoadsBatch);
  CHECK(in_short(two) == "11 none nobody");
  HungJob twenty(20, 1);
  twenty.put(3, kLoadsBatch);
  twenty.put(4, kLoadsBatch);
  CHECK(in_short(twenty) == "8 soft 3,4");
  twenty.put(5, kLoadsBatch);
  CHECK(in_short(twenty) == "11 none nobody");
}

TEST_CASE("rule 8: of ranks of two nodes at different places nobody is named: one may wait for the other") {
  HungJob job(20, 1);
  job.put(3, kLoadsBatch);
  job.put(4, stack_in("read_result", "pipe.py"));
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("rule 8: ranks without a stack are no outliers, and unless most ranks are seen to wait nobody is") {
  HungJob job(5, 1);
  job.put(3, kLoadsBatch);
  job.rank(1).stack.reset();
  CHECK(in_short(job) == "8 soft 3");
  job.rank(2).stack.reset();
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("rule 8: where the recorder says that all have launched the same, no line in a script counts") {
  HungJob job(4, 1);
  job.record(9);
  job.put(3, stack_in("train_step", "train.py", 151));
  CHECK(in_short(job) == "10 none nobody");
}

// --- 9, 10: odd GPU, all launched ---

TEST_CASE("rule 9: one GPU whose power is unlike all others is at fault, if all have launched the same") {
  HungJob job(4, 1);
  job.record(9);
  for (int rank = 0; rank < 4; ++rank) job.rank(rank).gpu_watts = 118 + rank;
  CHECK(in_short(job) == "10 none nobody");
  job.rank(2).gpu_watts = 400;
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "9 hard 2");
  CHECK(verdict.cause == "the GPU of rank 2 (node gpu-2) is unlike all others: 400 W, and about 121 W");
  job.rank(1).gpu_watts = 400;
  CHECK(in_short(job) == "10 none nobody");
  job.rank(1).gpu_watts.reset();
  CHECK(in_short(job) == "10 none nobody");
  job.rank(1).gpu_watts = 119;
  job.let_lag(3);
  job.put(3, kLoadsBatch);
  CHECK(in_short(job) == "7 soft 3");
}

TEST_CASE("rule 9: GPUs of several models are not compared") {
  HungJob job(4, 1);
  job.record(9);
  for (int rank = 0; rank < 4; ++rank) {
    job.rank(rank).gpu_watts = rank == 2 ? 400 : 118;
    job.rank(rank).gpu_model = 7;
  }
  CHECK(in_short(job) == "9 hard 2");
  job.rank(2).gpu_model = 8;
  CHECK(in_short(job) == "10 none nobody");
}

TEST_CASE("rule 9: of two GPUs none is the odd one, and a power that is no number does no harm") {
  HungJob job(2, 1);
  job.record(9);
  job.rank(0).gpu_watts = 100;
  job.rank(1).gpu_watts = 400;
  CHECK(in_short(job) == "10 none nobody");
  HungJob broken(4, 1);
  broken.record(9);
  for (int rank = 0; rank < 4; ++rank) broken.rank(rank).gpu_watts = rank == 0 ? 100 : std::nan("");
  CHECK(in_short(broken) == "10 none nobody");
}

TEST_CASE(
    "rule 10: all have launched the same and nothing moves, by recorder, RAS or stacks: nobody, and the links are to "
    "be checked") {
  HungJob job(4, 1);
  CHECK(in_short(job) == "10 none nobody");
  CHECK(job.judged().others == "all ranks are in all_reduce");
  job.record(9);
  CHECK(in_short(job) == "10 none nobody");
  CHECK(job.judged().others == "all members have launched all_reduce number 9, which is not over");
  job.lose_evidence(1);
  CHECK(in_short(job) == "11 none nobody");
  HungJob counted(4, 1);
  counted.forget_stacks();
  counted.count_by_ras(90);
  CHECK(in_short(counted) == "10 none nobody");
}

TEST_CASE("rule 10: ports that nodes have found inactive, or with errors, are named as what is to be looked at") {
  HungJob job(4, 1);
  job.record(9);
  job.facts.nodes[2].link_faults = {{"port 1 of mlx5_0", "is DOWN (Polling)"},
                                    {"port 1 of mlx5_1", "has counted symbol_error 12 more within 2 s"}};
  const HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "10 none nobody");
  CHECK(verdict.remedy ==
        "look at these links: port 1 of mlx5_0 of node gpu-2 is DOWN (Polling); port 1 of mlx5_1 of node gpu-2 has "
        "counted symbol_error 12 more within 2 s; then check the nodes and their links with --check-only "
        "--network-check");
  job.put(1, kLoadsBatch);
  job.let_lag(1);
  CHECK(job.judged().remedy.find("mlx5") == std::string::npos);
}

TEST_CASE(
    "rule 10: not while nothing is known of a rank of the world, whatever group says that all of it have launched") {
  HungJob job(4, 1);
  record_without_members(job, 3);
  CHECK(in_short(job) == "11 none nobody");
  for (NodeFacts& node : job.facts.nodes) {
    if (!node.groups.empty()) node.groups = {{"3", RankRuns::of({0, 1, 2})}};
  }
  CHECK(in_short(job) == "11 none nobody");
  // It has said all that it knows, and is in none of the groups that wait.
  job.rank(3).recorder = {Source::kHad};
  CHECK(in_short(job) == "10 none nobody");
}

// --- 11: unknown ---

TEST_CASE("rule 11: without evidence nobody is named, and it is said of whom it is missing") {
  HungJob job(4, 1);
  job.put(2, stack_in("train_step"));
  job.put(3, stack_in("train_step"));
  CHECK(in_short(job) == "11 none nobody");
  job.lose_evidence(1);
  HangVerdict verdict = job.judged();
  CHECK(in_short(verdict) == "11 none nobody");
  CHECK(verdict.others == "nothing is known of 1 of 4 ranks");
  CHECK(verdict.odd.text() == "1");
  for (int node = 0; node < 4; ++node) job.lose_evidence(node);
  CHECK(in_short(job) == "11 none nobody");
  CHECK(in_short(judge(HangPicture({}))) == "11 none nobody");
}

TEST_CASE("rule 11: ranks that are known to wait in the store are told with the key that they wait for") {
  HungJob job(4, 1);
  job.put_all(stack_in("get_id", "my_store.py"));
  CHECK(job.judged().others.empty());
  job.facts.nodes[0].store = StoreFacts{
      .waits = {{.key = "0", .ranks = RankRuns::of({1, 2, 3}), .clients = 3}, {.key = "mine", .clients = 1}}};
  CHECK(in_short(job) == "11 none nobody");
  CHECK(job.judged().others == "ranks 1-3 wait in the store for the key 0");
}

TEST_CASE("facts that make no sense do no harm") {
  HungJob job(2, 2);
  job.record(9);
  job.facts.nodes[1].own_ranks = {.runs = {{-5, 1'000'000}}};
  job.facts.nodes[1].ranks[0].rank = 99;
  job.facts.nodes[1].ranks[1].stack = 77;
  job.facts.nodes[0].group_facts[0].group = 1234;
  job.facts.nodes[0].groups[0].size = -7;
  job.facts.nodes[0].store = StoreFacts{.absent = {.runs = {{-9, 3'000}}}, .waiting = {.runs = {{7, 7}}}};
  CHECK(job.judged().rule > 0);
  job.facts.world_size = -3;
  CHECK(in_short(job) == "11 none nobody");
}

TEST_CASE("a verdict names no more culprits than its bound, and counts the others by their ranks") {
  HungJob job(1000, 1);
  for (int rank = 0; rank < 100; ++rank) job.put(rank, kLoadsBatch);
  const HangVerdict verdict = job.judged();
  CHECK(verdict.rule == 8);
  CHECK(verdict.culprits.size() == bounds::kCulprits);
  CHECK(verdict.odd.text() == "0-99");
}

}  // namespace elastic::hang
