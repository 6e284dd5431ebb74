#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "src/net/loop.h"

// Helpers for unit tests of code that runs on a loop: a loop on a thread of its own, and blocking clients.
namespace elastic::net::test {

// A running loop. Objects that belong to it are made, used and destroyed in on_loop().
class LoopThread {
 public:
  LoopThread() {
    std::signal(SIGPIPE, SIG_IGN);
    ELASTIC_CHECK(pipe(wake_.data()) == 0);
    std::promise<void> ready;
    thread_ = std::thread([&] {
      Loop loop;
      {
        ReadWatch watch(loop, wake_[0], [this] { carry_out(); });
        loop_ = &loop;
        ready.set_value();
        loop.run();
      }
    });
    ready.get_future().wait();
  }
  ~LoopThread() {
    on_loop([this] { loop_->stop(); });
    thread_.join();
    close(wake_[0]);
    close(wake_[1]);
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  Loop& loop() { return *loop_; }

  // Runs the task in a turn of the loop, and returns when it is done.
  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back([&] {
        task();
        done.set_value();
      });
    }
    ELASTIC_CHECK(write(wake_[1], "", 1) == 1);
    done.get_future().wait();
  }

 private:
  void carry_out() {
    char byte = 0;
    ELASTIC_CHECK(read(wake_[0], &byte, 1) == 1);
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  std::array<int, 2> wake_{};
  Loop* loop_ = nullptr;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::thread thread_;
};

// An event on the loop that a test waits for.
class Event {
 public:
  void happen() { promise_.set_value(); }
  // False if it has not happened after ten seconds.
  bool wait() { return future_.wait_for(std::chrono::seconds(10)) == std::future_status::ready; }

 private:
  std::promise<void> promise_;
  std::future<void> future_ = promise_.get_future();
};

// A blocking connection to a port on this machine. Each call fails after ten seconds.
class Client {
 public:
  explicit Client(std::uint16_t port, const char* address = "127.0.0.1") {
    const bool v6 = std::string_view(address).find(':') != std::string_view::npos;
    fd_ = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{10, 0};
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in v4_address{};
    v4_address.sin_family = AF_INET;
    v4_address.sin_port = htons(port);
    sockaddr_in6 v6_address{};
    v6_address.sin6_family = AF_INET6;
    v6_address.sin6_port = htons(port);
    if (v6) {
      inet_pton(AF_INET6, address, &v6_address.sin6_addr);
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&v6_address), sizeof v6_address) == 0;
    } else {
      inet_pton(AF_INET, address, &v4_address.sin_addr);
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&v4_address), sizeof v4_address) == 0;
    }
  }
  ~Client() { end(); }
  Client(Client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(std::exchange(other.connected_, false)) {}
  Client& operator=(Client&&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  // False if the peer does not take it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Reads that many bytes, or fewer if the connection ends before.
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t count = recv(fd_, bytes.data() + have, size - have, 0);
      if (count <= 0) break;
      have += static_cast<std::size_t>(count);
    }
    bytes.resize(have);
    return bytes;
  }

  // Whether the peer has closed the connection, and nothing is left to read.
  bool ended() {
    char byte = 0;
    const ssize_t count = recv(fd_, &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

  // Ends the sending direction; receiving goes on.
  void finish_sending() { shutdown(fd_, SHUT_WR); }
  // Closes, or with `abruptly` resets the connection.
  void end(bool abruptly = false) {
    if (fd_ < 0) return;
    const linger reset{1, 0};
    if (abruptly) setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace elastic::net::test
