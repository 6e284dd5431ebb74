#include "rendezvous/transport/entry_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "rendezvous/discovery/entry.h"
#include "rendezvous/transport/limits.h"
#include "src/base/read_file.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/clock.h"
#include "src/process/random.h"

namespace elastic::transport {

using discovery::RegisterFailure;

namespace entry_file {
namespace {

constexpr std::int64_t kAnotherTryMs = 10;

bool is_hopeless(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == EACCES || error == EPERM ||
         error == EROFS || error == ENAMETOOLONG || error == ELOOP;
}

std::unexpected<RegisterFailure> failed(const std::string& what, int error) {
  return std::unexpected(RegisterFailure{format("{}: {}", what, errno_text(error)), is_hopeless(error)});
}
std::unexpected<RegisterFailure> busy(std::string reason) {
  return std::unexpected(RegisterFailure{std::move(reason), false});
}

// "." of "name", "/" of "/name".
std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The contents of a file; the value of errno if it cannot be read.
std::expected<std::string, int> contents(const std::string& path) {
  auto text = read_file(path, limits::kEntryFileBytes + 1);
  if (text && text->size() > limits::kEntryFileBytes) return std::unexpected(EFBIG);
  return text;
}

// The text of the file of entries; empty if there is no file. It is an error if the directory is missing, too.
Outcome text_of(const std::string& path) {
  auto text = contents(path);
  if (text) return std::move(*text);
  if (text.error() == EFBIG) {
    return std::unexpected(RegisterFailure{
        format("it is larger than {} MiB, so elastic-run has not written it", limits::kEntryFileBytes >> 20), true});
  }
  if (text.error() != ENOENT) return failed("it cannot be read", text.error());
  struct stat facts {};
  if (stat(directory_of(path).c_str(), &facts) != 0) {
    return failed(format("its directory {}", printable(directory_of(path))), errno);
  }
  return std::string();
}

Outcome entry_in(const std::string& text, const std::string& job) {
  auto entry = discovery::entry_in_file(text, job);
  if (!entry) return std::unexpected(RegisterFailure{entry.error().reason, true});
  return std::move(*entry);
}

// Makes a file with that text. Returns 0, or the value of errno; then there is no such file.
int write_new(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return errno;
  int error = 0;
  for (std::string_view left = text; !left.empty() && error == 0;) {
    const ssize_t count = ::write(file.get(), left.data(), left.size());
    if (count > 0) left.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) error = errno;
  }
  if (error == 0 && fsync(file.get()) != 0 && errno != EINVAL) error = errno;
  if (error != 0) unlink(path.c_str());
  return error;
}

// The failure if the file system has no reliable locks: two nodes could both write, and each begin the job.
RegisterFailure no_locks(const std::string& why) {
  return {format("its file system has no reliable locks: {}; name a file on one that makes hard links, as NFS and "
                 "Lustre do, or have the nodes meet at an endpoint",
                 why),
          true};
}

bool has_no_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EXDEV || error == EMLINK;
}

// The lock beside a file, from when try_once() returns 0. The destructor releases it.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : path_(path),
        name_(path + ".lock"),
        mark_(format("{:016x}", process::random_number())),
        own_(path + "." + mark_) {}
  ~Lock() {
    if (taken_ && held()) unlink(name_.c_str());
    if (made_) unlink(own_.c_str());
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // The name of a file that no other process uses.
  std::string another_name() const { return own_ + ".new"; }

  // Makes the file that the lock is a hard link to. Returns 0 or the value of errno.
  int prepare() {
    const int error = write_new(own_, mark_);
    made_ = error == 0;
    return error;
  }
  // Returns 0 if the lock is taken, EEXIST if another process has it, EILSEQ if link(2) succeeded and the lock is
  // another's nevertheless; else the value of errno.
  int try_once() {
    const int error = link(own_.c_str(), name_.c_str()) == 0 ? 0 : errno;
    taken_at_ms_ = process::monotonic_ms();
    // NFS may lose the answer and repeat the request, which then fails. The number of links tells whether the first
    // request succeeded, on file systems that count them.
    struct stat facts {};
    const bool is_linked = stat(own_.c_str(), &facts) == 0 && facts.st_nlink == 2;
    taken_ = is_linked || (error == 0 && held());
    return taken_ ? 0 : error == 0 ? EILSEQ : error;
  }
  // Why the lock is lost. Other nodes break a lock only if it is old.
  RegisterFailure taken_away() const {
    if (process::monotonic_ms() - taken_at_ms_ > kStaleLockMs / 2) return {"another node has broken its lock", false};
    return no_locks(format("it reported {} as made, but this node does not have it", printable(name_)));
  }
  bool held() const { return contents(name_) == mark_; }

  // Breaks a lock that is old by the file system's own clock, since its holder has died. If another process has taken
  // the lock in the meantime it is put back; that process checks its lock before it writes.
  void break_if_stale() const {
    struct stat lock {};
    struct stat now {};
    const auto stale = contents(name_);
    if (!stale || stat(name_.c_str(), &lock) != 0 || utimensat(AT_FDCWD, own_.c_str(), nullptr, 0) != 0 ||
        stat(own_.c_str(), &now) != 0 || (now.st_mtim.tv_sec - lock.st_mtim.tv_sec) * 1000 <= kStaleLockMs) {
      return;
    }
    const std::string aside = own_ + ".stale";
    if (rename(name_.c_str(), aside.c_str()) != 0) return;
    if (contents(aside) != *stale) (void)!link(aside.c_str(), name_.c_str());
    unlink(aside.c_str());
    if (is_mark(*stale)) unlink((path_ + "." + *stale).c_str());
  }

 private:
  static bool is_mark(const std::string& text) {
    return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  }

  const std::string path_;
  const std::string name_;
  const std::string mark_;
  const std::string own_;
  std::int64_t taken_at_ms_ = 0;
  bool made_ = false;
  bool taken_ = false;
};

// Replaces the entry. The caller holds the lock and has found the expected entry.
Outcome replace(const std::string& path, const Lock& lock, const std::string& before, const std::string& job,
                const std::string& desired) {
  const auto after = discovery::file_with_entry(before, job, desired);
  if (!after) return std::unexpected(RegisterFailure{after.error().reason, true});
  if (after->empty()) {
    if (!lock.held()) return std::unexpected(lock.taken_away());
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return failed("it cannot be removed", errno);
    return desired;
  }
  const std::string fresh = lock.another_name();
  if (const int error = write_new(fresh, *after); error != 0) return failed("it cannot be written", error);
  int error = 0;
  const bool held = lock.held();
  if (held && rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (!held || error != 0) unlink(fresh.c_str());
  if (error != 0) return failed("it cannot be written", error);
  if (!held) return std::unexpected(lock.taken_away());
  return desired;
}

}  // namespace

Outcome read(const std::string& path, const std::string& job) {
  auto text = text_of(path);
  return text ? entry_in(*text, job) : std::unexpected(text.error());
}

Outcome compare_set(const std::string& path, const std::string& job, const std::string& expected,
                    const std::string& desired) {
  Lock lock(path);
  if (const int error = lock.prepare(); error != 0) return failed("no file can be made beside it", error);
  const std::int64_t until_ms = process::monotonic_ms() + kLockPatienceMs;
  for (;;) {
    const int error = lock.try_once();
    if (error == EILSEQ) return std::unexpected(lock.taken_away());
    if (has_no_links(error))
      return std::unexpected(no_locks(format("no hard link can be made: {}", errno_text(error))));
    if (error != 0 && error != EEXIST) return failed("its lock cannot be made", error);
    const auto text = text_of(path);
    if (!text) return std::unexpected(text.error());
    auto there = entry_in(*text, job);
    // If another entry is there the call has failed, and needs no lock.
    if (!there || *there != expected) return there;
    if (error == 0) return replace(path, lock, *text, job, desired);
    lock.break_if_stale();
    if (process::monotonic_ms() >= until_ms) {
      return busy(format("another node holds {}.lock, or died less than {} s ago and left it", printable(path),
                         kStaleLockMs / 1000));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kAnotherTryMs));
  }
}

