#include "src/net/names.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/net/limits.h"
#include "src/net/tcp.h"
#include "src/net/test_loop.h"

namespace elastic::net {
namespace {

using test::LoopThread;
using Addresses = std::vector<std::string>;

constexpr std::int64_t kNeverMs = 60'000;
constexpr int kA = 1;
constexpr int kAaaa = 28;

// The answer of the stand-in name server for a name.
struct Record {
  Addresses v4{};
  Addresses v6{};
  int failure = 0;               // a response code: 3 for NXDOMAIN, 2 for SERVFAIL
  std::vector<int> silent_on{};  // kinds of questions that it never answers
  bool too_long = false;         // too long for UDP: the answer comes over TCP only
};

// A name server on a port of 127.0.0.1, by UDP and TCP, on the loop of the test. It answers that other names do not
// exist.
class NameServer {
 public:
  explicit NameServer(Loop& loop) {
    // Both need the same port number, and another program may have it for TCP.
    while (udp_ < 0) {
      auto listener = Listener::open(loop, "127.0.0.1", 0, [this](auto stream) { accept(std::move(stream)); });
      ELASTIC_CHECK(listener.has_value());
      udp_ = bound_to((*listener)->port());
      listener_ = std::move(*listener);
    }
    watch_ = std::make_unique<ReadWatch>(loop, udp_, [this] { receive(); });
  }
  ~NameServer() {
    watch_.reset();
    close(udp_);
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;

  std::string place() const { return format("127.0.0.1:{}", listener_->port()); }

  std::map<std::string, Record> records;
  Addresses asked;  // "name A", "name AAAA tcp"

 private:
  static int bound_to(std::uint16_t port) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0) return fd;
    close(fd);
    return -1;
  }

  void receive() {
    std::array<char, 1500> bytes{};
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    auto* peer = reinterpret_cast<sockaddr*>(&from);
    const ssize_t count = recvfrom(udp_, bytes.data(), bytes.size(), 0, peer, &length);
    if (count <= 0) return;
    const std::string reply = answer(std::string(bytes.data(), static_cast<std::size_t>(count)), false);
    if (!reply.empty()) sendto(udp_, reply.data(), reply.size(), 0, peer, length);
  }

  void accept(std::unique_ptr<Stream> stream) {
    streams_.push_back(std::move(stream));
    Stream& peer = *streams_.back();
    auto bytes = std::make_shared<std::string>();
    peer.start({.on_data =
                    [this, &peer, bytes](std::span<const std::uint8_t> more) {
                      bytes->append(more.begin(), more.end());
                      while (bytes->size() >= 2 && bytes->size() >= 2 + number(*bytes, 0)) {
                        const std::string reply = answer(bytes->substr(2, number(*bytes, 0)), true);
                        bytes->erase(0, 2 + number(*bytes, 0));
                        peer.write(two(reply.size()) + reply);
                      }
                    },
                .on_end = {}});
  }

  static std::size_t number(const std::string& bytes, std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes.at(at)) << 8 |
                                    static_cast<unsigned char>(bytes.at(at + 1)));
  }
  static std::string two(std::size_t value) {
    return {static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
  }

  // The answer to a question; empty: none is sent.
  std::string answer(const std::string& question, bool by_tcp) {
    std::string name;
    std::size_t at = 12;
    while (const auto length = static_cast<std::size_t>(question.at(at))) {
      name += (name.empty() ? "" : ".") + question.substr(at + 1, length);
      at += 1 + length;
    }
    const auto kind = static_cast<int>(number(question, at + 1));
    asked.push_back(format("{} {}{}", name, kind == kA ? "A" : "AAAA", by_tcp ? " tcp" : ""));
    const auto known = records.find(name);
    const Record record = known == records.end() ? Record{.failure = 3} : known->second;
    if (std::ranges::find(record.silent_on, kind) != record.silent_on.end()) return {};
    const bool cut = record.too_long && !by_tcp;
    const Addresses addresses = cut ? Addresses() : kind == kA ? record.v4 : record.v6;
    const auto flags = static_cast<std::size_t>(0x8180 | (cut ? 0x0200 : 0) | record.failure);
    std::string reply = question.substr(0, 2) + two(flags) + two(1) + two(addresses.size()) + two(0) + two(0) +
                        question.substr(12, at + 5 - 12);
    for (const std::string& address : addresses) {
      std::array<char, 16> bytes{};
      const std::size_t size = kind == kA ? 4 : 16;
      ELASTIC_CHECK(inet_pton(kind == kA ? AF_INET : AF_INET6, address.c_str(), bytes.data()) == 1);
      reply += two(0xc00c) + two(static_cast<std::size_t>(kind)) + two(1) + two(0) + two(60) + two(size) +
               std::string(bytes.data(), size);
    }
    return reply;
  }

  int udp_ = -1;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ReadWatch> watch_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

// A directory for one test's files.
class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "names-XXXXXX").string();
    ELASTIC_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// A resolver on a running loop, with a name server of its own and files of its own.
