#include "src/warm/import_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "src/base/check.h"
#include "src/base/overloaded.h"
#include "src/base/patience.h"
#include "src/base/text.h"
#include "src/process/children.h"
#include "src/warm/server_text.h"

namespace elastic::warm {
namespace {

constexpr std::size_t kMostDescriptors = 3;

// When the directory was changed; -1: it is not there.
std::int64_t changed_ns(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return -1;
  return std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

// A packet, and the descriptor that came along. Empty: the other side has gone. Nothing: there is none now.
struct Packet {
  std::string text;
  UniqueFd descriptor;
};
std::optional<Packet> receive_packet(int socket) {
  static constexpr std::size_t kMostBytes = 64 * 1024;
  Packet out{std::string(kMostBytes, '\0'), {}};
  iovec part{out.text.data(), out.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  out.text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  const cmsghdr* attached = CMSG_FIRSTHDR(&header);
  if (attached != nullptr && attached->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
    out.descriptor = UniqueFd(descriptor);
  }
  return out;
}

// Of a child of this process that has not been reaped.
UniqueFd open_child(pid_t pid) {
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return process && process::is_child_at(process.get()) ? std::move(process) : UniqueFd();
}

bool send_packet(int socket, const std::string& text, std::span<const int> descriptors = {}) {
  ELASTIC_CHECK(descriptors.size() <= kMostDescriptors);
  if (text.size() >= kPacketBytes) return false;
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* attached = CMSG_FIRSTHDR(&header);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(attached), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
}

}  // namespace

ImportServer::ImportServer(net::Loop& loop, process::WorkerTree& tree, Handlers handlers)
    : loop_(loop), tree_(tree), handlers_(std::move(handlers)), timer_(loop), deadline_(loop) {}

Status ImportServer::start(const Start& how) {
  ELASTIC_CHECK(!channel_);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket for the import server", errno);
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::vector<std::string> arguments = how.options;
  arguments.insert(arguments.end(), {"-c", kBoot, kServerText, how.is_module ? "module" : "script", how.target,
                                     how.wanted, "", how.running > 0 ? format("{}", how.running) : ""});
  const auto pid = tree_.start_aside({.path = how.python,
                                      .arguments = std::move(arguments),
                                      .environment = how.environment,
                                      .variables = how.variables,
                                      .standard_output = how.output,
                                      .standard_error = how.output,
                                      .channel = theirs.get()});
  if (!pid) return std::unexpected(pid.error());
  channel_ = std::move(ours);
  is_ready_ = false;
  wanted_ = 0;
  ordered_.clear();
  await("imported its modules", how.deadline_ms);
  watch_ = std::make_unique<net::ReadWatch>(loop_, channel_.get(), [this] { receive(); });
  return {};
}

void ImportServer::receive() {
  while (watch_) {
    auto packet = receive_packet(channel_.get());
    if (!packet) return;
    if (packet->text.empty()) return hung_up();
    const auto report = read_report(packet->text);
    if (!report) return gone("the import server says what it cannot mean", false);
    std::visit(Overloaded{
                   [&](const Ready& ready) { on_ready(ready); },
                   [&](const Refused& refused) { gone(refused.why, true); },
                   [&](const Struck& struck) { handlers_.on_struck(struck); },
                   [&](const Forked&) {
                     if (!ordered_.empty()) ordered_.pop_front();
                   },
                   [&](const Parked& parked) {
                     if (!ordered_.empty() && ordered_.front() > 0) --ordered_.front();
                     waiting_.push_back({parked.pid, open_child(parked.pid), std::move(packet->descriptor)});
                     if (this->parked() >= wanted_) deadline_.stop();
                     handlers_.on_parked();
                   },
               },
               *report);
  }
}

void ImportServer::on_ready(const Ready& ready) {
  places_.clear();
  for (const std::string& place : ready.places) places_.emplace_back(place, changed_ns(place));
  is_ready_ = true;
  deadline_.stop();
  handlers_.on_ready(ready);
}

bool ImportServer::are_modules_the_same() const {
  for (const auto& [place, when_ns] : places_) {
    if (changed_ns(place) != when_ns) return false;
  }
  return true;
}

void ImportServer::has_ended(ExitStatus status) {
  if (watch_) receive();  // it may have said why
  if (channel_) gone(format("the import server {}", status.text()), !is_ready_ && status.signal == 0);
}

// It ends, or does what it must not: its end tells.
void ImportServer::hung_up() {
  watch_.reset();
  tree_.kill_aside();
}

void ImportServer::await(const char* what, std::int64_t deadline_ms) {
  deadline_.start(deadline_ms, [this, what, deadline_ms] {
    gone(format("the import server has not {} within {} s", what, deadline_ms / 1000), !is_ready_);
  });
}

void ImportServer::gone(const std::string& why, bool for_good) {
  end();
  handlers_.on_gone(why, for_good);
}

void ImportServer::end() {
  deadline_.stop();
  watch_.reset();
  channel_ = UniqueFd();
  kill_waiting();  // those that have orders go on: they need no server any more
  tree_.end_aside();
}

void ImportServer::kill_waiting() {
  for (const Waiting& each : waiting_) {
    if (each.process) (void)syscall(SYS_pidfd_send_signal, each.process.get(), SIGKILL, nullptr, 0);
  }
  waiting_.clear();  // one that is not killed ends when its socket is closed
}

void ImportServer::park(int count, std::int64_t deadline_ms) {
  if (!channel_ || count <= parked()) return;
  wanted_ = count;
  await("forked workers", deadline_ms);
  const int missing = count - parked() - on_their_way();
  if (missing <= 0) return;
  ordered_.push_back(missing);
  (void)send_packet(channel_.get(), park_packet(missing));
}

int ImportServer::on_their_way() const { return std::accumulate(ordered_.begin(), ordered_.end(), 0); }

Status ImportServer::give(std::span<const Order> orders, int cgroup_procs) {
  ELASTIC_CHECK(giving_.empty() && orders.size() <= waiting_.size());
  for (const Order& order : orders) {
    giving_.push_back({std::move(waiting_[giving_.size()]), {}, false});
    const std::array<int, kMostDescriptors> descriptors{order.standard_output, order.standard_error, cgroup_procs};
    const std::size_t count = cgroup_procs < 0 ? 2 : 3;
    if (send_packet(giving_.back().worker.socket.get(), order_packet(order.variables, order.arguments),
                    std::span(descriptors).first(count))) {
      continue;
    }
    withdraw();
    return fail("one that waited for a rank", "it has ended, or cannot be told its rank");
  }
  // Those that are left were for more ranks than there are.
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(orders.size()));
  kill_waiting();
  for (std::size_t index = 0; index < giving_.size(); ++index) {
    giving_[index].watch =
        std::make_unique<net::ReadWatch>(loop_, giving_[index].worker.socket.get(), [this, index] { answered(index); });
  }
  timer_.start(patient_ms(kOrderMs), [this] { give_up("it did not take its rank in time"); });
  return {};
}

void ImportServer::answered(std::size_t index) {
  Giving& one = giving_[index];
  char answer = 0;
  if (recv(one.worker.socket.get(), &answer, 1, MSG_DONTWAIT) != 1 || answer != kTaken) {
    return give_up("it has ended");
  }
  one.has_taken = true;
  if (!std::ranges::all_of(giving_, &Giving::has_taken)) return;
  timer_.stop();
  std::vector<pid_t> pids;
  for (const Giving& each : giving_) {
    (void)send(each.worker.socket.get(), &kGo, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    pids.push_back(each.worker.pid);
  }
  giving_.clear();
  handlers_.on_taken(std::move(pids));
}

void ImportServer::give_up(const char* why) {
  withdraw();
  handlers_.on_taken(fail("one that waited for a rank", why));
}

void ImportServer::withdraw() {
  timer_.stop();
  for (Giving& each : giving_) waiting_.push_back(std::move(each.worker));
  giving_.clear();
  kill_waiting();
}

}  // namespace elastic::warm
