#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/network_check.h"
#include "rendezvous/coordinator/recording.h"
#include "rendezvous/coordinator/stacks_desk.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transport/hosted_coordinator.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/net/loop.h"
#include "src/process/clock.h"
#include "src/status/snapshot.h"

namespace elastic::transport {

// The coordinator of a job of one node, in the process of its only agent, which hands it messages directly. A job of
// one node waits for no other, so that only whoever asks for stacks and the watch for a hang need a timer. Its times
// are milliseconds since it was made.
class CoordinatorHost final : public HostedCoordinator {
 public:
  // `agent` gets the coordinator's messages.
  CoordinatorHost(net::Loop& loop, std::string job, std::function<void(protocol::CoordinatorMessage)> agent)
      : loop_(loop),
        job_(std::move(job)),
        agent_(std::move(agent)),
        began_ms_(loop.now_ms()),
        coordinator_({.birth_ms = process::wall_clock_ms()},
                     coordinator::recorded_check(std::make_unique<coordinator::NetworkCheck>(),
                                                 [this](const std::string& line) {
                                                   if (recorder_) recorder_(line);
                                                 })),
        desk_(job_),
        desk_timer_(loop),
        hang_timer_(loop) {}

  void record(const std::string& job, std::function<void(std::string_view line)> write) override {
    recorder_ = std::move(write);
    recorder_(coordinator::recording_head(job, coordinator_.config(), true));
  }

  void on_judged(std::function<void(const std::string& job, const coordinator::CheckJudged& check)> call) override {
    on_judged_ = std::move(call);
  }
  void on_http(std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)>) override {}

  bool has_other_jobs(const std::string&) const override { return false; }
  status::Coordinator status() const override {
    status::Coordinator out;
    out.jobs.push_back(coordinator_.status(now_ms(), limits::kStatusNodes));
    out.jobs.back().id = job_;
    return out;
  }

  // The agent has said this.
  void on(const protocol::AgentMessage& message) {
    if (const auto* told = std::get_if<protocol::NodeStacks>(&message))
      return perform(desk_.tells(kOnlyNode, *told, now_ms()));
    on(coordinator::MessageReceived{kOnlyNode, message});
  }

  coordinator::OrderAnswered order(const std::string& job, coordinator::OperatorOrder order) override {
    using Answer = coordinator::OrderAnswered;
    if (!job.empty() && job != job_)
      return {Answer::Kind::kUnknown, format("the only job here is {}", printable(job_))};
    answer_ = {Answer::Kind::kUnknown, "the job has ended"};
    on(std::move(order));
    return std::exchange(answer_, {});
  }

  void collect_stacks(const std::string& job, OnStacks answered) override {
    if (!job.empty() && job != job_) {
      return answered(
          {{}, coordinator::OrderAnswered::Kind::kUnknown, format("the only job here is {}", printable(job_))});
    }
    const coordinator::StacksDesk::Ticket ticket = ++last_ticket_;
    askers_.emplace(ticket, std::move(answered));
    perform(desk_.asks(
        ticket, [this] { return nodes(); }, now_ms()));
  }

 private:
  std::int64_t now_ms() const { return loop_.now_ms() - began_ms_; }
  // Alone, a node is called by its host's name.
  std::vector<coordinator::StacksDesk::Node> nodes() const {
    auto nodes = coordinator::nodes_with_stacks(coordinator_.roster());
    for (coordinator::StacksDesk::Node& node : nodes) node.name = net::full_host_name();
    return nodes;
  }

  void perform(coordinator::StacksDesk::Step step) {
    if (!step.note.empty()) log::tell(log::Level::kInfo, coordinator::kStacksCollected, step.note, Json::object());
    const coordinator::StacksAnswered answer{std::move(step.answered), {}, std::move(step.document)};
    for (const coordinator::StacksDesk::Ticket ticket : answer.tickets) {
      if (const auto asker = askers_.extract(ticket)) asker.mapped()(answer);
    }
    if (const auto due_ms = desk_.due_ms()) {
      desk_timer_.start(std::max<std::int64_t>(*due_ms - now_ms(), 0),
                        [this] { perform(desk_.time_passes([this] { return nodes(); }, now_ms())); });
    }
    // The agent may answer at once.
    if (!step.asked.empty()) agent_(step.wanted);
  }

  void on(const coordinator::Event& event) {
    if (recorder_) recorder_(coordinator::recording_line(event, now_ms()));
    for (coordinator::Effect& effect : coordinator_.on_event(event, now_ms())) {
      if (auto* send = std::get_if<coordinator::Send>(&effect)) agent_(std::move(send->message));
      if (const auto* note = std::get_if<coordinator::Note>(&effect)) tell(*note);
      if (const auto* check = std::get_if<coordinator::CheckJudged>(&effect); check != nullptr && on_judged_)
        on_judged_(job_, *check);
      if (auto* answer = std::get_if<coordinator::OrderAnswered>(&effect)) answer_ = std::move(*answer);
    }
    plan_look();
  }

  // The coordinator looks for a hang at each event. This one says what is true at any time: that the only node is
  // there.
  void plan_look() {
    const auto due_ms = coordinator_.hang().next_ms();
    if (!due_ms) return hang_timer_.stop();
    hang_timer_.start(std::max<std::int64_t>(*due_ms - now_ms(), 0),
                      [this] { on(coordinator::KeepAliveReceived{kOnlyNode}); });
  }

  // The node in the same process logs its rounds and the job's end by itself. The end is logged here for programs only.
  static void tell(const coordinator::Note& note) {
    if (note.event == coordinator::kRoundFormed) return;
    const log::Level level = note.event == coordinator::kJobEnds   ? log::Level::kDebug
                             : coordinator::is_warning(note.event) ? log::Level::kWarning
                                                                   : log::Level::kInfo;
    log::tell(level, note.event, note.text, note.fields.is_null() ? Json::object() : note.fields);
  }

  static constexpr protocol::NodeId kOnlyNode = 0;
  net::Loop& loop_;
  std::string job_;
  std::function<void(protocol::CoordinatorMessage)> agent_;
  std::int64_t began_ms_;
  coordinator::Coordinator coordinator_;
  coordinator::OrderAnswered answer_;  // to the order that is being carried out
  coordinator::StacksDesk desk_;
  net::Timer desk_timer_;
  std::map<coordinator::StacksDesk::Ticket, OnStacks> askers_;
  coordinator::StacksDesk::Ticket last_ticket_ = 0;
  net::Timer hang_timer_;
  std::function<void(std::string_view)> recorder_;
  std::function<void(const std::string&, const coordinator::CheckJudged&)> on_judged_;
};

}  // namespace elastic::transport
