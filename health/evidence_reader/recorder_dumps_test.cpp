#include "health/evidence_reader/recorder_dumps.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/text.h"

namespace elastic::evidence {
namespace {

using hang::RankRecorder;
using hang::Source;

constexpr std::int64_t kPatient = 60'000;

std::string dump_of(int number) {
  return format(
      R"({{"version": "2.10", "entries": [{{"record_id": 0, "process_group": ["0", "default_pg"],
          "collective_seq_id": {}, "profiling_name": "gloo:all_reduce", "retired": false, "is_p2p": false}}]}})",
      number);
}

// A directory for pipes and dumps, and ranks whose recorders are threads of the test's.
class Place {
 public:
  Place() {
    char name[] = "/tmp/recorder_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
    places_ = {.pipe = path_ + "/pipe_", .files = {path_ + "/dump_"}};
  }
  ~Place() { std::filesystem::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string pipe(int rank) const { return format("{}{}.pipe", *places_.pipe, rank); }
  std::string file(int rank) const { return format("{}{}", places_.files[0], rank); }
  void write(int rank, const std::string& text) const { std::ofstream(file(rank)) << text; }
  hang::RecorderPlaces& places() { return places_; }

  std::vector<RankRecorder> read(const std::vector<int>& ranks, std::int64_t patience_ms,
                                 std::int64_t round_age_s = 1000, const std::function<Status()>& before_reading = {},
                                 pid_t pid = 0) {
    return read_recorders(task(ranks, round_age_s, pid), places_, patience_ms, before_reading);
  }
  // What the ranks write without being asked here.
  std::vector<RankRecorder> await(const std::vector<int>& ranks, std::int64_t patience_ms, std::int64_t least_ms = 0) {
    return await_dumps(task(ranks, 1000, 0), places_, patience_ms, least_ms);
  }

 private:
  static hang::EvidenceTask task(const std::vector<int>& ranks, std::int64_t round_age_s, pid_t pid) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    hang::EvidenceTask task{.world_size = 4, .round_began_us = (now.tv_sec - round_age_s) * 1'000'000};
    for (const int rank : ranks) task.workers.push_back({.rank = rank, .pid = pid});
    return task;
  }

  std::string path_;
  hang::RecorderPlaces places_;
};

