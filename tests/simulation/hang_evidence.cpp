#include "tests/simulation/hang_evidence.h"

#include <array>
#include <string_view>
#include <utility>

namespace elastic::simulation {

namespace {

using hang::NodeFacts;
using hang::RankFacts;
using hang::RankRuns;
using hang::Source;
using hang::Stack;
using hang::ThreadState;

constexpr std::array<std::string_view, kHangKinds> kNames = {
    "a rank is elsewhere",   "a rank is behind",      "a rank is stopped", "a rank waits for a disk",
    "a GPU has failed",      "a rank has not come",   "storage stands",    "all have launched the same",
    "different collectives", "halves face each other"};
constexpr Ms kDiskIsFaultMs = 10'000;
constexpr std::int64_t kNumber = 9;  // of the collective that ranks wait in

Stack in_torch(std::string operation) {
  return {{{std::move(operation), "/x/torch/distributed/distributed_c10d.py", 2806}, {"train_step", "train.py", 150}}};
}
Stack in_script(std::string function, std::string file) {
  return {{{std::move(function), std::move(file), 88}, {"train_step", "train.py", 141}}};
}

// All ranks wait at one place.
NodeFacts all_in(const Reader& reader, Stack stack) {
  NodeFacts facts{.has_answered = true};
  facts.stacks = {Source::kHad};
  facts.different_stacks.push_back(std::move(stack));
  for (std::int32_t local = 0; local < reader.ranks; ++local) {
    RankFacts& rank = facts.ranks.emplace_back();
    rank.rank = reader.first_rank + local;
    rank.pid = 4000 + rank.rank;
    rank.state = ThreadState::kSleeps;
    rank.wchan = "futex_do_wait";
    rank.cpu_percent = 0;
    rank.stack = rank.stack_then = std::uint16_t{0};
  }
  return facts;
}

void put(NodeFacts& facts, RankFacts& rank, Stack stack) {
  facts.different_stacks.push_back(std::move(stack));
  rank.stack = rank.stack_then = static_cast<std::uint16_t>(facts.different_stacks.size() - 1);
}

// Each rank has launched one collective more than is over; the one that is behind has not.
void record(NodeFacts& facts, const Hang& hang) {
  facts.groups = {{"default_pg", RankRuns::all(hang.world_size)}};
  for (RankFacts& rank : facts.ranks) {
    const std::int64_t launched = rank.rank == hang.rank ? kNumber - 1 : kNumber;
    rank.recorder = {Source::kHad};
    facts.group_facts.push_back({.ranks = RankRuns::of({rank.rank}),
                                 .enqueued = launched,
                                 .retired = kNumber - 1,
                                 .operation = "all_reduce",
                                 .digest = 7});
  }
}

RankRuns all_but(std::int32_t rank, std::int32_t world_size) {
  RankRuns out;
  for (std::int32_t other = 0; other < world_size; ++other) {
    if (other != rank) out.add(other);
  }
  return out;
}

void put_culprit(NodeFacts& facts, RankFacts& rank, const Hang& hang, Ms for_ms) {
  switch (hang.kind) {
    case HangKind::kElsewhere:
    case HangKind::kBehind:
      put(facts, rank, in_script("load_batch", "data.py"));
      if (computes(hang)) rank.state = ThreadState::kRuns, rank.cpu_percent = 99, rank.wchan.clear();
      return;
    case HangKind::kStopped:
      rank.state = ThreadState::kStopped;
      rank.state_ms = for_ms;
      rank.wchan = "do_signal_stop";
      return;
    case HangKind::kDisk:
      put(facts, rank, in_script("read_sample", "data.py"));
      rank.state = ThreadState::kDisk;
      rank.state_ms = for_ms;
      rank.wchan = "io_schedule";
      return;
    case HangKind::kXid: facts.xid = 79; return;
    case HangKind::kNotAtInit: put(facts, rank, in_script("import_all", "train.py")); return;
    default: return;
  }
}

}  // namespace

std::string name(HangKind kind) { return std::string(kNames.at(static_cast<std::size_t>(kind))); }

bool has_culprit(HangKind kind) { return kind <= HangKind::kNotAtInit; }

// In half of these hangs the rank computes for ever.
bool computes(const Hang& hang) {
  return (hang.kind == HangKind::kElsewhere || hang.kind == HangKind::kBehind) && hang.rank % 2 == 1;
}

bool must_be_named(const Hang& hang, Ms for_ms) {
  switch (hang.kind) {
    case HangKind::kElsewhere: return hang.world_size >= 3;  // half of two is no majority
    case HangKind::kDisk: return hang.world_size >= 3 || for_ms >= kDiskIsFaultMs;
    case HangKind::kBehind:
    case HangKind::kNotAtInit: return hang.world_size >= 2;
    case HangKind::kStopped:
    case HangKind::kXid: return true;
    default: return false;
  }
}

NodeFacts facts_of(const Hang& hang, const Reader& reader, Ms now_ms) {
  const bool is_at_init = hang.kind == HangKind::kNotAtInit;
  NodeFacts facts = all_in(reader, in_torch(is_at_init ? "init_process_group" : "all_reduce"));
  for (RankFacts& rank : facts.ranks) {
    const bool is_odd = rank.rank % 2 == 0;
    const bool is_first_or_last = rank.rank == 0 || rank.rank == hang.world_size - 1;
    if (has_culprit(hang.kind) && rank.rank == hang.rank) put_culprit(facts, rank, hang, now_ms - hang.began_ms);
    if (hang.kind == HangKind::kStorage && is_first_or_last) put(facts, rank, in_script("save", "train.py"));
    if (hang.kind == HangKind::kMismatch && is_odd) put(facts, rank, in_torch("broadcast"));
    if (hang.kind == HangKind::kHalves && is_odd) put(facts, rank, in_script("step", "train.py"));
  }
  if (hang.kind == HangKind::kBehind) record(facts, hang);
  // The store is on the node of rank 0.
  if (is_at_init && reader.first_rank == 0) {
    facts.store_source = {Source::kHad};
    facts.store = {.absent = RankRuns::of({hang.rank}), .waiting = all_but(hang.rank, hang.world_size)};
  }
  return facts;
}

NodeFacts facts_of_waiting(const Reader& reader) { return all_in(reader, in_torch("all_reduce")); }

NodeFacts facts_of_training(const Reader& reader, Random& random) {
  NodeFacts facts = all_in(reader, in_torch("all_reduce"));
  facts.different_stacks.push_back(in_script("forward", "model.py"));
  facts.different_stacks.push_back(in_script("load_batch", "data.py"));
  for (RankFacts& rank : facts.ranks) {
    const int now = random.number(0, 2);
    rank.stack = static_cast<std::uint16_t>(now);
    rank.stack_then = static_cast<std::uint16_t>((now + random.number(1, 2)) % 3);
    rank.state = ThreadState::kRuns;
    rank.cpu_percent = 95;
    rank.wchan.clear();
  }
  return facts;
}

void lose_part(NodeFacts& facts, Random& random) {
  const int percent = random.number(10, 60);
  const bool has_stacks = !random.chance(30);
  if (!has_stacks) {
    facts.stacks = {Source::kRefused, "Yama"};
    facts.different_stacks.clear();
  }
  RankRuns silent;
  for (RankFacts& rank : facts.ranks) {
    if (!has_stacks || random.chance(percent)) rank.stack = rank.stack_then = std::nullopt;
    if (rank.recorder.state == Source::kHad && random.chance(percent)) {
      rank.recorder = {Source::kLate};
      silent.add(rank.rank);
    }
  }
  std::erase_if(facts.ranks, [&](const RankFacts& rank) {
    const bool is_lost = random.chance(percent / 2);
    if (is_lost && !silent.contains(rank.rank)) silent = hang::united(silent, RankRuns::of({rank.rank}));
    return is_lost;
  });
  std::erase_if(facts.group_facts, [&](const hang::GroupFact& fact) { return silent.meets(fact.ranks); });
  if (facts.store && random.chance(percent)) {
    facts.store.reset();
    facts.store_source = {Source::kLate};
  }
  if (facts.xid && random.chance(percent)) facts.xid.reset();
}

}  // namespace elastic::simulation
