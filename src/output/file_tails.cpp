#include "src/output/file_tails.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::output {
namespace {

constexpr std::int64_t kLookMs = 1000;

using FileId = std::pair<dev_t, ino_t>;

}  // namespace

struct FileTails::Place {
  int local_rank = 0;
  bool is_err = false;
  bool is_content = false;
  std::string path;
  // Of the last look.
  std::optional<FileId> file = {};
  off_t size = 0;
  bool follows_gap = false;  // what comes next
  timespec changed = {};
};

struct FileTails::Places {
  std::size_t most_bytes = 0;
  std::vector<Place> all;
  std::vector<Piece> found;
};

FileTails::FileTails(net::Loop& loop, std::size_t most_bytes, std::function<void(const std::vector<Piece>&)> on_pieces)
    : loop_(loop),
      most_bytes_(most_bytes),
      on_pieces_(std::move(on_pieces)),
      places_(std::make_shared<Places>()),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }),
      timer_(loop) {}

FileTails::~FileTails() = default;

void FileTails::watch(int local_rank, pid_t pid) {
  added_.push_back({.local_rank = local_rank, .path = format("/proc/{}/fd/1", pid)});
  added_.push_back({.local_rank = local_rank, .is_err = true, .path = format("/proc/{}/fd/2", pid)});
  plan_look();
}

void FileTails::watch_content(int local_rank, std::string path) {
  added_.push_back({.local_rank = local_rank, .is_content = true, .path = std::move(path)});
  plan_look();
}

void FileTails::end_round() {
  added_.clear();
  places_ = std::make_shared<Places>();  // what the thread still finds of the old ones is of no use
  timer_.stop();
  timer_runs_ = false;
}

void FileTails::plan_look() {
  if (std::exchange(timer_runs_, true)) return;
  timer_.start(kLookMs, [this] {
    timer_runs_ = false;
    read_files();
    plan_look();
  });
}

// Asks for the name alone, which waits for no file system.
bool FileTails::may_be_regular(const Place& place) {
  if (place.is_content) return true;
  std::array<char, 64> name;
  const ssize_t size = readlink(place.path.c_str(), name.data(), name.size());
  const std::string_view text(name.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return text.starts_with('/') && !text.starts_with("/dev/pts/") && !text.starts_with("/dev/null");
}

void FileTails::read_files() {
  if (is_looking_) return;
  std::ranges::move(added_, std::back_inserter(places_->all));
  added_.clear();
  if (std::ranges::none_of(places_->all, may_be_regular)) return;
  is_looking_ = true;
  places_->most_bytes = most_bytes_;
  thread_.post(
      "the workers' output files", [places = places_] { read_all(*places); },
      [this, places = places_] {
        is_looking_ = false;
        if (places == places_) on_pieces_(places->found);
      });
}

void FileTails::read_all(Places& places) {
  places.found.clear();
  std::map<FileId, std::size_t> pieces;  // the piece of each file; SIZE_MAX: there is nothing new in it
  std::map<FileId, int> owners;
  for (Place& place : places.all) {
    struct stat facts {};
    if (stat(place.path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    const FileId id{facts.st_dev, facts.st_ino};
    const bool is_new = place.file != id;
    const off_t before = is_new ? facts.st_size : std::min(place.size, facts.st_size);
    const bool same_time =
        facts.st_mtim.tv_sec == place.changed.tv_sec && facts.st_mtim.tv_nsec == place.changed.tv_nsec;
    const bool has_same_content = !is_new && same_time && place.size == facts.st_size;
    if (is_new) place.follows_gap = facts.st_size > 0;
    place.file = id;
    place.size = facts.st_size;
    place.changed = facts.st_mtim;
    if (place.is_content) {
      if (has_same_content) continue;
      places.found.push_back({.local_rank = place.local_rank,
                              .is_whole = true,
                              .bytes = read_file(place.path, places.most_bytes).value_or("")});
      continue;
    }
    const auto [owner, is_first] = owners.try_emplace(id, place.local_rank);
    if (!is_first) {
      const bool is_of_another = owner->second != place.local_rank;
      if (is_of_another && pieces[id] != SIZE_MAX) places.found[pieces[id]].local_rank.reset();
      continue;
    }
    pieces[id] = SIZE_MAX;
    if (facts.st_size <= before) continue;
    const auto grown = static_cast<std::size_t>(facts.st_size - before);
    const std::size_t size = std::min(grown, places.most_bytes);
    pieces[id] = places.found.size();
    places.found.push_back(
        {.local_rank = place.local_rank,
         .is_err = place.is_err,
         .follows_gap = std::exchange(place.follows_gap, false) || size < grown,
         .bytes = read_file(place.path, size, facts.st_size - static_cast<off_t>(size)).value_or("")});
  }
}

}  // namespace elastic::output