// A recorder of a rank: when its pipe is written to, it does `dump`.
class Recorder {
 public:
  Recorder(const Place& place, int rank, std::function<void()> dump) {
    REQUIRE(mkfifo(place.pipe(rank).c_str(), 0600) == 0);
    // As the worker has it: open for reading, whether somebody writes or not.
    reading_ = open(place.pipe(rank).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reading_ >= 0);
    fcntl(reading_, F_SETFL, 0);
    writing_ = open(place.pipe(rank).c_str(), O_WRONLY | O_CLOEXEC);
    thread_ = std::thread([this, dump = std::move(dump)] {
      char byte = 0;
      if (::read(reading_, &byte, 1) == 1 && byte != 'x') dump();
    });
  }
  ~Recorder() {
    (void)!::write(writing_, "x", 1);
    thread_.join();
    close(reading_);
    close(writing_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  int reading_ = -1;
  int writing_ = -1;
  std::thread thread_;
};

// A control server that answers this to whatever it is asked, as a thread of the test's.
class ControlServer {
 public:
  ControlServer(const std::string& path, const std::string& answer)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(socket_, 16) == 0);
    thread_ = std::thread([this, answer] {
      for (int client = accept(socket_, nullptr, nullptr); client >= 0; client = accept(socket_, nullptr, nullptr)) {
        // It hears the request before it closes: a request that comes later, or is not read, breaks the connection.
        std::string request;
        char byte = 0;
        while (!request.ends_with("\r\n\r\n") && recv(client, &byte, 1, 0) == 1) request += byte;
        (void)!send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
        close(client);
      }
    });
  }
  ~ControlServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  int socket_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a rank whose pipe is read is asked for a dump, which is read when it is whole") {
  Place place;
  place.write(2, dump_of(1));  // of an earlier time
  timespec old[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  utimensat(AT_FDCWD, place.file(2).c_str(), old, 0);
  const Recorder recorder(place, 2, [&] { place.write(2, dump_of(7)); });
  const std::vector<RankRecorder> read = place.read({2}, kPatient);
  REQUIRE(read.size() == 1);
  REQUIRE(read[0].dump.has_value());
  CHECK(read[0].dump->groups.at(0).enqueued == 7);
}

TEST_CASE("a rank that is asked and writes nothing is late, and others are read") {
  Place place;
  const Recorder silent(place, 0, [] {});
  const Recorder other(place, 1, [&] { place.write(1, dump_of(7)); });
  const std::vector<RankRecorder> read = place.read({0, 1}, 500);
  CHECK(read[0].why_not.state == Source::kLate);
  CHECK(read[1].dump.has_value());
}

TEST_CASE("a pipe that is not there, that nobody reads, or that is none, is refused") {
  Place place;
  REQUIRE(mkfifo(place.pipe(1).c_str(), 0600) == 0);
  std::ofstream(place.pipe(2)) << "no pipe";
  const std::vector<RankRecorder> read = place.read({0, 1, 2}, kPatient);
  CHECK(read[0].why_not.why.starts_with("it has no pipe"));
  CHECK(read[1].why_not.why.starts_with("nobody reads its pipe"));
  CHECK(read[2].why_not.why.ends_with("is no pipe"));
  for (const RankRecorder& one : read) CHECK(one.why_not.state == Source::kRefused);
  CHECK(std::filesystem::file_size(place.pipe(2)) == 7);
}

TEST_CASE("without a pipe a dump that was written since the round began is read, and an older one is another's") {
  Place place;
  place.places().pipe.reset();
  place.write(0, dump_of(7));
  place.write(1, dump_of(7));
  timespec old[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  utimensat(AT_FDCWD, place.file(1).c_str(), old, 0);
  const std::vector<RankRecorder> read = place.read({0, 1, 2}, kPatient);
  CHECK(read[0].dump.has_value());
  CHECK(!read[1].dump);
  CHECK(read[1].why_not.state == Source::kNotAsked);
  CHECK(read[2].why_not.state == Source::kNotAsked);
}

TEST_CASE("what a control server answers is taken, and not a dump that was written before") {
  Place place;
  place.places().pipe.reset();
  place.places().control = place.file(9);
  place.write(0, dump_of(7));
  const std::string body = dump_of(9);
  const ControlServer server(place.file(9),
                             format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  const std::vector<RankRecorder> read = place.read({0}, kPatient, 1000, {}, getpid());
  REQUIRE(read[0].dump.has_value());
  CHECK(read[0].dump->groups.at(0).enqueued == 9);
}

TEST_CASE("a control socket that is not there is refused, and costs a dump that was written before nothing") {
  Place place;
  place.places().pipe.reset();
  place.write(0, dump_of(7));
  place.places().control = place.file(9);  // which is not there
  const std::vector<RankRecorder> read = place.read({0, 1}, kPatient);
  CHECK(read[0].dump.has_value());
  CHECK(read[1].why_not.state == Source::kRefused);
  CHECK(read[1].why_not.why.starts_with("it has no control socket"));
}

TEST_CASE("nothing is read where the reading process cannot be made ready for it, after all ranks were asked") {
  Place place;
  const Recorder asked(place, 0, [&] { place.write(0, dump_of(7)); });
  std::vector<RankRecorder> read =
      place.read({0}, kPatient, 1000, [] { return fail("cannot be confined", "no seccomp"); });
  CHECK(read[0].why_not == hang::SourceFacts{Source::kRefused, "cannot be confined: no seccomp"});
  CHECK(!read[0].dump);
  read = place.read({0}, kPatient, 1000, [] { return Status(); });
  CHECK(read[0].dump.has_value());
}

TEST_CASE(
    "dumps that the store has asked for are awaited without the ranks' pipes, and one that does not come is late") {
  Place place;
  const Recorder not_asked(place, 0, [&] { place.write(0, "asked by its pipe"); });
  place.write(0, dump_of(7).substr(0, 40));  // the rest comes later
  std::thread writes([&] {
    while (!std::filesystem::exists(place.file(1))) std::this_thread::yield();
    place.write(0, dump_of(9));
  });
  place.write(1, dump_of(8));
  std::vector<RankRecorder> read = place.await({0, 1}, kPatient);
  writes.join();
  REQUIRE(read[0].dump.has_value());
  CHECK(read[0].dump->groups.at(0).enqueued == 9);
  CHECK(read[1].dump.has_value());
  read = place.await({1, 2}, 0);
  CHECK(read[0].dump.has_value());
  CHECK(read[1].why_not.state == Source::kLate);
  CHECK(read[1].why_not.why == "it has written no dump within 0 s");
}

TEST_CASE("dumps are awaited for as long as others take, also where all are there") {
  Place place;
  place.write(0, dump_of(7));
  const auto began = std::chrono::steady_clock::now();
  CHECK(place.await({0}, kPatient, 200)[0].dump.has_value());
  CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(200));
}

TEST_CASE("a dump that is no dump, is hostile, too great or no file is told, and nothing of it is used") {
  Place place;
  place.places().pipe.reset();
  place.write(0, "nonsense");
  place.write(1, "\x80\x02cos\nsystem\nX\x02\x00\x00\x00idtR.");
  place.write(2, "x");
  std::filesystem::resize_file(place.file(2), kMostDumpBytes + 1);
  REQUIRE(mkfifo(place.file(3).c_str(), 0600) == 0);
  const std::vector<RankRecorder> read = place.read({0, 1, 2, 3}, kPatient);
  CHECK(read[0].why_not.state == Source::kLost);
  CHECK(read[1].why_not.state == Source::kLost);
  CHECK(read[2].why_not.state == Source::kRefused);
  CHECK(read[3].why_not.state == Source::kNotAsked);
  for (const RankRecorder& one : read) CHECK(!one.dump);
}

}  // namespace elastic::evidence
