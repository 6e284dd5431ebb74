#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/service.h"
#include "src/net/tcp.h"
#include "src/status/snapshot.h"

namespace elastic::transport {

// A coordinator in this process, whether its agents reach it by connections or it hands messages to the only one.
class HostedCoordinator {
 public:
  HostedCoordinator() = default;
  virtual ~HostedCoordinator() = default;
  HostedCoordinator(const HostedCoordinator&) = delete;
  HostedCoordinator& operator=(const HostedCoordinator&) = delete;

  // From now on `write` gets the recording of this job's coordinator, line by line. To be called before an agent joins.
  virtual void record(const std::string& job, std::function<void(std::string_view line)> write) = 0;
  // `call` is called whenever the check of a round of a job is over.
  virtual void on_judged(std::function<void(const std::string& job, const coordinator::CheckJudged& check)> call) = 0;
  // `take` gets the connections that begin with an HTTP request, with what they have sent so far. Until it is called
  // they are refused as strangers; a coordinator without a port has none.
  virtual void on_http(std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> take) = 0;
  // It serves jobs with other names.
  virtual bool has_other_jobs(const std::string& job) const = 0;
  // The status of its jobs.
  virtual status::Coordinator status() const = 0;
  // Carries out an operator's order in a job; an empty name is that of the only job.
  virtual coordinator::OrderAnswered order(const std::string& job, coordinator::OperatorOrder order) = 0;
  // Collects what the workers of a job are doing; an empty name is that of the only job. `answered` gets the document,
  // as JSON, or why there is none; it is called once, at once or later, and never after this object has gone.
  using OnStacks = std::function<void(const coordinator::StacksAnswered& answer)>;
  virtual void collect_stacks(const std::string& job, OnStacks answered) = 0;
};

}  // namespace elastic::transport
