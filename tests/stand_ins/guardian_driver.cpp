// A launcher under a real guardian that does what its standard input says, a line each, and answers on
// standard output. With "cgroup" as its argument the workers are in a cgroup of ours.
//
//   worker PATH ARGUMENT...   starts a worker                     worker PID
//   lease MILLISECONDS        from now on; "none": none           lease UNTIL (CLOCK_BOOTTIME)
//   renew TIMES MILLISECONDS  as often, one after the other       renewed
//   word ADDRESS PORT TEXT    what the guardian is to say         word
//   word                      nothing any more                    word
//   exit STATUS               when the workers have been killed
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/text.h"
#include "src/net/loop.h"
#include "src/process/cgroup.h"
#include "src/process/clock.h"
#include "src/process/guardian.h"
#include "src/process/tree.h"

namespace {

using namespace elastic;

void answer(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) _exit(9);
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Driver {
 public:
  Driver(process::GuardianChannel channel, process::SpawnContext context)
      : link_(loop_, std::move(channel),
              {.on_signal = [this](int signal) { heard(signal); }, .on_lost = [] { _exit(8); }}),
        workers_(loop_, with_guardian(std::move(context)),
                 {.on_exit = [](int, ExitStatus status) { answer(format("exited {}", status.signal)); },
                  .on_all_gone = [this] { std::exit(status_); }}),
        input_(loop_, STDIN_FILENO, [this] { read_input(); }) {}

  void run() { loop_.run(); }

 private:
  process::SpawnContext with_guardian(process::SpawnContext context) {
    context.guardian = link_.descriptor();
    return context;
  }

  // How many run at this moment, when it goes on.
  void heard(int signal) { answer(format("signal {} with {} running", signal, workers_.survivors().size())); }

  void read_input() {
    std::array<char, 8192> buffer;
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count <= 0) _exit(7);
    input_text_.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = input_text_.find('\n')) != std::string::npos;) {
      std::istringstream line(input_text_.substr(0, end));
      input_text_.erase(0, end + 1);
      obey(line);
    }
  }

  void obey(std::istringstream& line) {
    std::string order;
    line >> order;
    if (order == "worker") return start(line);
    if (order == "lease") return answer(format("lease {}", set_lease(line)));
    if (order == "renew") return renew(line);
    if (order == "word") return set_word(line);
    if (order != "exit") _exit(6);
    line >> status_;
    workers_.signal_groups(SIGKILL);
    workers_.expect_all_gone();
  }

  void start(std::istringstream& line) {
    process::Command command;
    for (std::string word; line >> word;) command.arguments.push_back(word);
    command.path = command.arguments.at(0);
    const auto pid = workers_.start(next_rank_++, command);
    answer(pid ? format("worker {}", *pid) : pid.error().text());
  }

  std::int64_t set_lease(std::istringstream& line) {
    std::int64_t milliseconds = 0;
    if (!(line >> milliseconds)) {
      link_.set_lease({});
      return 0;
    }
    const std::int64_t until_ms = process::boottime_ms() + milliseconds;
    link_.set_lease(until_ms);
    return until_ms;
  }

  void renew(std::istringstream& line) {
    int times = 0;
    std::int64_t milliseconds = 0;
    line >> times >> milliseconds;
    for (int i = 0; i < times; ++i) {
      // The first half begins a new lease each time, of which the guardian is told.
      if (i < times / 2) link_.set_lease({});
      link_.set_lease(process::boottime_ms() + milliseconds);
    }
    answer("renewed");
  }

  void set_word(std::istringstream& line) {
    std::string address;
    std::uint16_t port = 0;
    std::string text;
    line >> address >> port >> text;
    const auto to = process::socket_address(address, port);
    if (to) link_.set_death_notice(std::array{*to}, bytes_of(text));
    if (!to) link_.set_death_notice({}, {});
    answer("word");
  }

  net::Loop loop_;
  process::GuardianLink link_;
  process::WorkerTree workers_;
  net::ReadWatch input_;
  std::string input_text_;
  int next_rank_ = 0;
  int status_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  process::SpawnContext context{.inherited = process::InheritedState::capture()};
  const bool wants_cgroup = argc > 1 && std::string(argv[1]) == "cgroup";
  const std::unique_ptr<process::Cgroup> cgroup = wants_cgroup ? process::Cgroup::make() : nullptr;
  if (wants_cgroup && !cgroup) {
    answer("no cgroup");
    return 5;
  }
  if (cgroup) {
    context.cgroup = cgroup->descriptor();
    context.cgroup_procs = cgroup->procs_descriptor();
  }
  auto channel = process::split_off_launcher(
      {.signals = {SIGTERM, SIGINT}, .cgroup = cgroup ? cgroup->path() : "", .descriptors_below = 1024});
  if (!channel) return 4;
  answer(format("launcher {}", getpid()));
  Driver(std::move(*channel), context).run();
}
