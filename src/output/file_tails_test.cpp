#include "src/output/file_tails.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::output;

namespace {

// A process that waits, whose stdout and stderr are these files; /dev/null where none is named.
class Writer {
 public:
  Writer(const std::string& out, const std::string& err) : pid_(fork()) {
    if (pid_ != 0) return;
    const auto become = [](const std::string& path, int number) {
      dup2(open(path.empty() ? "/dev/null" : path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600), number);
    };
    become(out, 1);
    become(err, 2);
    for (;;) pause();
  }
  ~Writer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

struct Directory {
  std::string path = "/tmp/file_tails_XXXXXX";
  Directory() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Directory() { (void)!system(("rm -r " + path).c_str()); }
  std::string file(const std::string& name) const { return path + "/" + name; }
};

void append(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

// Runs the loop until `is_done`, and appends a line to the file again and again, since a look that has not been yet
// takes what is there for old.
void run_until(net::Loop& loop, const std::function<void()>& act, const bool& is_done) {
  net::Timer timer(loop);
  std::function<void()> tick = [&] {
    if (is_done) return loop.stop();
    act();
    timer.start(20, tick);
  };
  timer.start(0, tick);
  loop.run();
}

}  // namespace

TEST_CASE("what a worker appends to the file that is its stdout is read") {
  const Directory directory;
  append(directory.file("out"), "old\n");
  const Writer writer(directory.file("out"), "");
  net::Loop loop;
  bool is_done = false;
  FileTails tails(loop, 4096, [&](const std::vector<FileTails::Piece>& pieces) {
    for (const FileTails::Piece& piece : pieces) {
      CHECK(piece.local_rank == 3);
      CHECK_FALSE(piece.is_err);
      CHECK(piece.bytes.find("old") == std::string::npos);
      is_done = piece.bytes.find("new\n") != std::string::npos;
    }
  });
  tails.watch(3, writer.pid());
  run_until(
      loop, [&] { append(directory.file("out"), "new\n"); }, is_done);
}

TEST_CASE("a file that two workers write is of neither of them") {
  const Directory directory;
  const Writer one(directory.file("both"), "");
  const Writer other("", directory.file("both"));
  net::Loop loop;
  bool is_done = false;
  FileTails tails(loop, 4096, [&](const std::vector<FileTails::Piece>& pieces) {
    for (const FileTails::Piece& piece : pieces) is_done = !piece.local_rank;
  });
  tails.watch(0, one.pid());
  tails.watch(1, other.pid());
  run_until(
      loop, [&] { append(directory.file("both"), "line\n"); }, is_done);
}

TEST_CASE("of much that was appended the end is read") {
  const Directory directory;
  const Writer writer("", directory.file("err"));
  net::Loop loop;
  bool is_done = false;
  FileTails tails(loop, 16, [&](const std::vector<FileTails::Piece>& pieces) {
    for (const FileTails::Piece& piece : pieces) {
      CHECK(piece.is_err);
      CHECK(piece.bytes.size() <= 16);
      is_done = piece.bytes.ends_with("the end\n");
    }
  });
  tails.watch(0, writer.pid());
  run_until(
      loop, [&] { append(directory.file("err"), std::string(1000, 'x') + "the end\n"); }, is_done);
}

TEST_CASE("the content of a file that appears later is read, and again when it has changed") {
  const Directory directory;
  net::Loop loop;
  std::string content;
  bool is_done = false;
  FileTails tails(loop, 4096, [&](const std::vector<FileTails::Piece>& pieces) {
    for (const FileTails::Piece& piece : pieces) {
      CHECK(piece.is_whole);
      if (content == "first" && piece.bytes == "second") is_done = true;
      content = piece.bytes;
    }
  });
  tails.watch_content(0, directory.file("metrics"));
  run_until(
      loop, [&] { std::ofstream(directory.file("metrics")) << (content.empty() ? "first" : "second"); }, is_done);
}
