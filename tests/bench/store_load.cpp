// Drives any TCPStore server from one thread, and prints one JSON object about it.
#include "tests/bench/store_load.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>

#include "rendezvous/store/limits.h"
#include "src/base/text.h"

namespace elastic::store_load {
namespace {

constexpr std::string_view kUsage = R"(usage: store_load --port=P [--host=ADDRESS] WHAT [OPTION ...]

WHAT, one of:
  --operation=get          GET of a key that is there
  --operation=set          SET, which has no reply; all are known to be done when a last PING is answered
  --operation=set-ack      SET, and CHECK of the same key, whose reply says that it was done
  --operation=add          ADD of 1
  --operation=check        CHECK of a key that is there
  --operation=wait-notify  one client waits for a key, its partner sets it: from the SET to the answer
  --scenario=wake          --clients (4000) wait for one key, then it is set
  --scenario=connects      --clients (10000) connect, say VALIDATE and PING, and are answered
  --verify                 every request of the protocol once

Options:
  --clients=N       busy clients; pairs of them for wait-notify (1)
  --idle=N          clients that are connected and do nothing (0)
  --depth=D         requests of one client on their way at once; not for wait-notify (1)
  --value-bytes=V   of what is set (16)
  --seconds=S       (1)
  --server-pid=PID  tells the CPU time of that process too: all of it, and the lower quartile of slices
                    of 5 ms, which the host of a virtual machine disturbs least

Every reply's content is checked. Exit status: 0 if all were right, 1 if not, 2 for a wrong option.
)";

constexpr std::int64_t kSliceNs = 5'000'000;
constexpr std::size_t kFewSlices = 4;

struct Parsed {
  Options options;
  bool has_clients = false;
};

Error bad(std::string_view option, std::string_view value, std::string reason) {
  return {value.empty() ? std::string(option) : format("{}={}", option, printable(value)), std::move(reason),
          "--help lists the options"};
}

Status read_option(Parsed& parsed, std::string_view name, std::string_view value) {
  Options& options = parsed.options;
  const auto number = [&](std::int64_t least, std::int64_t most, auto& into) -> Status {
    const auto found = parse_int(value);
    if (!found || *found < least || *found > most) {
      return std::unexpected(bad(name, value, format("not a whole number from {} to {}", least, most)));
    }
    into = static_cast<std::remove_cvref_t<decltype(into)>>(*found);
    return {};
  };
  const auto one_of = [&](std::string& into, std::initializer_list<std::string_view> words) -> Status {
    into = value;
    if (std::find(words.begin(), words.end(), value) != words.end()) return {};
    return std::unexpected(bad(name, value, "not one of " + join({words.begin(), words.end()}, ", ")));
  };
  if (name == "--host") return options.host = value, Status();
  if (name == "--port") return number(1, 65535, options.port);
  if (name == "--operation") {
    return one_of(options.operation, {"get", "set", "set-ack", "add", "check", "wait-notify"});
  }
  if (name == "--scenario") return one_of(options.scenario, {"wake", "connects"});
  if (name == "--clients") return parsed.has_clients = true, number(1, 100'000, options.clients);
  if (name == "--idle") return number(0, 1'000'000, options.idle);
  if (name == "--depth") return number(1, 10'000, options.depth);
  if (name == "--value-bytes") return number(0, limits::kStorePayloadBytes, options.value_bytes);
  if (name == "--server-pid") return number(1, 1 << 30, options.server_pid);
  if (name == "--seconds") {
    const auto seconds = parse_float(value);
    if (!seconds || *seconds <= 0 || *seconds > 86400) {
      return std::unexpected(bad(name, value, "not a number of seconds above 0"));
    }
    return options.seconds = *seconds, Status();
  }
  return std::unexpected(bad(name, {}, "no such option"));
}

Status check_together(Parsed& parsed) {
  Options& options = parsed.options;
  const int kinds = !options.operation.empty() + !options.scenario.empty() + options.verify;
  if (kinds != 1) {
    return std::unexpected(bad("--operation, --scenario, --verify", {}, "one of them is needed, and only one"));
  }
  if (options.port == 0) return std::unexpected(bad("--port", {}, "it is needed"));
  if (options.operation == "wait-notify" && options.depth != 1) {
    return std::unexpected(
        bad("--depth", std::to_string(options.depth), "a client of wait-notify waits once at a time"));
  }
  if (!parsed.has_clients && !options.scenario.empty()) options.clients = options.scenario == "wake" ? 4000 : 10000;
  return {};
}

Result<Options> parse(std::span<char*> arguments) {
  Parsed parsed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (argument == "--verify") {
      parsed.options.verify = true;
      continue;
    }
    if (equals == argument.npos && i + 1 == arguments.size()) {
      return std::unexpected(bad(name, {}, name.starts_with("--") ? "its value is missing" : "no such option"));
    }
    const std::string_view value = equals == argument.npos ? arguments[++i] : argument.substr(equals + 1);
    if (auto read = read_option(parsed, name, value); !read) return std::unexpected(std::move(read.error()));
  }
  if (auto checked = check_together(parsed); !checked) return std::unexpected(std::move(checked.error()));
  return parsed.options;
}

Json as_json(const Options& options, const Figures& figures, const std::vector<std::string>& verified) {
  const auto whole = [](std::uint64_t number) { return Json(static_cast<std::int64_t>(number)); };
  const auto rounded = [](double number) { return Json(std::round(number * 1000) / 1000); };
  const double operations = static_cast<double>(figures.operations);
  Json json = Json::object();
  json.set(options.scenario.empty() ? "operation" : "scenario",
           options.verify ? "verify" : options.operation + options.scenario);
  json.set("clients", whole(options.clients)).set("idle", whole(options.idle)).set("depth", whole(options.depth));
  json.set("value_bytes", whole(options.value_bytes));
  json.set("operations", whole(figures.operations)).set("seconds", Json(figures.seconds));
  json.set("ops_per_s", figures.seconds > 0 ? rounded(operations / figures.seconds) : Json());
  const bool timed = figures.latency.quantile_us(1) > 0;
  json.set("p50_us", timed ? rounded(figures.latency.quantile_us(0.5)) : Json());
  json.set("p99_us", timed ? rounded(figures.latency.quantile_us(0.99)) : Json());
  json.set("p99.9_us", timed ? rounded(figures.latency.quantile_us(0.999)) : Json());
  if (figures.server_cpu_seconds >= 0) {
    json.set("server_cpu_s", Json(figures.server_cpu_seconds));
    const double all = figures.server_cpu_seconds * 1e6 / std::max(operations, 1.0);
    json.set("server_cpu_us_per_op", Json(all));
    json.set("quiet_cpu_us_per_op", Json(figures.quiet_cpu_us < 0 ? all : figures.quiet_cpu_us));
  }
  if (options.verify) {
    Json names = Json::array();
    for (const std::string& name : verified) names.push(name);
    json.set("verified", std::move(names));
  }
  json.set("errors", whole(figures.errors)).set("first_error", figures.errors > 0 ? Json(figures.first_error) : Json());
  return json;
}

int run(std::span<char*> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") return fmt::print("{}", kUsage), 0;
  }
  const auto options = parse(arguments);
  if (!options) return fmt::print(stderr, "store_load: error: {}\n", options.error().text()), 2;
  std::vector<std::string> verified;
  const auto figures = options->verify                   ? run_verify(*options, verified)
                       : options->scenario == "wake"     ? run_wake(*options)
                       : options->scenario == "connects" ? run_connects(*options)
                                                         : run_operation(*options);
  if (!figures) return fmt::print(stderr, "store_load: error: {}\n", figures.error().text()), 1;
  fmt::print("{}\n", as_json(*options, *figures, verified).dump());
  return figures->errors == 0 ? 0 : 1;
}

}  // namespace

