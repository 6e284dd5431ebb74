#include "cli/run/error_file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/read_file.h"
#include "src/base/unique_fd.h"
#include "src/report/error_file.h"

namespace elastic::run {

// The side thread shares it, which may hang for longer than the round lasts.
struct ErrorFileWatch::Round {
  struct Worker {
    std::string path;
    bool is_read = false;   // the side thread does it
    bool is_again = false;  // the file has been written since that began
    bool is_told = false;
  };
  protocol::RoundNumber number = 0;
  UniqueFd inotify;
  std::map<int, std::size_t> ranks;  // by the number of the watch
  std::vector<Worker> workers;       // by local rank
  std::unique_ptr<net::ReadWatch> watch;
};

namespace {

// torch writes into the file itself; other programs write another file and move it there.
constexpr std::uint32_t kWritten = IN_CLOSE_WRITE | IN_MOVED_TO;

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

ErrorFileWatch::ErrorFileWatch(net::Loop& loop, net::SideThread& files, OnWritten on_written)
    : loop_(loop), files_(files), on_written_(std::move(on_written)) {}

ErrorFileWatch::~ErrorFileWatch() { end_round(); }

void ErrorFileWatch::begin_round(protocol::RoundNumber number, std::vector<std::string> paths) {
  end_round();
  if (paths.empty() || paths.front().empty()) return;  // nothing is kept
  const auto round = std::make_shared<Round>();
  round->number = number;
  round->inotify = UniqueFd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!round->inotify) return;
  for (std::string& path : paths) round->workers.push_back({.path = std::move(path)});
  round_ = round;
  const auto add = [round] {
    for (std::size_t i = 0; i < round->workers.size(); ++i) {
      const std::string directory = directory_of(round->workers[i].path);
      const int watch = inotify_add_watch(round->inotify.get(), directory.c_str(), kWritten | IN_ONLYDIR);
      if (watch >= 0) round->ranks[watch] = i;
    }
  };
  files_.post(directory_of(round->workers.front().path), add, [this, weak = std::weak_ptr(round)] {
    const auto known = weak.lock();
    if (!known || known != round_) return;
    known->watch = std::make_unique<net::ReadWatch>(loop_, known->inotify.get(), [this, weak] {
      if (const auto same = weak.lock()) look_for_files(same);
    });
  });
}

void ErrorFileWatch::end_round() {
  if (round_) round_->watch.reset();
  round_.reset();
}

void ErrorFileWatch::look_for_files(const std::shared_ptr<Round>& round) {
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  const ssize_t got = ::read(round->inotify.get(), buffer.data(), buffer.size());
  for (ssize_t at = 0; at < got;) {
    inotify_event event;
    std::memcpy(&event, buffer.data() + at, sizeof event);
    const char* name = buffer.data() + at + sizeof event;
    at += static_cast<ssize_t>(sizeof event + event.len);
    const auto found = round->ranks.find(event.wd);
    if (event.len == 0 || (event.mask & kWritten) == 0 || found == round->ranks.end()) continue;
    if (name_of(round->workers[found->second].path) == name) read(round, found->second);
  }
}

void ErrorFileWatch::read(const std::shared_ptr<Round>& round, std::size_t local_rank) {
  Round::Worker& worker = round->workers[local_rank];
  if (worker.is_told) return;
  worker.is_again = worker.is_read;
  if (std::exchange(worker.is_read, true)) return;
  const auto is_whole = std::make_shared<bool>(false);
  const auto work = [path = worker.path, is_whole] {
    const auto text = read_file(path, report::kErrorFileBytes + 1);
    *is_whole = text && report::is_whole_record(*text);
  };
  files_.post(worker.path, work, [this, weak = std::weak_ptr(round), local_rank, is_whole] {
    const auto known = weak.lock();
    if (!known || known != round_) return;
    Round::Worker& of = known->workers[local_rank];
    of.is_read = false;
    if (*is_whole) {
      of.is_told = true;
      on_written_(known->number, static_cast<int>(local_rank));
    } else if (std::exchange(of.is_again, false)) {
      read(known, local_rank);
    }
  });
}

}  // namespace elastic::run
