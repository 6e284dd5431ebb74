#include "health/evidence_reader/worker_samples.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::evidence {
namespace {

std::string text_of(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text;
  if (!file) return text;
  char piece[4096];
  while (text.size() < kProcFileBytes) {
    const ssize_t count = read(file.get(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return text;
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
  const std::vector<hang::WorkerSamples> workers = sample_twice(task);
  hang::EvidenceAnswer answer;
  answer.facts.ranks = hang::rank_facts_of(workers);
  answer.facts.storage_hangs = hang::storage_hangs_for(workers);
  answer.lines = hang::process_lines(workers);
  return answer;
}

}  // namespace elastic::evidence
