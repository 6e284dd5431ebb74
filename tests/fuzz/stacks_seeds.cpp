// The seeds of stacks_fuzzer: processes that are whole, that change while they are read, and that are damaged where it
// matters; and a small one of each other kind of input.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "health/stacks/document.h"
#include "health/stacks/elf_test_support.h"
#include "health/stacks/groups.h"
#include "health/stacks/image_test_support.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/stacks_input.h"

namespace elastic {
namespace {

using namespace stacks;
using stacks_input::Kind;

std::string input(Kind kind, std::string_view rest) { return static_cast<char>(kind) + std::string(rest); }

std::string bytes_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

struct Process {
  explicit Process(unsigned minor) : image(minor) {
    const std::uint64_t wide = image.wide(u"l\u00e4uft");
    const std::uint64_t main = image.code("<module>", "train.py", 1);
    const std::uint64_t leaf = image.code(wide, image.ascii("load.py"), 40);
    oldest = image.frame(main, 1, 0);
    newest = image.frame(leaf, 2, image.frame(main, 0, oldest, 3));
    thread = image.thread(11, newest);
    image.thread(12, image.frame(leaf, 3, 0));
  }
  std::string input_of(Kind kind, std::string_view changes = {}) const {
    return input(kind, static_cast<char>(changes.size() / 4) + std::string(changes) + bytes_of(image.bytes()));
  }
  std::size_t place(std::uint64_t address) const { return address - Image::kBegin; }

  Image image;
  std::uint64_t oldest = 0, newest = 0, thread = 0;
};

void add_processes(seed_files::Seeds& seeds, Kind kind, unsigned minor) {
  const std::string name = "quick/python" + std::to_string(minor);
  const Process whole(minor);
  seeds[name] = whole.input_of(kind);
  // A byte of the newest frame's caller, and one of a thread's frame, change at the fifth and the fortieth read.
  std::string changes;
  for (const auto& [read, address] : {std::pair{5, whole.newest}, std::pair{40, whole.thread + 16}}) {
    const std::size_t place = whole.place(address);
    changes += {static_cast<char>(read), static_cast<char>(place >> 8), static_cast<char>(place), '\x08'};
  }
  seeds[name + "_changes"] = whole.input_of(kind, changes);
  Process circle(minor);
  circle.image.put_at(circle.oldest + circle.image.layout().frame_previous, circle.newest);
  circle.image.put_at(circle.thread + circle.image.layout().thread_next, circle.thread);
  seeds[name + "_circle"] = circle.input_of(kind);
}

seed_files::Seeds make_seeds() {
  seed_files::Seeds seeds;
  add_processes(seeds, Kind::kPython11, 11);
  add_processes(seeds, Kind::kPython12, 12);
  add_processes(seeds, Kind::kPython13, 13);
  add_processes(seeds, Kind::kPython14, 14);
  seeds["quick/elf"] = input(Kind::kElf, bytes_of(small_elf_file()));
  seeds["quick/mappings"] = input(Kind::kMappings,
                                  "5500-5600 r-xp 00001000 fe:01 7   /opt/my app\n"
                                  "7f00-7f10 r--p 00002000 fe:01 9   /usr/lib/libpython3.12.so.1.0 (deleted)\n");
  seeds["quick/lines"] = input(Kind::kLines, "\x03\xd0\x01\x02\xe8\x07\xf0\x48\x03\x01\x01\x01\xf8\x80");
  StacksDocument document{.run_id = "j"};
  document.nodes = {{"n"}, {"m", "it did not answer"}};
  document.all.groups = {
      {.frames = {{"load", "train.py", 7}}, .members = {{.rank = 3, .pid = 9}}, .waits = {"running"}}};
  seeds["quick/document"] = input(Kind::kText, json_of(document).dump());
  seeds["quick/groups"] = input(Kind::kText, text_of(document.all, 8192));
  seeds["quick/stat"] = input(Kind::kText, "4711 (a) R (b\x1b) D 1 4711");
  seeds["quick/status"] = input(Kind::kText, "Name:\tpython\nUid:\t0\t1000\t0\t0\nGid:\t0\n");
  return seeds;
}

}  // namespace
}  // namespace elastic

int main(int count, char** arguments) {
  return elastic::seed_files::run("stacks_seeds", elastic::make_seeds(), count, arguments);
}
