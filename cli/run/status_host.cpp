#include "cli/run/status_host.h"

#include <algorithm>
#include <utility>

#include "health/check/network_check.h"
#include "rendezvous/protocol/proof.h"
#include "rendezvous/transport/limits.h"
#include "src/base/text.h"
#include "src/net/http/query.h"
#include "src/process/clock.h"
#include "src/process/port_holder.h"
#include "src/process/random.h"
#include "src/status/metrics.h"
#include "src/status/status_json.h"

namespace elastic::run {
namespace {

using net::http::Response;

// How long a page is valid: at least so many milliseconds, and so many times as long as making it took.
constexpr std::int64_t kFreshMs = 100;
constexpr std::int64_t kFreshTimes = 20;

Response text_page(std::string_view type, std::string text) {
  return {.content_type = type, .body = std::make_shared<const std::string>(std::move(text))};
}

}  // namespace

StatusHost::StatusHost(net::Loop& loop, const std::string& secret, bool is_open)
    : loop_(loop),
      access_{protocol::status_key(secret), is_open},
      began_ms_(loop.now_ms()),
      desk_(secret, [] { return format("{:016x}{:016x}", process::random_number(), process::random_number()); }),
      server_(loop, [this](const net::http::Request& request, const std::string& peer) {
        return answer(request, {.from = peer}, false);
      }) {
  desk_.set_elsewhere([this] { return node_ ? node_().endpoint : ""; });
}

void StatusHost::set_coordinator(transport::CoordinatorServer* coordinator) {
  coordinator_ = coordinator;
  if (coordinator == nullptr) return desk_.set_coordinator({}, {});
  desk_.set_coordinator(
      [coordinator](const std::string& job, coordinator::OperatorOrder order) {
        return coordinator->order(job, std::move(order));
      },
      [coordinator](const std::string& job, ControlApi::Collected answered) {
        coordinator->collect_stacks(job, [answered = std::move(answered)](const transport::StacksAnswered& answer) {
          answered(answer.kind, answer.text);
        });
      });
}

void StatusHost::checked(const std::string& job, const health::HealthReport& report) {
  if (coordinator_ != nullptr) {
    const auto jobs = coordinator_->status().jobs;
    std::erase_if(checks_, [&](const auto& entry) {
      return entry.first != job &&
             std::ranges::none_of(jobs, [&](const status::Job& one) { return one.id == entry.first; });
    });
  }
  if (!checks_.contains(job) && checks_.size() >= limits::kJobsServed) checks_.erase(checks_.begin());
  Checks& checks = checks_[job];
  if (checks.count > 0 && report.round <= checks.last.round) checks = {};  // another job of that name
  ++checks.count;
  checks.last = health::check_figures(report);
}

Result<std::uint16_t> StatusHost::listen(std::uint16_t port) {
  auto listener = net::Listener::open(
      loop_, "", port, [this](std::unique_ptr<net::Stream> stream) { server_.adopt(std::move(stream), {}); });
  if (!listener) {
    Error error = std::move(listener.error());
    if (const auto holder = process::port_holder(port)) error.reason += " by " + *holder;
    error.remedy = "choose another --http-port, or 0 for a free one";
    return std::unexpected(std::move(error));
  }
  listener_ = std::move(*listener);
  return listener_->port();
}

void StatusHost::adopt(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
  const std::string at = stream->local_address();
  server_.adopt(std::move(stream), bytes, [this, at](const net::http::Request& request, const std::string& peer) {
    return answer(request, {.from = peer, .at = at}, true);
  });
}

ControlApi::Job StatusHost::job() const {
  ControlApi::Job out;
  if (whereabouts_) out.is = whereabouts_();
  out.has_others = coordinator_ != nullptr && coordinator_->has_other_jobs(out.is.job);
  return out;
}

std::optional<Response> StatusHost::lead(const net::http::Request& request, const status::Caller& caller) const {
  const ControlApi::Job known = job();
  const std::string wanted = net::http::query_value(request.query, "job").value_or("");
  switch (status::lead_of(known.is, wanted, known.has_others)) {
    case status::Lead::kServe: return {};
    case status::Lead::kNotYet: return net::http::plain(503, status::not_yet(known.is));
    case status::Lead::kRedirect: {
      const std::string place = status::place_for(known.is, caller);
      return net::http::redirect(status::url_of(place, request.target),
                                 format("the coordinator of job {} is at {}", printable(known.is.job), place));
    }
  }
  return {};
}

net::http::Reply StatusHost::answer(const net::http::Request& request, const status::Caller& caller, bool leads) {
  if (ControlApi::serves(request.path)) return desk_.answer(request, caller, job(), leads);
  const auto page_of_path = status::page_at(request.path);
  if (!page_of_path) return net::http::plain(404, status::kNoSuchPage);
  if (request.method == net::http::Method::kPost) {
    return net::http::plain(405, "POST is not supported here; use GET or HEAD");
  }
  const status::View view = status::view_of(access_, request.authorization, caller.from);
  if (view == status::View::kRefused) return net::http::plain(401, status::kTokenWrong);
  const bool is_of_coordinator = *page_of_path == status::Page::kStatus || *page_of_path == status::Page::kMetrics;
  if (leads && is_of_coordinator && status::may_be_led(access_, view)) {
    if (auto led = lead(request, caller)) return *std::move(led);
  }
  Made& made = made_[{*page_of_path, view}];
  if (made.response.body != nullptr && loop_.now_ms() < made.until_ms) return made.response;
  const std::int64_t before_ms = process::monotonic_ms();
  made.response = page(*page_of_path, view);
  made.until_ms = loop_.now_ms() + std::max(kFreshMs, kFreshTimes * (process::monotonic_ms() - before_ms));
  return made.response;
}

Response StatusHost::page(status::Page page, status::View view) const {
  switch (page) {
    case status::Page::kHealth: return net::http::plain(200, "ok");
    case status::Page::kReady: {
      status::Snapshot of_node;
      if (node_) of_node.node = node_();
      if (view != status::View::kAll) of_node = status::counts_only(of_node);
      const status::Readiness readiness = status::readiness(of_node.node);
      return net::http::plain(readiness.ready ? 200 : 503, readiness.line);
    }
    case status::Page::kStatus: return text_page(status::kJsonType, status::status_json(snapshot(view)));
    case status::Page::kMetrics: return text_page(status::kMetricsType, status::metrics_text(snapshot(view)));
  }
  return net::http::plain(404, status::kNoSuchPage);
}

status::Snapshot StatusHost::snapshot(status::View view) const {
  return view == status::View::kAll ? full_snapshot() : status::counts_only(full_snapshot());
}

status::Snapshot StatusHost::full_snapshot() const {
  status::Snapshot out{.version = ELASTIC_RUN_VERSION, .uptime_ms = loop_.now_ms() - began_ms_};
  if (node_) out.node = node_();
  if (coordinator_ != nullptr) out.coordinator = coordinator_->status();
  for (const auto& [code, count] : server_.answered()) out.http_answers[code] = static_cast<std::int64_t>(count);
  if (!out.coordinator) return out;
  for (status::Job& job : out.coordinator->jobs) {
    const auto found = checks_.find(job.id);
    if (found == checks_.end() || job.round.value_or(-1) < found->second.last.round) continue;
    job.checks = found->second.count;
    job.check = found->second.last;
  }
  return out;
}

}  // namespace elastic::run
