#include "cli/run/segment_file.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/fake_root_test_support.h"
#include "src/base/log.h"
#include "src/net/loop.h"

using namespace elastic;
using namespace elastic::run;

namespace {

struct Looking {
  Looking() {
    log::set_output([this](std::string_view line) { warned += line; });
  }
  ~Looking() { log::set_output({}); }

  // What so many looks bring, in order.
  std::vector<std::string> looks(const std::string& path, int times = 1) {
    std::vector<std::string> seen;
    SegmentFile file(
        loop, path,
        {.is_idle = [] { return false; }, .on_seen = [&](std::string drained) { seen.push_back(drained); }});
    for (int i = 0; i < times; ++i) {
      file.look_at_file([this] { loop.stop(); });
      loop.run();
    }
    return seen;
  }

  std::string warned;
  net::Loop loop;
  elastic::testing::FakeRoot root;
};

using Seen = std::vector<std::string>;

}  // namespace

TEST_CASE("a segment file that is not empty drains the node, and says why by its first line") {
  Looking node;
  node.root.file("why", "node3: drained: bad GPU\nnode4: drained: fan\n");
  CHECK(node.looks(node.root.at("why")) == Seen{node.root.at("why").string() + " (node3: drained: bad GPU)"});
  node.root.file("silent", "\n");
  CHECK(node.looks(node.root.at("silent")) == Seen{node.root.at("silent")});
  CHECK(node.warned.empty());
}

TEST_CASE("a segment file that is missing or empty says nothing, and one that cannot be read is warned of once") {
  Looking node;
  node.root.file("empty", "");
  CHECK(node.looks(node.root.at("empty")) == Seen{""});
  CHECK(node.looks(node.root.at("missing")) == Seen{""});
  CHECK(node.warned.empty());
  CHECK(node.looks(node.root.path, 2) == Seen{"", ""});
  const std::string once = "it is no regular file; this node goes on";
  CHECK(node.warned.contains(once));
  CHECK(node.warned.find(once) == node.warned.rfind(once));
  CHECK(node.looks(node.root.at("nowhere/file")) == Seen{""});
  CHECK(node.warned.contains("there is no such directory; this node goes on"));
  CHECK(node.looks(node.root.at("empty/file")) == Seen{""});
  CHECK(node.warned.contains("Not a directory; this node goes on"));
}

TEST_CASE("a look that another one follows is not heard") {
  Looking node;
  node.root.file("why", "drained");
  Seen seen;
  SegmentFile file(
      node.loop, node.root.at("why"),
      {.is_idle = [] { return false; }, .on_seen = [&](const std::string&) { seen.emplace_back("seen"); }});
  file.look_at_file([&] { seen.emplace_back("first"); });
  file.look_at_file([&] {
    seen.emplace_back("second");
    node.loop.stop();
  });
  node.loop.run();
  CHECK(file.hangs() == false);
  CHECK(seen == Seen{"seen", "second"});
}
