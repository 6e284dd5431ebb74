#include "cli/detect/systems.h"

#include <doctest/doctest.h>

#include "cli/limits.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli::detect;

namespace {

std::string hosts_of(const std::string& text) {
  const auto hosts = expand_host_list(text, "SLURM_STEP_NODELIST");
  return hosts ? join(*hosts, " ") : hosts.error().reason;
}

}  // namespace

TEST_CASE("a list of hosts is expanded in its order, in every form in which Slurm compresses it") {
  CHECK(hosts_of("node7") == "node7");
  CHECK(hosts_of("a,b") == "a b");
  CHECK(hosts_of("a[1-3,5]") == "a1 a2 a3 a5");
  CHECK(hosts_of("a[1-3,5],b[01-03]-x[1,2]") == "a1 a2 a3 a5 b01-x1 b01-x2 b02-x1 b02-x2 b03-x1 b03-x2");
  CHECK(hosts_of("[1-2]") == "1 2");
  CHECK(hosts_of("gpu-[7]-ib.example.org,login") == "gpu-7-ib.example.org login");
  CHECK(hosts_of("rack[0-1]node[0-1]cpu[0-1]") ==
        "rack0node0cpu0 rack0node0cpu1 rack0node1cpu0 rack0node1cpu1 "
        "rack1node0cpu0 rack1node0cpu1 rack1node1cpu0 rack1node1cpu1");
  CHECK(hosts_of("b[3,1]") == "b3 b1");
}

TEST_CASE("numbers of a host list keep the zeros that their range begins with, and grow beyond them") {
  CHECK(hosts_of("n[08-11]") == "n08 n09 n10 n11");
  CHECK(hosts_of("n[8-11]") == "n8 n9 n10 n11");
  CHECK(hosts_of("n[000-001,5,0005]") == "n000 n001 n5 n0005");
  CHECK(hosts_of("n[98-101]") == "n98 n99 n100 n101");
}

TEST_CASE("what is no list of hosts is refused with what is wrong, and what to do") {
  CHECK(hosts_of("") == "this is not a list of hosts: it is empty");
  CHECK(hosts_of("a,,b") == "this is not a list of hosts: a name between commas is empty");
  CHECK(hosts_of("a,") == "this is not a list of hosts: a name between commas is empty");
  CHECK(hosts_of("a[1-3") == "this is not a list of hosts: a \"[\" has no \"]\"");
  CHECK(hosts_of("a1-3]") == "this is not a list of hosts: a \"]\" has no \"[\"");
  CHECK(hosts_of("a[1-[2]]") == "this is not a list of hosts: brackets stand in brackets");
  CHECK(hosts_of("a[]") == "this is not a list of hosts: \"\" is neither a number nor a range of numbers");
  CHECK(hosts_of("a[1-]") == "this is not a list of hosts: \"1-\" is neither a number nor a range of numbers");
  CHECK(hosts_of("a[x]") == "this is not a list of hosts: \"x\" is neither a number nor a range of numbers");
  CHECK(hosts_of("a[+1]") == "this is not a list of hosts: \"+1\" is neither a number nor a range of numbers");
  CHECK(hosts_of("a[3-1]") == "this is not a list of hosts: the range \"3-1\" runs backwards");
  CHECK(hosts_of("a b") == "this is not a list of hosts: it has blanks or control characters");
  const auto refused = expand_host_list("a[", "SLURM_STEP_NODELIST");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "SLURM_STEP_NODELIST=a[");
  CHECK(refused.error().remedy.contains("--rdzv-endpoint"));
}

TEST_CASE("a host list stands for 65,536 hosts and no more, however it says so") {
  REQUIRE(expand_host_list("n[0-65535]", "L"));
  CHECK(expand_host_list("n[0-65535]", "L")->size() == limits::kHostListHosts);
  const std::string too_many = "this is not a list of hosts: it stands for more than 65536 hosts";
  CHECK(hosts_of("n[0-65536]") == too_many);
  CHECK(hosts_of("n[0-65535],m") == too_many);
  CHECK(hosts_of("n[0-256][0-256]") == too_many);
  CHECK(hosts_of("n[0-999999999999999999]") == too_many);
  CHECK(hosts_of("n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]") == too_many);
  CHECK(hosts_of("n[0-9999999999999999999]").contains("neither a number"));
  CHECK(hosts_of(std::string(256, 'n') + "[0-9]") ==
        "this is not a list of hosts: a host's name has more than 255 bytes");
  CHECK(hosts_of(std::string(limits::kHostListBytes + 1, 'n')).contains("more than 1048576 bytes"));
}
