#include "health/evidence/ras_comparison.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "health/evidence/ras_test_support.h"

using namespace elastic;
using namespace elastic::evidence;
using namespace elastic::evidence::test;

namespace {

using Lines = std::vector<std::string>;

RasReport read(const std::vector<SaidCommunicator>& communicators) {
  return read_ras_report(report_json(communicators)).value();
}

// A communicator of four ranks on two hosts that have launched so many AllReduces.
SaidCommunicator four(std::vector<std::int64_t> launched, const std::string& hash = "0x1f",
                      std::int64_t first_pid = 100) {
  SaidCommunicator said{.hash = hash};
  for (int rank = 0; rank < 4; ++rank) {
    said.ranks.push_back({.rank = rank,
                          .host = rank < 2 ? "10.0.0.1" : "10.0.0.2",
                          .pid = first_pid + rank,
                          .all_reduces = launched[static_cast<std::size_t>(rank)]});
  }
  return said;
}

// The workers on 10.0.0.1 of four().
const std::vector<RasWorker> kOurs = {{{"10.0.0.1", 100}, 40}, {{"10.0.0.1", 101}, 41}};

}  // namespace

TEST_CASE("a rank that stays behind in both reports lags, with its global rank where that is known") {
  const RasReport report = read({four({1904, 1903, 1904, 1904})});
  const auto comparison = compare_ras(report, report, kOurs);
  CHECK(comparison.has_counts);
  CHECK_FALSE(comparison.moved);
  REQUIRE(comparison.communicators.size() == 1);
  const RasCommunicatorState& state = comparison.communicators[0];
  CHECK(state.launched == 1904);
  REQUIRE(state.laggards.size() == 1);
  CHECK(state.laggards[0].rank == 1);
  CHECK(state.laggards[0].global_rank == 41);
  CHECK(state.laggards[0].behind == 1);
  CHECK(ras_summary(comparison) == Lines{"NCCL 2.30.7: 1 communicator, no launch between two reports",
                                         "rank 41 on host 10.0.0.1 stays behind the others by 1 launch"});
}

TEST_CASE("a difference between ranks that move is no lag") {
  const auto comparison = compare_ras(read({four({10, 9, 10, 10})}), read({four({12, 12, 12, 11})}), kOurs);
  CHECK(comparison.moved);
  CHECK(comparison.communicators[0].laggards.empty());
  CHECK(ras_summary(comparison) == Lines{"NCCL 2.30.7: 1 communicator, all move"});
}

TEST_CASE("a rank that stands lags even where others move, and one that is level with all does not") {
  const auto comparison = compare_ras(read({four({10, 9, 10, 10})}), read({four({11, 9, 11, 10})}), {});
  CHECK(comparison.moved);
  REQUIRE(comparison.communicators[0].laggards.size() == 1);
  CHECK(comparison.communicators[0].laggards[0].rank == 1);
  CHECK(comparison.communicators[0].laggards[0].behind == 2);
  const auto stand = compare_ras(read({four({10, 10, 10, 10})}), read({four({10, 10, 10, 10})}), kOurs);
  CHECK_FALSE(stand.moved);
  CHECK(stand.communicators[0].laggards.empty());
  CHECK(ras_summary(stand) == Lines{"NCCL 2.30.7: 1 communicator, no launch between two reports"});
}

TEST_CASE("communicators of another job are ignored, and counted") {
  const auto comparison = compare_ras(read({four({1, 1, 1, 1}), four({5, 4, 5, 5}, "0x20", 900)}),
                                      read({four({1, 1, 1, 1}), four({5, 4, 5, 5}, "0x20", 900)}), kOurs);
  CHECK(comparison.foreign == 1);
  REQUIRE(comparison.communicators.size() == 1);
  CHECK(comparison.communicators[0].hash.starts_with("0x1f"));
  const auto only_foreign = compare_ras(read({}), read({four({5, 4, 5, 5}, "0x20", 900)}), kOurs);
  CHECK(ras_summary(only_foreign) ==
        Lines{"NCCL 2.30.7: 0 communicators, none of this job", "1 communicator of another job is ignored"});
  // The same pid on another host is another process.
  const std::vector<RasWorker> elsewhere = {{{"10.0.0.9", 100}, 0}};
  CHECK(compare_ras(read({}), read({four({5, 4, 5, 5})}), elsewhere).foreign == 1);
}

