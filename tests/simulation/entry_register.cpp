#include "tests/simulation/entry_register.h"

#include <utility>

namespace elastic::simulation {

using discovery::RegisterAnswer;
using discovery::RegisterFailure;

void EntryRegister::read(int host, Done done) {
  ask(
      host, [this]() -> RegisterAnswer { return entry_; }, std::move(done));
}

void EntryRegister::compare_set(int host, std::string expected, std::string desired, Done done) {
  const auto work = [this, expected = std::move(expected), desired = std::move(desired)]() -> RegisterAnswer {
    if (entry_ != expected) return entry_;
    if (refusals_ > 0) return std::unexpected(RegisterFailure{"it cannot be written"});
    trace_.add(desired);
    if (changed) changed(entry_, desired);
    return entry_ = desired;
  };
  ask(host, work, std::move(done));
}

void EntryRegister::ask(int host, Work work, Done done) {
  const auto waiting = std::make_shared<Done>(std::move(done));
  const auto answer = [waiting](const RegisterAnswer& with) {
    if (const Done call = std::exchange(*waiting, nullptr)) call(with);
  };
  timeline_.after(way_ms(), [this, host, work = std::move(work), answer] {
    if (!reaches(host)) return;
    timeline_.after(way_ms(), [this, host, answer, with = work()] {
      if (reaches(host)) answer(with);
    });
  });
  timeline_.after(kAnswerMs, [answer] { answer(std::unexpected(RegisterFailure{"it does not answer"})); });
}

// A call of a host that is frozen is on its way already, and its answer waits for the thaw.
bool EntryRegister::reaches(int host) const {
  const auto cut = cuts_.find(host);
  return network_.is_up(host) && (cut == cuts_.end() || cut->second <= 0);
}

Ms EntryRegister::way_ms() {
  return random_.range(0, longest_delay_ms_) + (more_ms_ > 0 ? random_.range(0, more_ms_) : 0);
}

void EntryRegister::calm() {
  cuts_.clear();
  more_ms_ = 0;
  refusals_ = 0;
}

}  // namespace elastic::simulation
