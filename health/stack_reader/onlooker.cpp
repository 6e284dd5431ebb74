#include "health/stack_reader/onlooker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "health/stacks/kernel_state.h"
#include "health/stacks/python_stacks.h"
#include "src/base/result.h"
#include "src/base/text.h"

namespace elastic::stacks {
namespace {

constexpr std::size_t kSmallFile = 4096;
constexpr std::size_t kMostMaps = 8 * 1024 * 1024;
constexpr std::int64_t kMostNative = 100'000;

// The beginning of a file; empty where it cannot be read.
std::string text_of_file(const std::string& path, std::size_t most) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text;
  if (!file) return text;
  char piece[4096];
  while (text.size() < most) {
    const ssize_t count = read(file.get(), piece, std::min(sizeof piece, most - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return text;
}

std::string folder_of(int pid) { return format("/proc/{}", pid); }

std::string wait_of(const std::string& folder) {
  const KernelState state = kernel_state(text_of_file(folder + "/stat", kSmallFile));
  return wait_text(state.state, text_of_file(folder + "/wchan", kSmallFile),
                   text_of_file(folder + "/syscall", kSmallFile));
}

std::int64_t count_threads(int pid) {
  DIR* folder = opendir((folder_of(pid) + "/task").c_str());
  if (folder == nullptr) return 0;
  std::int64_t count = 0;
  while (count < kMostNative) {
    const dirent* entry = readdir(folder);
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

std::string why_not(int pid, int error) {
  if (error == ENOENT || error == ESRCH) return "it has ended";
  if (error != EACCES && error != EPERM) return "its memory cannot be opened: " + errno_text(error);
  RightFacts facts{.our_user = geteuid(), .its_user = user_of(text_of_file(folder_of(pid) + "/status", kSmallFile))};
  struct stat about {};
  // The files in its directory are root's where it is not dumpable.
  if (stat((folder_of(pid) + "/mem").c_str(), &about) == 0) facts.files_user = about.st_uid;
  const auto scope = parse_int(text_of_file("/proc/sys/kernel/yama/ptrace_scope", kSmallFile));
  facts.yama_scope = static_cast<int>(std::clamp<std::int64_t>(scope.value_or(0), 0, 3));
  return no_right_because(facts);
}

ThreadLook look_at_thread(int pid, PythonThread&& thread) {
  ThreadLook look{.id = static_cast<std::int64_t>(thread.native_id),
                  .frames = std::move(thread.frames),
                  .is_cut = thread.is_cut,
                  .is_torn = thread.is_torn};
  if (thread.native_id != 0) look.wait = wait_of(format("{}/task/{}", folder_of(pid), thread.native_id));
  return look;
}

}  // namespace

bool DescriptorMemory::read(std::uint64_t address, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t count = pread(file_.get(), out.data(), out.size(), static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    address += static_cast<std::uint64_t>(count);
  }
  return true;
}

ProcessLook Onlooker::kernel_look(int pid) {
  ProcessLook look{.pid = pid};
  const KernelState state = kernel_state(text_of_file(folder_of(pid) + "/stat", kSmallFile));
  look.name = state.name;
  look.threads.push_back({.id = pid, .wait = wait_of(format("{}/task/{}", folder_of(pid), pid))});
  const bool is_gone = state.state == '?' || state.state == 'Z' || state.state == 'X';
  if (is_gone) {
    look.problem = "it has ended";
    look.threads.front().wait = wait_text('Z', "", "");
  }
  look.native_threads = std::max<std::int64_t>(count_threads(pid) - 1, 0);
  return look;
}

ProcessLook Onlooker::read_process(int pid, UniqueFd memory, int error) {
  ProcessLook look = kernel_look(pid);
  if (!look.problem.empty()) return look;
  if (!memory) {
    look.problem = why_not(pid, error);
    return look;
  }
  DescriptorMemory readable(std::move(memory));
  read_python(pid, readable, look);
  return look;
}

const Onlooker::Found& Onlooker::in_file(int pid, const MappedFile& file) {
  const auto known = files_.find(file.identity);
  if (known != files_.end()) return known->second;
  // As the process sees it: it may have another root. A program that was replaced is still there as its exe.
  const std::string path = file.is_gone ? folder_of(pid) + "/exe" : folder_of(pid) + "/root" + file.path;
  UniqueFd opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened && !file.is_gone) {
    opened = UniqueFd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  }
  DescriptorMemory bytes(std::move(opened));
  return files_.emplace(file.identity, bytes ? python_in(bytes) : std::nullopt).first->second;
}

void Onlooker::read_python(int pid, DescriptorMemory& memory, ProcessLook& look) {
  const std::string maps = text_of_file(folder_of(pid) + "/maps", kMostMaps);
  look.problem = "it is no Python process, or one whose interpreter was not found";
  for (const MappedFile& file : python_files(maps)) {
    const Found& found = in_file(pid, file);
    if (!found) continue;
    std::optional<std::uint64_t> version;
    if (found->version_symbol) {
      version = number_at<std::uint64_t>(memory, address_in(file, *found, *found->version_symbol));
    }
    auto stacks = python_stacks(memory, address_in(file, *found, found->runtime), version);
    if (!stacks) {
      look.problem = stacks.error().reason;
      continue;
    }
    look.problem.clear();
    look.python = stacks->version;
    look.is_cut = stacks->is_cut;
    const auto count = static_cast<std::int64_t>(stacks->threads.size());
    look.native_threads = std::max<std::int64_t>(look.native_threads + 1 - count, 0);
    // The main thread is the one with the process's number; in another pid namespace the oldest.
    auto main = std::ranges::find(stacks->threads, static_cast<std::uint64_t>(pid), &PythonThread::native_id);
    if (main == stacks->threads.end()) main = stacks->threads.end() - 1;
    std::rotate(stacks->threads.begin(), main, main + 1);
    look.threads.clear();
    for (PythonThread& thread : stacks->threads) look.threads.push_back(look_at_thread(pid, std::move(thread)));
    return;
  }
}

}  // namespace elastic::stacks
