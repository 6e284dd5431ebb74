#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rendezvous/discovery/entry.h"
#include "tests/simulation/network.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/trace.h"

namespace elastic::simulation {

// The file that has the entry of one job. Each call takes effect at one moment, perhaps long after its
// caller has given it up, or without its caller hearing of it.
class EntryRegister {
 public:
  using Done = std::function<void(const discovery::RegisterAnswer&)>;
  // As transport::EntryFile.
  static constexpr Ms kAnswerMs = 2'500;

  EntryRegister(Timeline& timeline, Trace& trace, const Network& network, Random random, Ms longest_delay_ms)
      : timeline_(timeline), trace_(trace), network_(network), random_(random), longest_delay_ms_(longest_delay_ms) {}

  // Called by a process of this host. `done` is called once: with the answer, or after kAnswerMs with a failure.
  void read(int host, Done done);
  void compare_set(int host, std::string expected, std::string desired, Done done);

  // Called with the entry before and after each change; an empty text is none.
  std::function<void(const std::string& before, const std::string& after)> changed;

  // Faults. Each is undone by as many calls as have begun it.
  void cut(int host) { ++cuts_[host]; }
  void heal(int host) { --cuts_[host]; }
  // Each way takes up to so much longer.
  void slow(Ms more_ms) { more_ms_ += more_ms; }
  // Writes are refused, as by a full file system.
  void refuse(int more) { refusals_ += more; }
  void calm();

 private:
  using Work = std::function<discovery::RegisterAnswer()>;
  void ask(int host, Work work, Done done);
  bool reaches(int host) const;
  Ms way_ms();

  Timeline& timeline_;
  Trace& trace_;
  const Network& network_;
  Random random_;
  Ms longest_delay_ms_;
  std::string entry_;
  std::map<int, int> cuts_;  // by host
  Ms more_ms_ = 0;
  int refusals_ = 0;
};

}  // namespace elastic::simulation
