#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.h"
#include "cli/rdzv_conf.h"
#include "src/base/result.h"

// What the values mean, beyond what the flag table says. Every function takes the value and the input as the user knows
// it (for the message), and fails with an Error that names the input, the reason and the remedy.
namespace elastic::cli {

// --nnodes: 0 < min <= max.
struct NodeRange {
  std::int64_t min = 1;
  std::int64_t max = 1;
};
Result<NodeRange> check_nnodes(std::string_view value, std::string_view input);

// --nproc-per-node: a number of workers, or a word for the number of something.
struct WorkersPerNode {
  enum class Kind : unsigned char { kNumber, kAuto, kCpu, kGpu, kXpu };
  Kind kind = Kind::kNumber;
  std::int64_t number = 1;  // of kNumber: 1..limits::kMaxWorkersPerNode
};
Result<WorkersPerNode> check_nproc_per_node(std::string_view value, std::string_view input);

// --rdzv-backend.
enum class Backend : unsigned char { kStatic, kC10d };
Result<Backend> check_rdzv_backend(std::string_view value, std::string_view input);

// "host", "host:port", "[v6]:port" as torchrun reads it. The host has no brackets.
struct Endpoint {
  std::string host;                   // "localhost" where the value is empty
  std::optional<std::uint16_t> port;  // none where the value names none
  bool operator==(const Endpoint&) const = default;
};
Result<Endpoint> check_endpoint(std::string_view value, std::string_view input);

// --rdzv-endpoint with c10d: "host0,host1,host2:29400", at least one host and at most limits::kEndpointHosts. A host
// without a port has that of the next one that has one.
Result<std::vector<Endpoint>> check_endpoint_list(std::string_view value, std::string_view input);

// --redirects, --tee: which streams of which local rank. Bit 1 is stdout, bit 2 is stderr.
struct StreamMap {
  unsigned all = 0;                          // for the ranks that are not named
  std::map<std::int64_t, unsigned> by_rank;  // local rank -> streams

  unsigned of(std::int64_t local_rank) const;
};
Result<StreamMap> check_stream_map(std::string_view value, std::string_view input);

// --local-ranks-filter: nothing for the empty value (all ranks).
Result<std::optional<std::set<std::int64_t>>> check_local_ranks_filter(std::string_view value, std::string_view input);

// --signals-to-handle: signal numbers in the order given, each once. Empty for an empty value.
struct SignalList {
  std::vector<int> numbers;
  std::vector<std::string> unknown;  // names that no signal has
};
Result<SignalList> check_signals_to_handle(std::string_view value, std::string_view input);
// --forward-signals: the same, where an unknown name is an error.
Result<std::vector<int>> check_signals(std::string_view value, std::string_view input);

// A time of whole seconds, 0..limits::kMaxTimeoutSeconds: --shutdown-timeout and, for
// TORCH_ELASTIC_SHUTDOWN_TIMEOUT, where torchrun takes a negative value for 0.
Result<std::int64_t> check_seconds(std::string_view value, std::string_view input);

// A time from 1 s to limits::kMaxTimeoutSeconds, in seconds: "300", "90s", "5m", "1h" (--hang-timeout).
Result<std::int64_t> check_span(std::string_view value, std::string_view input);

// --log-max-bytes: "100M", "1GiB", "5000000"; 0, or 4 KiB and more.
Result<std::uint64_t> check_log_max_bytes(std::string_view value, std::string_view input);

// How the nodes of this job meet (torchrun's order of rules, with its plain `torchrun script.py`).
enum class Rendezvous : unsigned char {
  kStandalone,          // --standalone: backend, endpoint and id are overwritten
  kImplicitStandalone,  // static, one node, neither endpoint nor port named; port 0 is none
  kStatic,
  kC10d,
};

// All values whose meaning can be told from flags and variables alone.
struct CheckedFlags {
  NodeRange nodes;
  WorkersPerNode workers;
  Rendezvous rendezvous = Rendezvous::kImplicitStandalone;
  Endpoint endpoint;                     // kStatic: with a port, from --rdzv-endpoint or --master-addr and -port
                                         // kC10d: the same, without a port if none is given there; empty with
                                         // store_type=file; else empty
  bool endpoint_is_master = false;       // it is that of --master-addr and --master-port
  std::vector<Endpoint> more_endpoints;  // kC10d: the further hosts of --rdzv-endpoint
  RdzvConf rdzv_conf;
  std::int64_t node_rank = 0;  // kStatic: below nodes.max
  std::int64_t max_restarts = 0;
  std::optional<std::int64_t> shutdown_timeout_seconds;    // none: not given by flag or PET variable
  std::optional<std::int64_t> hang_timeout_seconds;        // nothing: not given
  std::optional<std::int64_t> hang_first_timeout_seconds;  // the same
  struct Section {
    std::string name;
    std::optional<std::int64_t> limit_seconds;  // nothing: it has none of its own
  };
  std::vector<Section> progress_sections;
  std::vector<int> signals;
  std::vector<std::string> unknown_signals;  // in --signals-to-handle: passed over, as torchrun does
  std::vector<int> forward_signals;          // none of them in `signals`
  StreamMap redirects;
  StreamMap tee;
  std::uint64_t log_max_bytes = 0;  // 0: no bound
  std::set<std::string> on_event_kinds;
  std::optional<std::set<std::int64_t>> local_ranks_filter;
  bool run_path = false;  // at most one of the three is set, with torchrun's precedence:
  bool module = false;    // --run-path wins over both others; --module with --no-python fails
  bool no_python = false;
};

// Checks each flag, and the flags against each other, and returns the first error. The flags come from
// parse_command_line(), so what the flag table forbids has been refused already.
Result<CheckedFlags> check_flags(const ParsedFlags& flags);

}  // namespace elastic::cli
