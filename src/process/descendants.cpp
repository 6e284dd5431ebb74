#include "src/process/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

#include "src/base/read_file.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::process {
namespace {

// A file of /proc; empty if it cannot be read. The guardian, whose memory has to stay small, reads them, too.
std::string text_of(const std::string& path) { return read_file(path, 4096).value_or(""); }

// "4711 (comm) S 1 ...": comm may itself contain blanks and parentheses.
ProcessFacts parse_stat(const std::string& text) {
  ProcessFacts facts;
  const std::size_t open_at = text.find('(');
  const std::size_t close_at = text.rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos || close_at + 4 > text.size()) return facts;
  facts.pid = static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
  facts.name = text.substr(open_at + 1, close_at - open_at - 1);
  facts.state = text[close_at + 2];
  // The fields after the state, of which the first is the fourth of proc(5).
  const char* at = text.c_str() + close_at + 3;
  for (int field = 4; field <= 22; ++field) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(at, &end, 10);
    if (end == at) break;
    at = end;
    if (field == 4) facts.parent = static_cast<pid_t>(value);
    if (field == 5) facts.group = static_cast<pid_t>(value);
    if (field == 6) facts.session = static_cast<pid_t>(value);
    if (field == 22) facts.started = value;
  }
  return facts;
}

std::vector<ProcessFacts> all_processes() {
  std::vector<ProcessFacts> all;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    ProcessFacts facts = parse_stat(text_of(std::string("/proc/") + entry->d_name + "/stat"));
    if (facts.pid != 0) all.push_back(std::move(facts));
  }
  closedir(proc);
  return all;
}

}  // namespace

ProcessFacts process_facts(pid_t pid) {
  const std::string folder = format("/proc/{}", pid);
  ProcessFacts facts = parse_stat(text_of(folder + "/stat"));
  facts.pid = pid;
  facts.waiting = text_of(folder + "/wchan");
  if (facts.waiting == "0") facts.waiting.clear();
  return facts;
}

std::string command_line(pid_t pid) {
  std::string text = text_of(format("/proc/{}/cmdline", pid));
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string status_text(pid_t pid) { return text_of(format("/proc/{}/status", pid)); }

std::string executable_of(pid_t pid) {
  std::array<char, 4096> path{};
  const ssize_t size = readlink(format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

std::string describe(const ProcessFacts& facts) {
  const std::string waiting = facts.waiting.empty() ? "" : ", in " + facts.waiting;
  return format("process {} ({}, state {}{})", facts.pid, printable(facts.name), facts.state, waiting);
}

void signal_process(const ProcessFacts& found, int signal_number) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, found.pid, 0)));
  // If the pid still names the same process, so does the descriptor, which is older.
  if (process_facts(found.pid).started != found.started) return;
  if (pidfd) {
    syscall(SYS_pidfd_send_signal, pidfd.get(), signal_number, nullptr, 0);
  } else {
    kill(found.pid, signal_number);
  }
}

void kill_process(const ProcessFacts& found) { signal_process(found, SIGKILL); }

bool processes_can_be_seen() { return access("/proc/self/stat", R_OK) == 0; }

// When a parent ends between two reads of /proc, its child gets another parent, at last `ancestor` itself, so the walk
// upwards starts anew.
bool is_descendant(pid_t process, pid_t ancestor) {
  constexpr int kAttempts = 8;
  constexpr int kGenerations = 1024;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    pid_t at = process;
    for (int generation = 0; generation < kGenerations; ++generation) {
      const ProcessFacts facts = parse_stat(text_of(format("/proc/{}/stat", at)));
      if (facts.pid == 0) break;
      if (facts.parent == ancestor) return true;
      if (facts.parent <= 1) return false;
      at = facts.parent;
    }
  }
  return false;
}

std::vector<ProcessFacts> descendants_of(pid_t ancestor) {
  const std::vector<ProcessFacts> all = all_processes();
  std::unordered_map<pid_t, std::vector<const ProcessFacts*>> children;
  for (const ProcessFacts& facts : all) children[facts.parent].push_back(&facts);
  std::vector<ProcessFacts> found;
  std::vector<pid_t> parents{ancestor};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const ProcessFacts* child : children[parent]) {
      parents.push_back(child->pid);
      if (child->state != 'Z' && child->state != 'X') found.push_back(*child);
    }
  }
  return found;
}

}  // namespace elastic::process
