#include "health/evidence_reader/worker_samples.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

// By this name PyTorch (torch 2.5 and later) calls the thread of its NCCL engine that looks for /exception_dump. With
// gloo and with the engine nccl2 there is none.
constexpr std::string_view kThreadOfDumps = "pt_nccl_heartbt";
// Threads of a process that are looked at.
constexpr std::size_t kMostThreads = 4096;

std::string text_of(const std::string& path) { return read_file(path, kProcFileBytes).value_or(""); }

// Whether a process has a thread of this name. It takes no lock that the process may hold for long.
bool has_thread(std::int64_t pid, std::string_view name) {
  const std::string folder = format("/proc/{}/task", pid);
  DIR* const threads = opendir(folder.c_str());
  if (threads == nullptr) return false;
  bool is_found = false;
  std::size_t looked_at = 0;
  while (const dirent* thread = is_found ? nullptr : readdir(threads)) {
    if (thread->d_name[0] == '.') continue;
    if (++looked_at > kMostThreads) break;
    is_found = trim(text_of(format("{}/{}/comm", folder, thread->d_name))) == name;
  }
  closedir(threads);
  return is_found;
}

bool reads_dump_key(const hang::EvidenceTask::Worker& worker) {
  const auto is_its = [](std::int64_t pid) { return has_thread(pid, kThreadOfDumps); };
  return is_its(worker.pid) || std::ranges::any_of(worker.children, is_its);
}

std::vector<hang::WorkerSamples> look(const hang::EvidenceTask& task) {
  std::vector<hang::WorkerSamples> all;
  for (const hang::EvidenceTask::Worker& worker : task.workers) {
    hang::WorkerSamples& samples = all.emplace_back();
    samples.rank = worker.rank;
    samples.pid = worker.pid;
    samples.main_thread.second = sample_of(worker.pid, worker.pid);
    for (const std::int64_t child : worker.children) samples.children.push_back({.second = sample_of(child)});
  }
  return all;
}

}  // namespace

ProcessSample sample_of(std::int64_t pid, std::int64_t thread) {
  const std::string process = format("/proc/{}", pid);
  const std::string folder = thread == 0 ? process : format("{}/task/{}", process, thread);
  const std::string stat = text_of(folder + "/stat"), wchan = text_of(folder + "/wchan");
  const std::string syscall = text_of(folder + "/syscall"), status = text_of(process + "/status");
  const std::string io = text_of(process + "/io");
  return read_process({.stat = stat, .status = status, .wchan = wchan, .syscall = syscall, .io = io});
}

std::vector<hang::WorkerSamples> sample_twice(const hang::EvidenceTask& task) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const std::vector<hang::WorkerSamples> first = look(task);
  std::this_thread::sleep_until(began + std::chrono::milliseconds(kBetweenSamplesMs));
  std::vector<hang::WorkerSamples> all = look(task);
  // Of many workers each is looked at after as many others both times.
  const auto between = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
  const auto ticks_a_second = static_cast<std::int64_t>(std::max(sysconf(_SC_CLK_TCK), 1L));
  const auto complete = [&](hang::ProcessPair& pair, const hang::ProcessPair& before) {
    pair.first = before.second;
    pair.ms_between = between;
    pair.ticks_between = static_cast<std::uint64_t>(between * ticks_a_second / 1000);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    complete(all[i].main_thread, first[i].main_thread);
    for (std::size_t child = 0; child < all[i].children.size(); ++child) {
      complete(all[i].children[child], first[i].children[child]);
    }
  }
  return all;
}

hang::EvidenceAnswer look_at_processes(const hang::EvidenceTask& task) {
  std::vector<hang::WorkerSamples> workers = sample_twice(task);
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].reads_dump_key = reads_dump_key(task.workers[i]);
  hang::EvidenceAnswer answer;
  answer.facts.ranks = hang::rank_facts_of(workers);
  answer.facts.storage_hangs = hang::storage_hangs_for(workers);
  answer.lines = hang::process_lines(workers);
  return answer;
}

}  // namespace elastic::evidence
