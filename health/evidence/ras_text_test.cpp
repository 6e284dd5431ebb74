#include "health/evidence/ras_report.h"

#include <doctest/doctest.h>

#include <string>

#include "health/evidence/ras_test_support.h"

using namespace elastic;
using namespace elastic::evidence;
using namespace elastic::evidence::test;

TEST_CASE("a report as text names who is missing and who is dead, and says that it has no counts") {
  const auto report = read_ras_report(
      report_text("INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 3487984 on node 172.16.64.213 "
                  "managing GPU 5\n\n"
                  "DEAD\n  2 job processes are considered dead (unreachable via the RAS network)\n"
                  "  Process 7 on node 172.16.64.214 managing GPU 0\n  Process 8 on node 172.16.64.214 managing GPUs "
                  "1,2 (NVML 3,4)\n\n"
                  "#0-0 (27a079b828ff1a75) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
                  "  Rank 17 -- GPU 5 managed by process 3487984 on node 172.16.64.213\n  Rank 18 -- [process "
                  "information not found]\n\n"
                  "#1-0 (aa) ERROR\n  Asynchronous error on 1 rank\n\n",
                  "TIMEOUT\n  Encountered 3 communication timeouts while gathering communicator data\n\n"));
  REQUIRE(report);
  CHECK(report->nccl_version == "2.27.3");
  CHECK_FALSE(report->has_counts);
  CHECK_FALSE(report->is_cut);
  CHECK(report->timeouts == 3);
  CHECK(report->silent == std::vector<RasProcess>{{"172.16.64.213", 3487984}});
  CHECK(report->dead == std::vector<RasProcess>{{"172.16.64.214", 7}, {"172.16.64.214", 8}});
  REQUIRE(report->communicators.size() == 2);
  const RasCommunicator& communicator = report->communicators[0];
  CHECK(communicator.hash == "27a079b828ff1a75");
  CHECK(communicator.missing_ranks == 2);
  REQUIRE(communicator.missing.size() == 2);
  CHECK(communicator.missing[0].rank == 17);
  CHECK(communicator.missing[0].process == RasProcess{"172.16.64.213", 3487984});
  CHECK(communicator.missing[1].process.pid == -1);
  CHECK(report->communicators[1].has_error);
}

TEST_CASE("a report as text tells what some ranks have launched where ranks differ, of each collective or of all") {
  const auto report = read_ras_report(report_text(
      "",
      "#0-0 (27a0) MISMATCH\n  Communicator ranks have different status\n  31 ranks have status RUNNING\n"
      "  Rank 3 has status INIT -- GPU 3 managed by process 1 on node 10.0.0.1\n"
      "  Communicator ranks have different AllReduce operation counts\n  26 ranks have launched up to operation 6650\n"
      "  5 ranks have launched up to operation 6649\n"
      "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
      "  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210\n"
      "  Rank 9 has not launched any operations -- GPU 1 managed by process 5 on node 172.16.64.211\n\n"
      "#0-1 (27a1) MISMATCH\n  Communicator ranks have different collective operation counts\n"
      "  2 ranks have not launched any operations\n\n"));
  REQUIRE(report);
  REQUIRE(report->communicators.size() == 2);
  CHECK(report->communicators[0].launched == std::vector<RasLaunched>{{"AllReduce", 6650, 26, {}},
                                                                      {"AllReduce", 6649, 5, {0, 2}},
                                                                      {"AllReduce", 0, 1, {9}}});
  CHECK(report->communicators[1].launched == std::vector<RasLaunched>{{"", 0, 2, {}}});
  CHECK_FALSE(report->communicators[0].has_error);
}

TEST_CASE("a report as text that broke off says so, wherever it did") {
  const std::string whole = report_text("INCOMPLETE\n  Missing communicator data from 1 job process\n\n", "");
  CHECK_FALSE(read_ras_report(whole)->is_cut);
  for (std::size_t size = 13; size < whole.find("Warnings"); ++size)
    CHECK(read_ras_report(whole.substr(0, size))->is_cut);
}

TEST_CASE("numbers that are none, or too large, change nothing") {
  const auto report = read_ras_report(
      report_text("INCOMPLETE\n  Process x on node 10.0.0.1\n  Process -3 on node 10.0.0.1\n\n"
                  "#0-0 (27a0) INCOMPLETE\n  Missing communicator data from many ranks\n  Rank 99999999999 -- GPU 5\n  "
                  "Rank\n\n#broken\n",
                  "#0-0 (27a0) MISMATCH\n  Rank 4 -- GPU 5\n  Communicator ranks have different AllReduce operation "
                  "counts\n  Rank 4 -- GPU 0\n"
                  "  x ranks have launched up to operation 3\n  3 ranks have launched up to operation x\n"));
  REQUIRE(report);
  CHECK(report->silent.empty());
  REQUIRE(report->communicators.size() == 1);
  CHECK(report->communicators[0].missing.empty());
  CHECK(report->communicators[0].missing_ranks == 0);
  CHECK(report->communicators[0].launched.empty());
}
