#include "health/probe/probe.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/compute.h"
#include "health/probe/connection.h"
#include "health/probe/lines.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;

bool is_external(const ProbeSettings& settings) { return !settings.external.command.empty(); }

// What the probe keeps through all phases.
struct Means {
  Result<Listener> listener;
  MasterPort master_port;
  GpuNode gpus;
};

void add(SelfResult& self, GpuLook look) {
  if (!look.unavailable.empty()) {
    self.findings.push_back({.what = "GPUs are not tested: " + look.unavailable,
                             .remedy = "the exchange over TCP is used instead of NCCL's"});
  }
  if (!look.unhealthy.empty() && self.unhealthy.empty()) self.unhealthy = std::move(look.unhealthy);
  self.gpu_failure = std::move(look.failure);
  self.gpu = std::move(look.versions);
  self.gpu_figures = look.figures;
  for (Finding& finding : look.findings) self.findings.push_back(std::move(finding));
}

SelfResult self_result(Means& means, const ProbeSettings& settings) {
  const Result<Listener>& listener = means.listener;
  SelfResult self{.master_port = means.master_port.number()};
  const auto note = [&self](const Attempt<double>& measured) {
    if (!measured && self.unhealthy.empty()) self.unhealthy = measured.error();
    return measured ? std::optional(*measured) : std::nullopt;
  };
  if (listener) {
    self.port = listener->port();
    self.key = listener->key();
  } else {
    if (self.unhealthy.empty()) self.unhealthy = listener.error().text();
  }
  // The product is measured at several moments, since other load of the host may disturb one of them.
  const auto compute = [&] {
    const std::optional<double> ms = note(measure_compute());
    if (ms) self.compute_ms = std::min(*ms, self.compute_ms.value_or(*ms));
  };
  compute();
  self.memory_gbps = note(measure_memory());
  compute();
  if (is_external(settings) && self.master_port == 0 && self.unhealthy.empty())
    self.unhealthy = "no port is free for the external probe";
  if (settings.look_at_host) self.findings = settings.look_at_host();
  compute();
  const auto fatal = std::ranges::find(self.findings, Severity::kFatal, &Finding::severity);
  if (fatal != self.findings.end()) self.unhealthy = fatal->what;
  add(self, means.gpus.run_self_tests());
  return self;
}

// Why the two nodes cannot make this test, as a clause: both or none must have an external probe. Empty if they can.
std::string mismatch(const PairOrder& order, const ProbeSettings& settings) {
  if ((order.master_port != 0) == is_external(settings)) return {};
  return is_external(settings) ? "the other node has no --check-probe"
                               : "the other node has a --check-probe, and this one has none";
}

Attempt<UniqueFd> connection_with(Listener& listener, int rank, const PairOrder& order, const ProbeSettings& settings) {
  const Deadline turn(settings.connect_ms + order.after * settings.busy_ms);
  return rank < order.with ? listener.await_peer(rank, order.with, turn, settings.hello_ms)
                           : connect_to_peer(rank, order, settings.connect_ms, turn);
}

Attempt<PairResult> meet(Means& means, int rank, const PairOrder& order, const ProbeSettings& settings) {
  const Attempt<UniqueFd> connection = connection_with(*means.listener, rank, order, settings);
  if (!connection) return std::unexpected(connection.error());
  const Deadline deadline(settings.test_ms);
  if (is_external(settings)) {
    const auto ms = run_external(settings.external, connection->get(), rank, order, means.master_port, deadline);
    if (!ms) return std::unexpected(ms.error());
    return PairResult{.with = order.with, .ms = *ms};
  }
  const auto figures = exchange(connection->get(), rank, order.with, settings.exchange, deadline);
  if (!figures) return std::unexpected(figures.error());
  PairResult result{
      .with = order.with, .ms = figures->ms, .latency_us = figures->latency_us, .clock_ms = figures->clock_ms};
  if (order.gpus == 0) return result;
  const auto gpus = means.gpus.meet(connection->get(), rank < order.with, order.gpus, Deadline(settings.gpu.gather_ms));
  if (!gpus) {
    result.gpu_failure = gpus.error();
    return result;
  }
  result.gpu_ms = gpus->ms;
  result.gpu_ranks = gpus->ranks;
  result.gpu_bytes = settings.gpu.gather_bytes;
  result.gpu_latency_us = gpus->latency_us;
  return result;
}

PairResult make_test(Means& means, int rank, const PairOrder& order, const ProbeSettings& settings) {
  const auto failed = [&order](std::string why) { return PairResult{.with = order.with, .why_not = std::move(why)}; };
  if (!means.listener) return failed(means.listener.error().text());
  if (rank == order.with) return failed("a node cannot test with itself");
  if (std::string why = mismatch(order, settings); !why.empty()) return failed(std::move(why));
  Attempt<PairResult> result = meet(means, rank, order, settings);
  if (settings.mock_error) return failed("MOCK_ERR_RANK");
  return result ? std::move(*result) : failed(result.error());
}

// Connects to the neighbours in the order of turns, in which no two nodes wait for each other. The second one is
// connected even if the first one cannot be, so that it does not have to wait for its deadline.
RingResult make_ring(Result<Listener>& listener, const RingOrder& order, const ProbeSettings& settings) {
  if (!listener) return {.why_not = listener.error().text()};
  if (order.rank == order.previous.with || order.rank == order.next.with) {
    return {.why_not = "a node cannot be its own neighbour"};
  }
  RingResult failure;
  const auto connect = [&](const PairOrder& neighbour) {
    Attempt<UniqueFd> connection = connection_with(*listener, order.rank, neighbour, settings);
    if (!connection && failure.why_not.empty()) {
      failure.why_not = format("node {}: {}", neighbour.with, connection.error());
    }
    return connection ? std::move(*connection) : UniqueFd();
  };
  UniqueFd previous, next;
  if (order.previous.with == order.next.with) {
    previous = connect(order.previous);
  } else if (order.previous.after < order.next.after) {
    previous = connect(order.previous);
    next = connect(order.next);
  } else {
    next = connect(order.next);
    previous = connect(order.previous);
  }
  if (!failure.why_not.empty()) return failure;
  return all_gather(previous.get(), (next ? next : previous).get(), order, settings.ring, Deadline(settings.test_ms));
}

}  // namespace

int run_probe(int channel, const ProbeSettings& settings) {
  Lines lines(channel, kMostLineBytes);
  const auto exit_status = [&lines] { return lines.is_closed() ? 0 : 1; };
  Means means{.listener = Listener::open(make_key()),
              .master_port = is_external(settings) ? MasterPort::open() : MasterPort(),
              .gpus = GpuNode(settings.gpu)};
  if (!lines.write(text_of(self_result(means, settings)))) return exit_status();
  while (const std::optional<std::string> line = lines.read()) {
    const std::optional<CheckOrder> order = read_check_order(*line);
    if (const auto* ring = order ? std::get_if<RingOrder>(&*order) : nullptr) {
      if (!lines.write(text_of(make_ring(means.listener, *ring, settings)))) break;
      continue;
    }
    PairResults results;
    if (const auto* orders = order ? std::get_if<PairOrders>(&*order) : nullptr) {
      for (const PairOrder& test : orders->tests) {
        results.tests.push_back(make_test(means, orders->rank, test, settings));
      }
      if (settings.look_at_host && !orders->tests.empty()) results.findings = settings.look_at_host();
      for (Finding& finding : means.gpus.look_again()) results.findings.push_back(std::move(finding));
    }
    if (!lines.write(text_of(results))) break;
  }
  return exit_status();
}

}  // namespace elastic::health
