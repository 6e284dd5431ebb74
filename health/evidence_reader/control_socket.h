#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "health/evidence/control_answer.h"
#include "health/evidence/flight_recorder.h"
#include "health/hang/hang_facts.h"
#include "health/hang_evidence/evidence_part.h"
#include "health/hang_evidence/recorder_facts.h"
#include "src/base/unique_fd.h"

namespace elastic::evidence {

// The control server of one worker while its recorders are asked, if the worker has one. Waits for nothing.
class ControlSocket {
 public:
  // Descriptors that it has open at once.
  static constexpr std::size_t kDescriptors = kRecorderHandlers.size();

  // Asks. The server is where the environment names it that the worker has begun with, or what it has started has, else
  // at `common`, as that process sees it; it must be served by one of them.
  ControlSocket(const hang::EvidenceTask::Worker& worker, const std::optional<std::string>& common);
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Takes what has come.
  void go_on();
  bool is_waited_for() const;
  // What has not come is late: it has had `span` ("7 s").
  void give_up(const std::string& span);

  // Once it is not waited for: what all recorders say, or why that is not known. One that fails spoils the other:
  // nothing would be known of its groups, as if the worker had launched nothing there.
  hang::RankRecorder said();

 private:
  struct Question {
    UniqueFd socket = {};  // none: it is answered, or was not asked
    ControlAnswer answer = {};
    std::optional<FlightFacts> dump = {};
  };
  void go_on(Question& question);
  void keep_dump(Question& question, ControlAnswer::Dump dump);

  bool is_asked_ = false;
  std::array<Question, kRecorderHandlers.size()> questions_;
  hang::SourceFacts why_not_;  // kNotAsked: nothing has failed
};

}  // namespace elastic::evidence
