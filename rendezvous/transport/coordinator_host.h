#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/network_check.h"
#include "rendezvous/coordinator/recording.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/net/loop.h"
#include "src/status/snapshot.h"

namespace elastic::transport {

// The coordinator of a job of one node, in the same process as its only agent: messages are handed over directly. It
// needs no timer, since such a job waits for no other node. Times are milliseconds since it was made.
class CoordinatorHost {
 public:
  CoordinatorHost(net::Loop& loop, coordinator::CoordinatorConfig config)
      : loop_(loop),
        began_ms_(loop.now_ms()),
        coordinator_(config, coordinator::recorded_check(std::make_unique<coordinator::NetworkCheck>(),
                                                         [this](const std::string& line) {
                                                           if (recorder_) recorder_(line);
                                                         })) {}

  // Sets the receiver of the coordinator's messages. To be called before the agent begins.
  void set_agent(std::function<void(protocol::CoordinatorMessage)> agent) { agent_ = std::move(agent); }

  // From now on `write` gets the recording of the coordinator, line by line. To be called before the agent begins.
  void record(const std::string& job, std::function<void(std::string_view line)> write) {
    recorder_ = std::move(write);
    recorder_(coordinator::recording_head(job, coordinator_.config(), true));
  }

  // Called when the check of a round is over.
  void on_judged(std::function<void(const coordinator::CheckJudged& check)> call) { on_judged_ = std::move(call); }

  // The status of the job.
  status::Coordinator status(const std::string& job) const {
    status::Coordinator out;
    out.jobs.push_back(coordinator_.status(loop_.now_ms() - began_ms_, limits::kStatusNodes));
    out.jobs.back().id = job;
    return out;
  }

  void from_agent(const protocol::AgentMessage& message) {
    const coordinator::MessageReceived event{kOnlyNode, message};
    const std::int64_t now_ms = loop_.now_ms() - began_ms_;
    if (recorder_) recorder_(coordinator::recording_line(event, now_ms));
    for (coordinator::Effect& effect : coordinator_.on_event(event, now_ms)) {
      if (auto* send = std::get_if<coordinator::Send>(&effect)) agent_(std::move(send->message));
      if (const auto* note = std::get_if<coordinator::Note>(&effect)) tell(*note);
      if (const auto* check = std::get_if<coordinator::CheckJudged>(&effect); check != nullptr && on_judged_)
        on_judged_(*check);
    }
  }

 private:
  // The node in the same process logs its rounds and the job's end by itself. The end is logged here for programs only.
  static void tell(const coordinator::Note& note) {
    if (note.event == coordinator::kRoundFormed) return;
    const log::Level level = note.event == coordinator::kJobEnds ? log::Level::kDebug : log::Level::kInfo;
    log::tell(level, note.event, note.text, note.fields.is_null() ? Json::object() : note.fields);
  }

  static constexpr protocol::NodeId kOnlyNode = 0;
  net::Loop& loop_;
  std::int64_t began_ms_;
  coordinator::Coordinator coordinator_;
  std::function<void(std::string_view)> recorder_;
  std::function<void(protocol::CoordinatorMessage)> agent_;
  std::function<void(const coordinator::CheckJudged&)> on_judged_;
};

}  // namespace elastic::transport
