#include "health/progress/nvrx_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "health/progress/limits.h"
#include "src/base/text.h"

namespace elastic::progress {
namespace {

constexpr std::array kPhases = std::to_array<std::pair<std::string_view, Phase>>({
    {"setup", Phase::kSetup},
    {"init", Phase::kSetup},
    {"warmup", Phase::kSetup},
    {"step", Phase::kTrain},
    {"train", Phase::kTrain},
    {"eval", Phase::kEval},
    {"evaluation", Phase::kEval},
    {"validation", Phase::kEval},
    {"test", Phase::kEval},
    {"checkpoint", Phase::kCheckpoint},
    {"checkpointing", Phase::kCheckpoint},
    {"save", Phase::kCheckpoint},
    {"load", Phase::kCheckpoint},
});

}  // namespace

Phase phase_of_section(std::string_view name) {
  for (const auto& [known, phase] : kPhases) {
    if (known == name) return phase;
  }
  return Phase::kUnknown;
}

NvrxSession::Answer NvrxSession::feed(std::string_view bytes, const OnWord& on_word) {
  waiting_.append(bytes);
  Answer answer;
  std::size_t at = 0;
  while (waiting_.size() - at >= nvrx::kLengthBytes) {
    const std::string_view rest = std::string_view(waiting_).substr(at);
    const std::size_t length = nvrx::length_of(rest);
    if (length > limits::kNvrxMessageBytes) {
      answer.problem = format("a message of {} bytes is longer than {}", length, limits::kNvrxMessageBytes);
      break;
    }
    if (rest.size() - nvrx::kLengthBytes < length) break;
    const auto message = nvrx::read_message(rest.substr(nvrx::kLengthBytes, length));
    if (!message) {
      answer.problem = message.error().text();
      break;
    }
    answer.bytes += answer_to(*message, on_word);
    at += nvrx::kLengthBytes + length;
  }
  waiting_.erase(0, at);
  if (!answer.problem.empty()) answer.bytes += nvrx::error(answer.problem);
  return answer;
}

std::string NvrxSession::answer_to(const nvrx::Message& message, const OnWord& on_word) {
  if (std::holds_alternative<nvrx::Authkey>(message)) return nvrx::ok();
  if (std::holds_alternative<nvrx::Init>(message)) {
    has_begun_ = true;
    open_.clear();
    return nvrx::ok_with_settings(sections_);
  }
  if (!has_begun_) return nvrx::error("InitMsg has to come first");
  if (const auto* section = std::get_if<nvrx::Section>(&message)) return answer_to_section(*section, on_word);
  if (std::holds_alternative<nvrx::Heartbeat>(message)) on_word({.phase = phase(), .section = section()});
  return nvrx::ok();
}

std::string NvrxSession::answer_to_section(const nvrx::Section& section, const OnWord& on_word) {
  const auto is_open = std::ranges::find(open_, section.name);
  switch (section.action) {
    case nvrx::Section::Action::kOpen:
      if (std::ranges::find(sections_, section.name) == sections_.end()) {
        return nvrx::error(format("section '{}' is not among those of --progress-sections", printable(section.name)));
      }
      if (is_open != open_.end()) {
        return nvrx::error(format("section '{}' is already open", printable(section.name)));
      }
      open_.push_back(section.name);
      break;
    case nvrx::Section::Action::kClose:
      if (is_open == open_.end()) return nvrx::error(format("section '{}' is not open", printable(section.name)));
      open_.erase(is_open);
      break;
    case nvrx::Section::Action::kCloseAll: open_.clear();
  }
  if (phase() == Phase::kTrain) has_trained_ = true;
  on_word({.iteration = section.iteration, .phase = phase(), .section = this->section()});
  return nvrx::ok();
}

// That of the innermost section whose name is known; between sections of a training that has begun, the training's.
Phase NvrxSession::phase() const {
  for (auto each = open_.rbegin(); each != open_.rend(); ++each) {
    if (const Phase known = phase_of_section(*each); known != Phase::kUnknown) return known;
  }
  return open_.empty() && has_trained_ ? Phase::kTrain : Phase::kUnknown;
}

}  // namespace elastic::progress
