#include "health/evidence_reader/link_samples.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace elastic::evidence {
namespace {

namespace fs = std::filesystem;

// A directory in the form of sysfs.
class Root {
 public:
  Root() {
    char name[] = "/tmp/links_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const std::string& path() const { return path_; }
  void file(const std::string& device, const std::string& name, const std::string& text) const {
    const fs::path whole = path_ + "/sys/class/infiniband/" + device + "/ports/1/" + name;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text << "\n";
  }
  hang::EvidenceAnswer asked() const { return ask_links({"ELASTIC_RUN_PROBE_ROOT=" + path_}); }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("a port is read with its state, what it has moved and its errors of both kinds") {
  const Root root;
  root.file("mlx5_0", "state", "4: ACTIVE");
  root.file("mlx5_0", "phys_state", "5: LinkUp");
  root.file("mlx5_0", "link_layer", "InfiniBand");
  root.file("mlx5_0", "counters/port_xmit_data", "18446744073709551615");
  root.file("mlx5_0", "counters/port_rcv_data", "12");
  root.file("mlx5_0", "counters/symbol_error", "3");
  root.file("mlx5_0", "counters/port_xmit_wait", "5");
  root.file("mlx5_0", "hw_counters/packet_seq_err", "9");
  const auto links = look_at_links(root.path());
  REQUIRE(links.size() == 1);
  CHECK(links[0].device == "mlx5_0");
  CHECK(links[0].port == 1);
  CHECK(links[0].state == "ACTIVE");
  CHECK(links[0].phys_state == "LinkUp");
  CHECK(links[0].link_layer == "InfiniBand");
  CHECK(links[0].counters.at("port_rcv_data") == 12);
  CHECK(links[0].counters.at("symbol_error") == 3);
  CHECK(links[0].counters.at("packet_seq_err") == 9);
  CHECK(!links[0].counters.contains("port_xmit_wait"));
}

TEST_CASE("ports are looked at twice, and those that are to be looked at are facts of their node") {
  const Root root;
  root.file("mlx5_0", "state", "4: ACTIVE");
  root.file("mlx5_0", "counters/symbol_error", "3");
  root.file("mlx5_1", "state", "1: DOWN");
  std::thread errors([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    root.file("mlx5_0", "counters/symbol_error", "4");
  });
  const hang::EvidenceAnswer answer = root.asked();
  errors.join();
  CHECK(answer.facts.links == hang::SourceFacts{hang::Source::kHad});
  CHECK(answer.facts.link_faults ==
        std::vector<hang::LinkFault>{{"port 1 of mlx5_1", "is DOWN"},
                                     {"port 1 of mlx5_0", "has counted symbol_error 1 more within 2 s"}});
  CHECK(answer.lines.size() == 2);
}

TEST_CASE("a host without InfiniBand has nothing to say of links, at once") {
  CHECK(Root().asked() == hang::EvidenceAnswer{});
}

}  // namespace elastic::evidence