TEST_CASE("a communicator that is new has moved, and a rank that is new does not lag") {
  const auto comparison = compare_ras(read({}), read({four({0, 0, 0, 1})}), kOurs);
  CHECK(comparison.moved);
  CHECK_FALSE(comparison.communicators[0].had_before);
  SaidCommunicator fewer = four({3, 3, 3, 3});
  fewer.ranks.pop_back();
  CHECK(compare_ras(read({fewer}), read({four({3, 3, 3, 1})}), kOurs).communicators[0].laggards.empty());
}

TEST_CASE("missing ranks, errors and what is not complete are told") {
  SaidCommunicator said{.ranks = {{.rank = 0, .pid = 100},
                                  {.rank = 1, .pid = 101, .async_error = 6},
                                  {.rank = 4, .pid = 5, .async_error = 7}},
                        .missing = {{.rank = 2, .pid = 1, .is_dead = true}, {.rank = 3, .pid = 2}}};
  RasReport report = read({said});
  report.timeouts = 2;
  const auto comparison = compare_ras(report, report, kOurs);
  CHECK(comparison.is_partial);
  CHECK(comparison.communicators[0].failed == std::vector{1});
  CHECK(ras_summary(comparison) ==
        Lines{"NCCL 2.30.7: 1 communicator, no launch between two reports",
              "ranks 2-3 of communicator 0x1f:0xa:0xb on host 10.0.0.2 are missing (1 taken for dead)",
              "rank 1 of communicator 0x1f:0xa:0xb with an error of NCCL",
              "the report is not complete: ranks that it does not have may be well"});
}

TEST_CASE("without counts it is said that they cannot be had, and who is named as behind in both reports") {
  const auto text = [](const std::string& behind) {
    return read_ras_report(
               report_text("DEAD\n  1 job process is considered dead\n  Process 7 on node 10.0.0.4 managing GPU 0\n\n",
                           "#0-0 (27a0) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                           "  31 ranks have launched up to operation 6650\n" +
                               behind))
        .value();
  };
  const RasReport lagging =
      text("  Rank 5 has launched up to operation 6649 -- GPU 0 managed by process 4 on node 10.0.0.1\n");
  CHECK(ras_summary(compare_ras(lagging, lagging, kOurs)) ==
        Lines{"NCCL 2.27.3: its RAS does not tell what each rank has launched (NCCL 2.28.7 and later do)",
              "taken for dead: process 7 on 10.0.0.4",
              "rank 5 of communicator 27a0 stays behind the others by 1 launch"});
  // Who is ahead is no laggard.
  const RasReport ahead =
      text("  Rank 5 has launched up to operation 6651 -- GPU 0 managed by process 4 on node 10.0.0.1\n");
  CHECK(ras_summary(compare_ras(ahead, ahead, {})).back() ==
        "communicator 27a0 in both reports: 31 ranks AllReduce 6650; 1 rank AllReduce 6651");
  CHECK(compare_ras(ahead, lagging, {}).communicators[0].differs.empty());
  CHECK_FALSE(compare_ras(ahead, lagging, {}).has_counts);
}

TEST_CASE("10,000 ranks are told in a few lines") {
  SaidCommunicator world{.hash = "0xfeed"};
  std::vector<RasWorker> ours;
  for (int rank = 0; rank < 10'000; ++rank) {
    const std::string host = format("10.0.{}.{}", rank / 8 / 250, rank / 8 % 250);
    const bool lags = (rank >= 4000 && rank < 4008) || rank % 1250 == 7;
    if (rank >= 9992) {
      world.missing.push_back({.rank = rank, .host = host, .pid = rank});
    } else {
      world.ranks.push_back({.rank = rank, .host = host, .pid = rank, .all_reduces = lags ? 1903 : 1904});
    }
    ours.push_back({{host, rank}, rank});
  }
  std::vector<SaidCommunicator> said = {world};
  for (int pair = 0; pair < 20; ++pair) {
    said.push_back({.hash = format("0x{}", pair),
                    .ranks = {{.rank = 0, .host = "10.0.0.0", .pid = 0, .all_reduces = 2},
                              {.rank = 1, .host = "10.0.0.0", .pid = 1, .all_reduces = 1}}});
  }
  const RasReport report = read(said);
  const auto lines = ras_summary(compare_ras(report, report, ours));
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "NCCL 2.30.7: 21 communicators, no launch between two reports");
  CHECK(lines[1].starts_with("ranks 9992-9999 of communicator 0xfeed:0xa:0xb on host 10.0.4.249 are missing"));
  CHECK(lines[2].starts_with("ranks 7, 1257, 2507, 3757, 4000-4007, 5007, 6257, 7507, 8757 on hosts 10.0.0.0; "));
  CHECK(lines[7] == "and 16 lines more");
  for (const std::string& line : lines) CHECK(line.size() < 300);
}
