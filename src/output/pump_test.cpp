#include "src/output/pump.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/net/loop.h"
#include "src/output/limits.h"

using namespace elastic;
using namespace elastic::output;

namespace {

constexpr std::size_t kPipeBytes = 1024 * 1024;  // the size that Pump sets, where it is allowed
constexpr int kRanks = 8;

// A pipe as a console, which nobody reads until read_all().
struct Console {
  UniqueFd reading;
  UniqueFd writing;
  Console() {
    int ends[2];
    ELASTIC_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    reading = UniqueFd(ends[0]);
    writing = UniqueFd(ends[1]);
  }
  std::string read_all() const {
    std::string all;
    std::string piece(kPipeBytes, '\0');
    for (ssize_t count = 1; count > 0;) {
      count = read(reading.get(), piece.data(), piece.size());
      if (count > 0) all.append(piece, 0, static_cast<std::size_t>(count));
    }
    return all;
  }
};

// Fills the pipe with lines, and returns the number of bytes.
std::size_t fill(int pipe) {
  fcntl(pipe, F_SETFL, O_NONBLOCK);
  const std::string lines = [] {
    std::string text;
    for (int i = 0; i < 64; ++i) text += std::string(1023, 'x') + "\n";
    return text;
  }();
  std::size_t filled = 0;
  for (ssize_t count = 1; count > 0;) {
    count = write(pipe, lines.data(), lines.size());
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return filled;
}

}  // namespace

TEST_CASE("the end of a round waits for no console, and one that takes later gets all that pipes held") {
  net::Loop loop;
  net::SideThread files;
  Console console;
  Console other;
  // The patience is so long that the console never counts as stuck, however long the test takes.
  const auto writer = [&loop](const Console& to) {
    ConsoleWriter::Settings settings;
    settings.descriptor = to.writing.get();
    settings.thread = std::make_shared<ConsoleThread>(loop);
    settings.patience_ms = 3'600'000;
    return std::make_unique<ConsoleWriter>(settings);
  };
  const auto out = writer(console);
  const auto err = writer(other);
  Pump pump(loop, files, {.out_filter = LineFilter(), .err_filter = LineFilter()}, *out, *err);
  std::size_t written = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    WorkerOutput output;
    output.plan.out = {.kind = StreamPlan::Kind::kPipe, .to_console = true};
    const auto ends = pump.open(rank, std::move(output));
    REQUIRE(ends);
    fcntl(ends->out, F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
    written += fill(ends->out);
    pump.started(rank);
  }
  pump.end_round();
  CHECK(out->dropped().bytes == 0);
  auto shown = std::async(std::launch::async, [&console] { return console.read_all().size(); });
  while (!out->is_idle()) out->wait_for_room(1000);
  console.writing = UniqueFd();
  CHECK(shown.get() == written);
  CHECK(written > limits::kConsoleWaitingBytes);
}

TEST_CASE("a line is not cut where it was this process that had no time to read the rest of it") {
  net::Loop loop;
  net::SideThread files;
  Console console;
  ConsoleWriter::Settings settings;
  settings.descriptor = console.writing.get();
  settings.thread = std::make_shared<ConsoleThread>(loop);
  settings.patience_ms = 3'600'000;
  ConsoleWriter out(settings);
  net::Timer busy(loop);
  net::Timer end(loop);
  int workers_end = -1;
  const auto say = [&workers_end](std::string_view text) {
    REQUIRE(write(workers_end, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  // Once the first half has been read this process is busy for longer than a line is waited for.
  const auto be_busy = [&] {
    busy.start(0, [&] {
      poll(nullptr, 0, 1200);
      say("line\n");
      end.start(0, [&loop] { loop.stop(); });
    });
  };
  bool is_first = true;
  Pump::Settings of_pump{.out_filter = LineFilter(), .err_filter = LineFilter()};
  of_pump.on_read = [&](int, bool, std::string_view) {
    if (std::exchange(is_first, false)) be_busy();
  };
  Pump pump(loop, files, std::move(of_pump), out, out);
  WorkerOutput output;
  output.plan.out = {.kind = StreamPlan::Kind::kPipe, .to_console = true, .has_prefix = true};
  output.prefix = "0: ";
  const auto ends = pump.open(0, std::move(output));
  REQUIRE(ends);
  workers_end = ends->out;
  say("half a ");
  loop.run();
  pump.started(0);
  pump.end_round();
  while (!out.is_idle()) out.wait_for_room(1000);
  console.writing = UniqueFd();
  CHECK(console.read_all() == "0: half a line\n");
}