void Histogram::add(std::int64_t nanoseconds) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 0));
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - 1 - kFineBits);
  const std::size_t row = value < (1U << kFineBits) ? 0 : static_cast<std::size_t>(shift) + 1;
  const std::uint64_t fine = (value >> shift) & ((1U << kFineBits) - 1);
  ++counts_[(row << kFineBits) + fine];
  ++total_;
}

double Histogram::quantile_us(double share) const {
  if (total_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total_)));
  std::uint64_t seen = 0;
  std::size_t index = 0;
  for (; index < counts_.size() - 1; ++index) {
    seen += counts_[index];
    if (seen >= wanted) break;
  }
  const std::uint64_t row = index >> kFineBits, fine = index & ((1U << kFineBits) - 1);
  const std::uint64_t value = row == 0 ? fine : ((1U << kFineBits) + fine + 1) << (row - 1);
  return static_cast<double>(value) / 1000;
}

void Figures::error(std::string text) {
  if (errors++ == 0) first_error = std::move(text);
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

Stopwatch::Stopwatch(pid_t server_pid)
    : server_pid_(server_pid),
      began_cpu_seconds_(server_cpu_seconds()),
      began_ns_(now_ns()),
      slice_end_ns_(began_ns_ + kSliceNs),
      slice_cpu_seconds_(began_cpu_seconds_) {}

void Stopwatch::end_slice(std::int64_t now_ns, std::uint64_t operations) {
  const double cpu = server_cpu_seconds();
  if (cpu >= 0 && operations > slice_operations_) {
    slices_us_.push_back((cpu - slice_cpu_seconds_) * 1e6 / static_cast<double>(operations - slice_operations_));
  }
  slice_cpu_seconds_ = cpu;
  slice_operations_ = operations;
  slice_end_ns_ = now_ns + kSliceNs;
}

void Stopwatch::stop(Figures& figures) {
  figures.seconds = static_cast<double>(now_ns() - began_ns_) / 1e9;
  const double cpu = server_cpu_seconds();
  if (cpu < 0 || began_cpu_seconds_ < 0) return;
  figures.server_cpu_seconds = cpu - began_cpu_seconds_;
  if (slices_us_.size() < kFewSlices) return;
  const auto quarter = slices_us_.begin() + static_cast<std::ptrdiff_t>(slices_us_.size() / 4);
  std::nth_element(slices_us_.begin(), quarter, slices_us_.end());
  figures.quiet_cpu_us = *quarter;
}

double Stopwatch::server_cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (server_pid_ == 0 || clock_getcpuclockid(server_pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace elastic::store_load

int main(int count, char** arguments) {
  return elastic::store_load::run(std::span(arguments, static_cast<std::size_t>(count)).subspan(1));
}