class Names {
 public:
  explicit Names(const std::string& resolv_conf = "") {
    write_hosts("");
    setenv("CARES_HOSTS", hosts_.c_str(), 1);  // no other thread runs yet
    unsetenv("LOCALDOMAIN");
    unsetenv("RES_OPTIONS");
    const std::string conf = files_.write("resolv.conf", resolv_conf);
    thread_ = std::make_unique<LoopThread>();
    thread_->on_loop([&] {
      server = std::make_unique<NameServer>(thread_->loop());
      resolver = std::make_unique<Resolver>(
          thread_->loop(), NameSources{.resolv_conf = conf, .server = server->place(), .hosts_of_variable = true});
    });
  }
  ~Names() {
    thread_->on_loop([&] {
      resolver.reset();
      server.reset();
    });
    thread_.reset();
    unsetenv("CARES_HOSTS");
  }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  void write_hosts(const std::string& text) { hosts_ = files_.write("hosts", text); }
  void know(const std::string& name, Record record) {
    thread_->on_loop([&] { server->records[name] = std::move(record); });
  }
  Addresses asked() {
    Addresses all;
    thread_->on_loop([&] { all = server->asked; });
    std::ranges::sort(all);
    return all;
  }
  void on_loop(const std::function<void()>& task) { thread_->on_loop(task); }
  Loop& loop() { return thread_->loop(); }

  std::future<Result<Addresses>> begin(const std::string& host, std::int64_t timeout_ms) {
    auto promise = std::make_shared<std::promise<Result<Addresses>>>();
    const auto set = [promise](Result<Addresses> result) { promise->set_value(std::move(result)); };
    on_loop([&] { resolver->resolve(host, timeout_ms, set); });
    return promise->get_future();
  }
  Result<Addresses> resolve(const std::string& host, std::int64_t timeout_ms = kNeverMs) {
    auto found = begin(host, timeout_ms);
    if (found.wait_for(std::chrono::seconds(50)) == std::future_status::ready) return found.get();
    return fail(host, "the test has waited long enough");
  }
  // Returns the addresses, sorted as text, or the error's text.
  Addresses sorted(const std::string& host) {
    auto found = resolve(host);
    if (!found) return {found.error().text()};
    std::ranges::sort(*found);
    return *found;
  }

  std::unique_ptr<NameServer> server;
  std::unique_ptr<Resolver> resolver;

 private:
  Directory files_;
  std::string hosts_;
  std::unique_ptr<LoopThread> thread_;
};

std::string reason_of(const Result<Addresses>& result) {
  return result ? "found " + join(*result, " ") : result.error().reason;
}

TEST_CASE("a name has the addresses of both families that the name server gives") {
  Names names;
  names.know("node0.example", {.v4 = {"10.0.0.1", "10.0.0.2"}, .v6 = {"fd00::1"}});
  names.know("node1.example", {.v4 = {"10.0.1.1"}});
  names.know("node2.example", {.v6 = {"fd00:2::1"}});
  CHECK(names.sorted("node0.example") == Addresses{"10.0.0.1", "10.0.0.2", "fd00::1"});
  CHECK(names.sorted("node1.example") == Addresses{"10.0.1.1"});
  CHECK(names.sorted("node2.example") == Addresses{"fd00:2::1"});
}

TEST_CASE("addresses come in the order in which RFC 6724 has them tried") {
  Names names;
  names.know("node0.example", {.v6 = {"2001:db8::1", "::1"}});  // no host has the first one
  const auto found = names.resolve("node0.example");
  REQUIRE(found.has_value());
  CHECK(*found == Addresses{"::1", "2001:db8::1"});
}

