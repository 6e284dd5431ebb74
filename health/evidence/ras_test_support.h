#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/text.h"

// Reports as NCCL 2.28.9 to 2.30.7 write them (src/ras/client_support.cc), line by line.
namespace elastic::evidence::test {

struct SaidRank {
  int rank = 0;
  std::string host = "10.0.0.1";
  std::int64_t pid = 0;
  std::int64_t all_reduces = 0;
  std::int64_t broadcasts = 0;
  int async_error = 0;
};
struct SaidMissing {
  int rank = 0;
  std::string host = "10.0.0.2";
  std::int64_t pid = 0;
  bool is_dead = false;
};
struct SaidCommunicator {
  std::string hash = "0x1f";
  std::vector<SaidRank> ranks{};
  std::vector<SaidMissing> missing{};
};

inline std::string place(const std::string& host, std::int64_t pid, int rank) {
  return format(
      "        {{\n          \"rank\": {},\n          \"host\": \"{}\",\n          \"pid\": {},\n          "
      "\"cuda_dev\": 0,\n"
      "          \"nvml_dev\": 3",
      rank, host, pid);
}

inline std::string report_json(const std::vector<SaidCommunicator>& communicators, bool leaves_out_commas = false) {
  std::vector<std::string> objects{};
  for (const SaidCommunicator& communicator : communicators) {
    std::vector<std::string> ranks;
    for (const SaidRank& said : communicator.ranks) {
      ranks.push_back(
          place(said.host, said.pid, said.rank) +
          format(",\n          \"status\": {{\n            \"init_state\": 0,\n            \"async_error\": {},\n"
                 "            \"finalize_called\": false,\n            \"destroy_flag\": false,\n"
                 "            \"abort_flag\": false\n          }},\n          \"collective_counts\": {{\n"
                 "            \"Broadcast\": {},\n            \"Reduce\": 0,\n            \"AllGather\": 0,\n"
                 "            \"ReduceScatter\": 0,\n            \"AllReduce\": {}\n          }}\n        }}",
                 said.async_error, said.broadcasts, said.all_reduces));
    }
    std::vector<std::string> missing;
    for (const SaidMissing& said : communicator.missing) {
      missing.push_back(place(said.host, said.pid, said.rank) +
                        format("{}\n          \"status\": {{\n            \"unresponsive\": true,\n"
                               "            \"considered_dead\": {}\n          }}\n        }}",
                               leaves_out_commas ? "" : ",", said.is_dead));
    }
    objects.push_back(
        format("    {{\n      \"hash\": \"{}\",\n      \"secondary_hash\": \"0xa:0xb\",\n      \"size\": {},\n"
               "      \"ranks_count\": {},\n      \"missing_ranks_count\": {},\n      \"ranks\": [\n{}\n      ],\n"
               "      \"missing_ranks\": [\n{}\n      ]\n    }}",
               communicator.hash, ranks.size() + missing.size(), ranks.size(), missing.size(), join(ranks, ",\n"),
               join(missing, ",\n")));
  }
  return format(
      "{{\n  \"nccl_version\": \"2.30.7\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": 13000,\n"
      "  \"timestamp\": \"2026-01-02 03:04:05\",\n  \"communicators_count\": {},\n  \"communicators\": [\n{}\n  ],\n"
      "  \"ras\": {{\n    \"collection_time_sec\": 0.012,\n    \"timeouts_count\": 0\n  }}\n}}\n",
      objects.size(), join(objects, ",\n"));
}

// What VERBOSE STATUS answers in text, as NCCL 2.27 does: `errors` and `warnings` are what stands below these
// headlines.
inline std::string report_text(const std::string& errors, const std::string& warnings) {
  return "NCCL version 2.27.3+cuda12.9 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12080\n\n"
         "Job summary\n===========\n\n"
         "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
         "      4          8            1         32       32\n\nCommunicators... (0.00s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         4         8        32        32   RUNNING  MISMATCH\n\nErrors\n======\n\n" +
         errors + "Warnings\n========\n\n" + warnings;
}

}  // namespace elastic::evidence::test
