#include "src/process/port_holder.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/text.h"
#include "src/process/descendants.h"
#include "src/process/guardian.h"

namespace elastic::process {
namespace {

namespace fs = std::filesystem;

struct ListeningSocket {
  std::string inode;
  std::string uid;
};

// A line of /proc/net/tcp: "sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode".
std::optional<ListeningSocket> listening_socket(const char* table, std::uint16_t port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
    constexpr std::string_view kListen = "0A";
    if (state == kListen && local.ends_with(format(":{:04X}", port))) return ListeningSocket{inode, uid};
  }
  return {};
}

bool has_socket(const fs::path& descriptors, const std::string& inode) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(descriptors, error)) {
    if (fs::read_symlink(entry.path(), error) == "socket:[" + inode + "]") return true;
  }
  return false;
}

std::optional<std::string> process_with_socket(const std::string& inode) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (!parse_int(name) || !has_socket(entry.path() / "fd", inode)) continue;
    ProcessFacts holder = process_facts(static_cast<pid_t>(*parse_int(name)));
    // The user knows elastic-run by its guardian, and that is the process to end.
    if (holder.name == kLauncherName) holder = process_facts(holder.parent);
    return format("process {} ({})", holder.pid, printable(holder.name));
  }
  return {};
}

}  // namespace

std::optional<std::string> port_holder(std::uint16_t port) {
  for (const char* table : {"/proc/net/tcp6", "/proc/net/tcp"}) {
    const auto socket = listening_socket(table, port);
    if (!socket) continue;
    if (auto holder = process_with_socket(socket->inode)) return holder;
    return format("another user's process (uid {})", socket->uid);
  }
  return {};
}

}  // namespace elastic::process