std::string unshared_kind(const std::string& path) {
  struct statfs facts {};
  if (statfs(directory_of(path).c_str(), &facts) != 0) return {};
  switch (static_cast<std::uint64_t>(facts.f_type)) {
    case EXT4_SUPER_MAGIC: return "ext4";
    case XFS_SUPER_MAGIC: return "xfs";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlay";
    case TMPFS_MAGIC: return "tmpfs";
    default: return {};
  }
}

}  // namespace entry_file

namespace {

// How long the answer of the thread is waited for.
constexpr std::int64_t kAnswerMs = 2'500;
static_assert(2 * kAnswerMs <= entry_file::kStaleLockMs);

}  // namespace

EntryFile::EntryFile(net::Loop& loop, std::string path, std::string job)
    : path_(std::move(path)),
      job_(std::move(job)),
      timer_(loop),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }) {}

void EntryFile::read(Done done) {
  ask([path = path_, job = job_] { return entry_file::read(path, job); }, std::move(done));
}

void EntryFile::compare_set(std::string expected, std::string desired, Done done) {
  ask([path = path_, job = job_, expected = std::move(expected),
       desired = std::move(desired)] { return entry_file::compare_set(path, job, expected, desired); },
      std::move(done));
}

void EntryFile::look_whether_shared(std::function<void(const std::string& kind)> tell) {
  ask([path = path_]() -> entry_file::Outcome { return entry_file::unshared_kind(path); },
      [tell = std::move(tell)](const discovery::RegisterAnswer& kind) {
        if (kind && !kind->empty()) tell(*kind);
      });
}

void EntryFile::forget() {
  timer_.stop();
  next_ = nullptr;
  done_ = nullptr;
}

void EntryFile::ask(Work work, Done done) {
  ++asked_;
  next_ = std::move(work);
  done_ = std::move(done);
  timer_.start(kAnswerMs, [this] {
    const Done call = std::exchange(done_, nullptr);
    next_ = nullptr;
    call(entry_file::busy("its file system does not answer"));
  });
  if (!busy_) begin();
}

void EntryFile::begin() {
  busy_ = true;
  const auto outcome = std::make_shared<entry_file::Outcome>();
  thread_.post(
      path_, [outcome, work = std::exchange(next_, nullptr)] { *outcome = work(); },
      [this, outcome, asked = asked_] {
        busy_ = false;
        if (next_) return begin();
        if (asked != asked_ || !done_) return;
        timer_.stop();
        const Done call = std::exchange(done_, nullptr);
        call(std::move(*outcome));
      });
}

bool EntryFile::hangs() const { return thread_.stuck_for(0).has_value(); }

std::string EntryFile::name() const { return format("file {}", printable(path_)); }

}  // namespace elastic::transport
