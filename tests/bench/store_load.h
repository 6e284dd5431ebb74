#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/result.h"

// A load generator for TCPStore servers: what its parts share.
namespace elastic::store_load {

struct Options {
  std::string host = "127.0.0.1";  // a numeric address
  std::uint16_t port = 0;
  std::string operation;  // one of these three is given
  std::string scenario;
  bool verify = false;
  std::size_t clients = 1;
  std::size_t idle = 0;
  std::size_t depth = 1;  // requests of one client on their way at once
  std::size_t value_bytes = 16;
  double seconds = 1;
  pid_t server_pid = 0;  // 0: its CPU time is not asked for
};

// Durations, each told within 1.6 %.
class Histogram {
 public:
  void add(std::int64_t nanoseconds);
  // Microseconds within which that share of all lies; 0 of none.
  double quantile_us(double share) const;

 private:
  static constexpr int kFineBits = 6;
  std::array<std::uint64_t, (64 - kFineBits) << kFineBits> counts_{};
  std::uint64_t total_ = 0;
};

struct Figures {
  std::uint64_t operations = 0;
  double seconds = 0;
  double server_cpu_seconds = -1;  // negative: unknown
  double quiet_cpu_us = -1;        // the server's for one operation, see Stopwatch
  std::uint64_t errors = 0;        // wrong replies and lost connections
  std::string first_error;
  Histogram latency;  // empty where a request has no reply

  void error(std::string text);
};

// Time of the monotonic clock.
std::int64_t now_ns();

// Time, and the server's CPU time, from its making on. A virtual machine charges its processes with the time
// that its host takes from it, which comes in bursts: so the server's time is looked at in slices of 5 ms too,
// and a quarter of the slices was as quiet as `quiet_cpu_us` or quieter.
class Stopwatch {
 public:
  explicit Stopwatch(pid_t server_pid);
  std::int64_t began_ns() const { return began_ns_; }
  // To be called often, with the operations done until now.
  void look(std::int64_t now_ns, std::uint64_t operations) {
    if (now_ns >= slice_end_ns_) end_slice(now_ns, operations);
  }
  void stop(Figures& figures);

 private:
  double server_cpu_seconds() const;  // negative: unknown
  void end_slice(std::int64_t now_ns, std::uint64_t operations);

  pid_t server_pid_;
  double began_cpu_seconds_;
  std::int64_t began_ns_;
  std::int64_t slice_end_ns_;
  double slice_cpu_seconds_;
  std::uint64_t slice_operations_ = 0;
  std::vector<double> slices_us_;  // for one operation
};

// Each fails where the server can't be reached or does not answer for ten seconds.
Result<Figures> run_operation(const Options& options);
Result<Figures> run_wake(const Options& options);
Result<Figures> run_connects(const Options& options);
// Carries out every request once and looks at every reply; what went well is added to `verified`.
Result<Figures> run_verify(const Options& options, std::vector<std::string>& verified);

}  // namespace elastic::store_load