TEST_CASE("a numeric address is its own answer, in the usual form, and nobody is asked") {
  Names names;
  CHECK(names.sorted("10.0.0.1") == Addresses{"10.0.0.1"});
  CHECK(names.sorted("0:0::0001") == Addresses{"::1"});
  CHECK(names.sorted("FD00::A") == Addresses{"fd00::a"});
  CHECK(names.sorted("::ffff:10.0.0.1") == Addresses{"::ffff:10.0.0.1"});
  CHECK(names.sorted("fe80::1%eth0") == Addresses{"fe80::1%eth0"});
  CHECK(names.asked().empty());
}

TEST_CASE("localhost and what is under it is this host, whatever the name server says") {
  Names names;
  names.know("localhost", {.v4 = {"10.6.6.6"}});
  names.know("a.localhost", {.v4 = {"10.6.6.6"}});
  for (const char* host : {"localhost", "LocalHost", "localhost.", "a.localhost"}) {
    CAPTURE(host);
    const auto found = names.resolve(host);
    REQUIRE(found.has_value());
    CHECK(*found == Addresses{"127.0.0.1", "::1"});
  }
  CHECK(names.asked().empty());
}

TEST_CASE("the hosts file comes before the name server, and is read anew for each name") {
  Names names;
  names.know("node0", {.v4 = {"10.0.0.9"}});
  names.write_hosts("10.1.1.1 node0.example node0\nfd00:1::1 NODE0\n");
  CHECK(names.sorted("node0") == Addresses{"10.1.1.1", "fd00:1::1"});
  CHECK(names.asked().empty());
  names.write_hosts("10.1.1.2 node0\n10.1.1.2 node0\n");
  CHECK(names.sorted("node0") == Addresses{"10.1.1.2"});
  names.write_hosts("10.1.1.2 node1\n");
  CHECK(names.sorted("node0") == Addresses{"10.0.0.9"});
}

TEST_CASE("short names are looked up in the search domains of resolv.conf") {
  Names names("search ns.svc.example svc.example\noptions ndots:5\n");
  names.know("job-0.svc.example", {.v4 = {"10.0.0.1"}});
  CHECK(names.sorted("job-0") == Addresses{"10.0.0.1"});
  CHECK(names.asked() == Addresses{"job-0.ns.svc.example A", "job-0.ns.svc.example AAAA", "job-0.svc.example A",
                                   "job-0.svc.example AAAA"});
}

TEST_CASE("an answer that is too long for UDP is fetched over TCP") {
  Names names;
  Record many{.too_long = true};
  for (std::size_t i = 0; i < limits::kAddressesOfName + 36; ++i) {
    many.v4.push_back(format("10.0.{}.{}", i / 10, i % 10));
  }
  names.know("many.example", many);
  const auto found = names.resolve("many.example");
  REQUIRE_MESSAGE(found.has_value(), found.error().text());
  CHECK(found->size() == limits::kAddressesOfName);
  const Addresses asked = names.asked();
  CHECK(std::ranges::find(asked, "many.example A tcp") != asked.end());
}

TEST_CASE("a name that does not exist, and one without an address, are errors that say so") {
  Names names;
  names.know("mail.example", {});
  const auto found = names.resolve("nobody.example");
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().what == "cannot look up the address of nobody.example");
  CHECK(found.error().reason == "no such name");
  CHECK(found.error().remedy == "check it, or give the numeric address or a line in /etc/hosts");
  CHECK(reason_of(names.resolve("mail.example")) == "the name exists, but has no address");
}

TEST_CASE("a name server that keeps silent is named when the time is over") {
  Names names;
  names.know("node0.example", {.silent_on = {kA, kAaaa}});
  const auto found = names.resolve("node0.example", 120);
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().reason == format("the name server ({}) does not answer within 120 ms", names.server->place()));
  CHECK(found.error().remedy.starts_with("check the network and /etc/resolv.conf"));
}

TEST_CASE("a question that is lost is asked again within the time") {
  Names names;
  names.know("node0.example", {.silent_on = {kA, kAaaa}});
  auto found = names.begin("node0.example", 6000);
  while (names.asked().size() < 2) std::this_thread::yield();
  names.know("node0.example", {.v4 = {"10.0.0.1"}});
  REQUIRE(found.wait_for(std::chrono::seconds(50)) == std::future_status::ready);
  CHECK(reason_of(found.get()) == "found 10.0.0.1");
}

TEST_CASE("where one family's answer never comes, the other's is given when the time is over") {
  Names names;
  names.know("node0.example", {.v4 = {"10.0.0.1"}, .silent_on = {kAaaa}});
  CHECK(reason_of(names.resolve("node0.example", 2000)) == "found 10.0.0.1");
}

