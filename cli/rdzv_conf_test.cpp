#include "cli/rdzv_conf.h"

#include <doctest/doctest.h>

#include <limits>

using namespace elastic;
using namespace elastic::cli;

namespace {

RdzvConf conf(std::string_view text) { return check_rdzv_conf(text, "--rdzv-conf").value(); }

std::string error_of(std::string_view text) {
  const auto result = check_rdzv_conf(text, "INPUT");
  return result ? "no error" : result.error().text();
}

}  // namespace

TEST_CASE("settings of the rendezvous are pairs with blanks around them dropped") {
  const RdzvConf read = conf(" join_timeout = 5 ,is_host=Yes,cas_backoff_max_seconds=0.5");
  CHECK(read.integer("join_timeout") == 5);
  CHECK(read.boolean("is_host") == true);
  CHECK(read.number("cas_backoff_max_seconds") == 0.5);
  CHECK(!read.integer("read_timeout").has_value());
  CHECK(read.find("nothing") == nullptr);
  CHECK(conf("").entries.empty());
  CHECK(conf("  ").entries.empty());
}

TEST_CASE("a value may hold an equals sign, and of a repeated key the last one counts") {
  CHECK(*conf("x=a=b").find("x") == "a=b");
  const RdzvConf read = conf("timeout=5,timeout=7");
  CHECK(read.integer("timeout") == 7);
  CHECK(read.entries.size() == 1);
}

TEST_CASE("quotes around the whole text, as PyTorch's own documents show them, are dropped") {
  for (const char* text :
       {"'join_timeout=5,last_call_timeout=1,timeout=5'", "\"join_timeout=5,last_call_timeout=1,timeout=5\""}) {
    CAPTURE(text);
    CHECK(conf(text).integer("join_timeout") == 5);
    CHECK(conf(text).integer("timeout") == 5);
    CHECK(conf(text).unknown_keys.empty());
  }
}

TEST_CASE("an unknown key is kept and named, not refused") {
  const RdzvConf read = conf("join_timout=5,protocol=http");
  CHECK(read.unknown_keys == std::vector<std::string>{"join_timout", "protocol"});
  CHECK(*read.find("protocol") == "http");
}

TEST_CASE("a pair without key or value is an error") {
  CHECK(error_of("join_timeout") ==
        "INPUT: join_timeout has no value; write KEY=VALUE,KEY=VALUE, such as "
        "join_timeout=600,read_timeout=60");
  CHECK(error_of("join_timeout=").starts_with("INPUT: join_timeout has no value"));
  CHECK(error_of("=5").starts_with("INPUT: '=5' names no key"));
  CHECK(error_of("a=1,").starts_with("INPUT: '' names no key"));
}

TEST_CASE("a key that a flag sets is an error that names the flag") {
  CHECK(error_of("min_nodes=2") == "INPUT: min_nodes cannot be set here; use --nnodes");
  CHECK(error_of("a=1,endpoint=x") == "INPUT: endpoint cannot be set here; use --rdzv-endpoint");
}

TEST_CASE("the value of a known key has its type and range") {
  CHECK(error_of("failover=maybe").starts_with("INPUT: failover must be off or majority, not 'maybe'"));
  CHECK(error_of("failover_evidence=rst").starts_with("INPUT: failover_evidence must be refusal or none, not 'rst'"));
  CHECK(error_of("on_leave=stay").starts_with("INPUT: on_leave must be handover, end or wait, not 'stay'"));
  for (const char* bad :
       {"join_timeout=0", "join_timeout=1.5", "timeout=x", "read_timeout=-1", "keep_alive_interval=x", "is_host=maybe",
        "store_type=etcd", "cas_backoff_max_seconds=-1", "cas_backoff_max_seconds=inf", "node_unit=0", "pend_timeout=0",
        "last_call_timeout=99999999999"}) {
    CAPTURE(bad);
    CHECK(error_of(bad).find(" must be ") != std::string::npos);
  }
  CHECK(
      error_of("store_type=tcpstore") ==
      "INPUT: store_type must be tcp or file, not 'tcpstore'; leave it out, and name one of the nodes with "
      "--rdzv-endpoint=HOST:PORT, or write store_type=file, and with --rdzv-endpoint the path of a file that all nodes "
      "share");
  CHECK(error_of("is_host=maybe").starts_with("INPUT: is_host must be true or false, not 'maybe'"));
  for (const char* good : {"keep_alive_interval=0", "is_host=F", "is_host=1", "store_type=file", "pend_timeout=inf",
                           "pend_timeout=0.5", "lastcall_timeout=60", "rank=1"}) {
    CAPTURE(good);
    CHECK(error_of(good) == "no error");
  }
  CHECK(conf("pend_timeout=inf").number("pend_timeout") == std::numeric_limits<double>::infinity());
}
