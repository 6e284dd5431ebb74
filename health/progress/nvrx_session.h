#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/progress/kinds.h"
#include "health/progress/nvrx_message.h"

namespace elastic::progress {

// What a rank says by a heartbeat or a section of NVRx: it makes progress.
struct NvrxWord {
  std::optional<std::int64_t> iteration = {};  // nothing: it does not say which
  Phase phase = Phase::kUnknown;
  std::string section = {};  // the innermost that is open; empty: none
  bool operator==(const NvrxWord&) const = default;
};

// The phase that a section's name stands for: setup, init and warmup; step and train; eval, evaluation, validation and
// test; checkpoint, checkpointing, save and load. All others: unknown.
Phase phase_of_section(std::string_view name);

// The monitor's end of one connection of a rank's NVRx client (nvrx_message.h). It waits for nothing and sets no limit:
// what the rank says goes to on_word.
class NvrxSession {
 public:
  // The sections that the client may open. They outlive the session.
  explicit NvrxSession(const std::vector<std::string>& sections) : sections_(sections) {}

  struct Answer {
    std::string bytes;    // to be sent
    std::string problem;  // not empty: the client is not understood; the connection ends behind the bytes
  };
  // Takes what has arrived.
  Answer feed(std::string_view bytes, const std::function<void(const NvrxWord&)>& on_word);

 private:
  using OnWord = std::function<void(const NvrxWord&)>;
  std::string answer_to(const nvrx::Message& message, const OnWord& on_word);
  std::string answer_to_section(const nvrx::Section& section, const OnWord& on_word);
  Phase phase() const;
  std::string section() const { return open_.empty() ? "" : open_.back(); }

  const std::vector<std::string>& sections_;
  std::string waiting_;  // a message that has not arrived whole
  bool has_begun_ = false;
  bool has_trained_ = false;
  std::vector<std::string> open_;  // the innermost last; each one once
};

}  // namespace elastic::progress
