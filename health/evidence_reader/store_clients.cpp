#include "health/evidence_reader/store_clients.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "health/evidence/tcp_table.h"
#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

// A node with a hundred thousand connections has a table of so many bytes. The rest is not read.
// | clients of the worker store: the kernel's tables of connections; descriptors of a process | {kMostTableBytes} each;
// {kMostDescriptors} | it is not known which ranks the others are |
constexpr std::size_t kMostTableBytes = 32 * 1024 * 1024;
// Descriptors of a process that are looked at.
constexpr int kMostDescriptors = 65'536;

// The connections that somebody waits over, by their sockets.
std::map<std::uint64_t, std::string> sockets_of(const std::vector<std::string>& peers) {
  const std::set<std::string_view> wanted(peers.begin(), peers.end());
  std::map<std::uint64_t, std::string> sockets;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    read_tcp_table(read_file(table, kMostTableBytes).value_or(""), [&](std::string own, std::uint64_t inode) {
      if (wanted.contains(own)) sockets.emplace(inode, std::move(own));
    });
  }
  return sockets;
}

void look_at(std::int64_t pid, std::int32_t rank, std::map<std::uint64_t, std::string>& sockets,
             std::vector<hang::StoreClient>& clients) {
  const std::string folder = format("/proc/{}/fd", pid);
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  for (int i = 0; i < kMostDescriptors && !sockets.empty(); ++i) {
    const dirent* entry = readdir(entries);
    if (entry == nullptr) break;
    std::array<char, 64> target{};
    const ssize_t length = readlinkat(dirfd(entries), entry->d_name, target.data(), target.size());
    if (length <= 0) continue;
    const auto found = sockets.find(socket_inode({target.data(), static_cast<std::size_t>(length)}));
    if (found == sockets.end()) continue;
    clients.push_back({.peer = std::move(found->second), .rank = rank});
    sockets.erase(found);
  }
  closedir(entries);
}

}  // namespace

hang::EvidenceAnswer find_store_clients(const hang::EvidenceTask& task) {
  hang::EvidenceAnswer answer;
  std::map<std::uint64_t, std::string> sockets = sockets_of(task.peers);
  // A child may have inherited its parent's connection: it is the parent's.
  for (const hang::EvidenceTask::Worker& worker : task.workers)
    look_at(worker.pid, worker.rank, sockets, answer.clients);
  for (const hang::EvidenceTask::Worker& worker : task.workers) {
    for (const std::int64_t child : worker.children) look_at(child, worker.rank, sockets, answer.clients);
  }
  return answer;
}

}  // namespace elastic::evidence