TEST_CASE("a name server that fails, and one that is not there, are errors that name it") {
  Names names;
  names.know("node0.example", {.failure = 2});
  const std::string reason = format("the name server ({}) cannot be reached, or has failed", names.server->place());
  CHECK(reason_of(names.resolve("node0.example")) == reason);
  names.on_loop([&] { names.server.reset(); });
  CHECK(reason_of(names.resolve("node1.example")) == reason);
}

TEST_CASE("what can be no name is told without asking") {
  Names names;
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", "it is empty"},
      {".", "it is empty"},
      {"10.0.0.300", "it is neither an IPv4 address (four numbers from 0 to 255) nor a host name"},
      {"10.0.0", "it is neither an IPv4 address (four numbers from 0 to 255) nor a host name"},
      {"fd00::1::2", "it is neither an IPv6 address nor a host name"},
      {"[::1]", "it is neither an IPv6 address nor a host name"},
      {"node0:29400", "it is neither an IPv6 address nor a host name"},
      {"node 0", "a host name may contain only letters (a to z), digits, '-', '_' and dots"},
      {"kn\xc3\xb6rr", "a host name may contain only letters (a to z), digits, '-', '_' and dots"},
      {"node0..example", "it begins with a dot or has two dots in a row"},
      {".example", "it begins with a dot or has two dots in a row"},
      {std::string(64, 'a') + ".example", "a part between dots has at most 63 characters"},
      {std::string(254, 'a'), "a host name has at most 253 characters"},
  };
  for (const auto& [host, reason] : rows) {
    CAPTURE(host);
    CHECK(reason_of(names.resolve(host)) == reason);
  }
  CHECK(names.resolve("no de").error().what == "cannot look up the address of 'no de'");
  CHECK(names.asked().empty());
}

TEST_CASE("every answer comes in a later turn of the loop") {
  Names names;
  names.write_hosts("10.1.1.1 node0\n");
  for (const char* host : {"10.0.0.1", "localhost", "node0", "no de"}) {
    CAPTURE(host);
    bool told = false;
    bool told_at_once = true;
    std::promise<void> done;
    names.on_loop([&] {
      names.resolver->resolve(host, kNeverMs, [&](const Result<Addresses>&) {
        told = true;
        done.set_value();
      });
      told_at_once = told;
    });
    done.get_future().wait();
    CHECK_FALSE(told_at_once);
  }
}

TEST_CASE("names are looked up side by side: a silent one holds up no other") {
  Names names;
  names.know("silent.example", {.silent_on = {kA, kAaaa}});
  names.know("node0.example", {.v4 = {"10.0.0.1"}});
  const auto never = [](const Result<Addresses>&) { FAIL("it ends with the resolver"); };
  names.on_loop([&] { names.resolver->resolve("silent.example", kNeverMs, never); });
  CHECK(names.sorted("node0.example") == Addresses{"10.0.0.1"});
}

TEST_CASE("a resolver that ends calls back nobody, also when it ends in a call-back") {
  Names names;
  names.know("silent.example", {.silent_on = {kA, kAaaa}});
  std::promise<void> done;
  names.on_loop([&] {
    const auto never = [](const Result<Addresses>&) { FAIL("the resolver has ended"); };
    names.resolver->resolve("silent.example", kNeverMs, never);
    names.resolver->resolve("10.0.0.1", kNeverMs, [&](const Result<Addresses>&) {
      names.resolver.reset();
      done.set_value();
    });
    names.resolver->resolve("10.0.0.2", kNeverMs, never);
  });
  done.get_future().wait();
  // Two turns of the loop later there was no call.
  names.on_loop([] {});
  names.on_loop([] {});
}

TEST_CASE("a call-back may ask for the next name") {
  Names names;
  names.know("node0.example", {.v4 = {"10.0.0.1"}});
  std::promise<Result<Addresses>> promise;
  const auto set = [&](Result<Addresses> next) { promise.set_value(std::move(next)); };
  names.on_loop([&] {
    names.resolver->resolve("nobody.example", kNeverMs,
                            [&](const Result<Addresses>&) { names.resolver->resolve("node0.example", kNeverMs, set); });
  });
  CHECK(reason_of(promise.get_future().get()) == "found 10.0.0.1");
}

}  // namespace
}  // namespace elastic::net
