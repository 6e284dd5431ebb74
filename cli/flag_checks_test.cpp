#include "cli/flag_checks.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>

using namespace elastic;
using namespace elastic::cli;

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Result<CheckedFlags> check(Words arguments, const Variables& variables = {}) {
  arguments.push_back("train.py");
  const auto flags = parse_command_line(arguments, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  if (!flags) return std::unexpected(flags.error());
  return check_flags(*flags);
}

// What a wrong command line is answered; "no error" for a right one.
std::string error_of(const Words& arguments, const Variables& variables = {}) {
  const auto checked = check(arguments, variables);
  return checked ? "no error" : checked.error().text();
}

bool complains(const Words& arguments, std::string_view about, const Variables& variables = {}) {
  const std::string error = error_of(arguments, variables);
  CAPTURE(error);
  CHECK(error != "no error");
  return error.find(about) != std::string::npos && error.find("; ") != std::string::npos;
}

}  // namespace

TEST_CASE("the number of nodes is N or MIN:MAX") {
  CHECK(check({"--nnodes=3"})->nodes.min == 3);
  CHECK(check({"--nnodes=2:4"})->nodes.min == 2);
  CHECK(check({"--nnodes=2:4"})->nodes.max == 4);
  CHECK(check({"--nnodes= 1 : 2 "})->nodes.max == 2);
  for (const char* bad : {"", "0", "-1", "a", "1:", ":2", "1:2:3", "0:2", "3:2", "1.5", "1:9999999999"}) {
    CAPTURE(bad);
    CHECK(complains({std::string("--nnodes=") + bad}, "--nnodes="));
  }
  CHECK(complains({}, "PET_NNODES=''", {{"PET_NNODES", ""}}));
}

TEST_CASE("workers of a node are a number within bounds or a known word") {
  using Kind = WorkersPerNode::Kind;
  CHECK(check({"--nproc-per-node=8"})->workers.number == 8);
  CHECK(check({"--nproc-per-node=auto"})->workers.kind == Kind::kAuto);
  CHECK(check({"--nproc-per-node=cpu"})->workers.kind == Kind::kCpu);
  CHECK(check({"--nproc-per-node=gpu"})->workers.kind == Kind::kGpu);
  CHECK(check({"--nproc-per-node=xpu"})->workers.kind == Kind::kXpu);
  for (const char* bad : {"", "0", "-1", "4097", "1000000000000", "GPU", "many", "2.0"}) {
    CAPTURE(bad);
    CHECK(complains({std::string("--nproc-per-node=") + bad}, "--nproc-per-node="));
  }
}

TEST_CASE(
    "an option of which nothing is left, or that has taken the script's name, says that a variable may not be set") {
  const std::string empty = "its value is empty, perhaps because a variable is not set; ";
  CHECK(error_of({"--nnodes=", "--nproc-per-node="}) == "--nnodes=: " + empty + "write --nnodes=N|MIN:MAX");
  CHECK(error_of({"--nproc-per-node="}) == "--nproc-per-node=: " + empty + "write --nproc-per-node=N");
  CHECK(error_of({}, {{"PET_NNODES", ""}}) ==
        "PET_NNODES='': " + empty + "correct the variable or unset it, or give --nnodes on the command line");
  CHECK(error_of({"--nproc-per-node", "train.py"})
            .starts_with("--nproc-per-node train.py: its value is the script's name"));
  CHECK(complains({"--master-addr=", "--master-port=5"}, "--master-addr=: " + empty));
  CHECK(complains({"--hang-timeout="}, "--hang-timeout=: " + empty));
}

TEST_CASE("the backend is static, c10d or another name of it; all others say why not") {
  CHECK(check({"--rdzv-backend=c10d"})->rendezvous == Rendezvous::kC10d);
  CHECK(check({"--rdzv-backend=dlrover-master"})->rendezvous == Rendezvous::kC10d);
  CHECK(complains({"--rdzv-backend=etcd"}, "no client for etcd is built in"));
  CHECK(complains({"--rdzv-backend=mine"}, "plug-ins in Python"));
  CHECK(complains({"--rdzv-backend="}, "--rdzv-backend="));
}

TEST_CASE("the rendezvous follows torchrun: standalone, plain single node, static, c10d") {
  CHECK(check({})->rendezvous == Rendezvous::kImplicitStandalone);
  CHECK(check({"--rdzv-id=x", "--node-rank=0"})->rendezvous == Rendezvous::kImplicitStandalone);
  CHECK(check({"--standalone"})->rendezvous == Rendezvous::kStandalone);
  CHECK(check({"--standalone", "--rdzv-backend=mine", "--rdzv-endpoint=:"})->rendezvous == Rendezvous::kStandalone);
  CHECK(check({"--master-port=29501"})->rendezvous == Rendezvous::kStatic);
  CHECK(check({"--rdzv-endpoint=h:1"})->rendezvous == Rendezvous::kStatic);
  CHECK(check({"--nnodes=1:2"})->rendezvous == Rendezvous::kStatic);
  CHECK(check({}, {{"PET_MASTER_PORT", "29501"}})->rendezvous == Rendezvous::kStatic);
  CHECK(check({"--master-port=0"})->rendezvous == Rendezvous::kImplicitStandalone);
  CHECK(check({"--rdzv-backend=static"}, {{"PET_MASTER_PORT", "0"}})->rendezvous == Rendezvous::kImplicitStandalone);
}

TEST_CASE("the address of static is the endpoint, or else master-addr and master-port") {
  CHECK(check({"--nnodes=2"})->endpoint.host == "127.0.0.1");
  CHECK(check({"--nnodes=2"})->endpoint.port == 29500);
  CHECK(check({"--master-port=5", "--master-addr=node0"})->endpoint.host == "node0");
  CHECK(check({"--master-port=5", "--master-addr=node0"})->endpoint.port == 5);
  CHECK(check({"--master-port=5", "--master-addr=[::1]"})->endpoint.host == "::1");
  CHECK(check({"--master-port=5", "--master-addr=::1"})->endpoint.host == "::1");
  CHECK(check({"--rdzv-endpoint=h:7", "--master-port=5"})->endpoint.port == 7);
  CHECK(complains({"--rdzv-endpoint=h"}, "--rdzv-endpoint=h: the static backend needs a port"));
  CHECK(complains({"--nnodes=2", "--master-port=0"}, "--master-port=0"));
  CHECK(complains({"--master-port=70000"}, "70000 is out of range"));
  CHECK(complains({"--master-port=-1"}, "-1 is out of range"));
  CHECK(complains({"--master-port=5", "--master-addr=a b"}, "'--master-addr=a b'"));
}

TEST_CASE("the endpoint of c10d is master-addr and master-port if only these are given") {
  const auto with = [](Words more, const Variables& variables = {}) {
    more.insert(more.begin(), {"--nnodes=2", "--rdzv-backend=c10d"});
    const auto checked = check(more, variables);
    REQUIRE(checked);
    return *checked;
  };
  const CheckedFlags both = with({"--master-addr=node0", "--master-port=5"});
  CHECK(both.endpoint == Endpoint{"node0", 5});
  CHECK(both.endpoint_is_master);
  CHECK(with({"--master-addr=node0"}).endpoint == Endpoint{"node0", 29500});
  CHECK(with({"--rdzv-endpoint=", "--master-addr=::1", "--master-port=5"}).endpoint == Endpoint{"::1", 5});
  CHECK(with({}, {{"PET_MASTER_ADDR", "node0"}, {"PET_MASTER_PORT", "5"}}).endpoint == Endpoint{"node0", 5});
  const CheckedFlags endpoint = with({"--rdzv-endpoint=h", "--master-addr=node0", "--master-port=5"});
  CHECK(endpoint.endpoint == Endpoint{"h", {}});
  CHECK(!endpoint.endpoint_is_master);
  CHECK(with({"--master-port=5"}).endpoint == Endpoint{"localhost", {}});
  CHECK(!with({"--nnodes=1", "--master-addr="}).endpoint_is_master);  // one node meets nobody
  CHECK(with({"--rdzv-conf=store_type=file", "--rdzv-endpoint=/shared/job", "--master-addr=node0"})
            .endpoint.host.empty());
}

TEST_CASE("an endpoint is a host with or without a port, an IPv6 address in brackets") {
  const auto endpoint = [](std::string_view text) { return check_endpoint(text, "e").value(); };
  CHECK(endpoint("h").host == "h");
  CHECK(!endpoint("h").port.has_value());
  CHECK(endpoint(" h:29400 ").port == 29400);
  CHECK(endpoint("[::1]").host == "::1");
  CHECK(!endpoint("[::1]").port.has_value());
  CHECK(endpoint("[fe80::1]:0").port == 0);
  CHECK(endpoint("2001:db8::1:29400").host == "2001:db8::1");  // as torchrun reads it
  CHECK(endpoint("").host == "localhost");
  for (const char* bad : {"h:", "h:x", "h:65536", "h:123456", "h:-1", ":1", "a b:1", "[]:1", "h/:1", "::1"}) {
    CAPTURE(bad);
    CHECK(!check_endpoint(bad, "e").has_value());
  }
  CHECK(check_endpoint("fe80::1", "e").error().reason == "an IPv6 address must stand in brackets");
}

TEST_CASE("with a file as store the endpoint of c10d is a path") {
  CHECK(check({"--rdzv-backend=c10d", "--rdzv-endpoint=/shared/a b"}).has_value() == false);
  CHECK(check({"--rdzv-backend=c10d", "--rdzv-endpoint=/shared/a b", "--rdzv-conf=store_type=file"}).has_value());
}

TEST_CASE("a job's id that is longer than nodes can tell each other is refused, wherever it is used") {
  const std::string longest(1024, 'x');
  const std::string rdzv_id = "--rdzv-id=" + longest;
  CHECK(check({"--rdzv-backend=c10d", rdzv_id}).has_value());
  CHECK(check({"--standalone", rdzv_id + "x"}).has_value());
  for (const char* backend : {"--rdzv-backend=c10d", "--rdzv-backend=static"}) {
    const auto refused = check({backend, rdzv_id + "x"});
    REQUIRE(!refused.has_value());
    const std::string text = refused.error().text();
    CHECK(text.starts_with("--rdzv-id=xxx"));
    CHECK(text.size() < 500);
    CHECK(
        text.ends_with(": the job's id is too long, with 1025 bytes; "
                       "use one of at most 1024 bytes"));
  }
}

TEST_CASE("a node rank is below the number of nodes where it counts") {
  CHECK(check({"--nnodes=2", "--node-rank=1"})->node_rank == 1);
  CHECK(complains({"--nnodes=2", "--node-rank=2"}, "the last node rank of a job of 2 nodes is 1"));
  CHECK(complains({"--node-rank=-1"}, "-1 is out of range"));
  CHECK(check({"--node-rank=3"}).has_value());  // one node, not static: torchrun ignores it
}

TEST_CASE("restarts and times must not be negative, the interval above 0") {
  CHECK(check({"--max-restarts=3"})->max_restarts == 3);
  CHECK(!check({})->shutdown_timeout_seconds.has_value());
  CHECK(check({"--shutdown-timeout=0"})->shutdown_timeout_seconds == 0);
  CHECK(complains({"--max-restarts", "-1"}, "--max-restarts -1: -1 is out of range"));
  CHECK(complains({"--shutdown-timeout=-1"}, "--shutdown-timeout=-1"));
  CHECK(complains({"--monitor-interval=0"}, "--monitor-interval=0"));
  CHECK(complains({"--node_unit=0"}, "--node_unit=0"));
  CHECK(complains({"--training_port=65536"}, "--training_port=65536"));
  CHECK(check_seconds("5", "x") == 5);
  CHECK(!check_seconds("", "x").has_value());
  CHECK(!check_seconds("-1", "x").has_value());
}

TEST_CASE("a time is in seconds, minutes or hours, and above 0") {
  CHECK(check_span("90", "x") == 90);
  CHECK(check_span("90s", "x") == 90);
  CHECK(check_span("5m", "x") == 300);
  CHECK(check_span("1h", "x") == 3600);
  for (const char* wrong :
       {"", "s", "1.5m", "-3", "5 m", "1d", "3650d", "99999999999999999999h", "0", "0m", "100000h"}) {
    CHECK_MESSAGE(!check_span(wrong, "x").has_value(), wrong);
  }
}

TEST_CASE("times for hangs are read") {
  CHECK(check({})->hang_timeout_seconds == std::nullopt);
  CHECK(check({"--hang-timeout=5m", "--hang-first-timeout=1h"})->hang_timeout_seconds == 300);
  CHECK(check({"--hang-timeout=5m", "--hang-first-timeout=1h"})->hang_first_timeout_seconds == 3600);
  const auto wrong = check({"--hang-timeout=soon"});
  REQUIRE(!wrong.has_value());
  CHECK(wrong.error().text().find("--hang-timeout=soon") != std::string::npos);
}

TEST_CASE("a map of streams is one digit for all ranks or a list by local rank of any length") {
  const auto all = check_stream_map("3", "r").value();
  CHECK(all.of(0) == 3);
  CHECK(all.of(100) == 3);
  const auto map = check_stream_map("0:3,12:1", "r").value();
  CHECK(map.of(0) == 3);
  CHECK(map.of(12) == 1);
  CHECK(map.of(1) == 0);
  for (const char* bad : {"", "4", "-1", "10", "0:4", "0:1,", "a:1", ":1", "0:", "-1:1", "0:1;1:2"}) {
    CAPTURE(bad);
    CHECK(!check_stream_map(bad, "r").has_value());
  }
  CHECK(complains({"--redirects=9"}, "--redirects=9: '9' is not LOCAL_RANK:STREAMS"));
  CHECK(complains({}, "PET_TEE=0:9", {{"PET_TEE", "0:9"}}));
}

TEST_CASE("a filter of local ranks is a list of numbers, and empty for all ranks") {
  CHECK(!check({})->local_ranks_filter.has_value());
  CHECK(check({"--local-ranks-filter=0, 12"})->local_ranks_filter == std::set<std::int64_t>{0, 12});
  CHECK(complains({"--local-ranks-filter=0,a"}, "'a' is not a local rank"));
  CHECK(complains({"--local-ranks-filter=-1"}, "'-1' is not a local rank"));
}

TEST_CASE("filters copy to a file, which there must be") {
  CHECK(check({"--duplicate-stdout-filters=a,b"}).has_value());
  CHECK(check({"--duplicate-stderr-filters="}).has_value());
  for (const std::string stream : {"stdout", "stderr"}) {
    CHECK(complains({"--duplicate-" + stream + "-filters=a", "--log-dir=/dev/null"},
                    "--log-dir=/dev/null means that there are no log files"));
  }
}

TEST_CASE("signals are known by name, and those that nobody can handle are refused") {
  CHECK(check({})->signals == std::vector<int>{15, 2, 1, 3});
  CHECK(check({"--signals-to-handle= SIGUSR1,SIGTERM,SIGUSR1"})->signals == std::vector<int>{10, 15});
  CHECK(check({"--signals-to-handle="})->signals.empty());
  CHECK(complains({"--signals-to-handle=SIGKILL"}, "no program can handle SIGKILL"));
  CHECK(complains({"--signals-to-handle=SIGSTOP"}, "no program can handle SIGSTOP"));
  for (const std::string name : {"SIGCHLD", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGWINCH", "SIGPIPE"}) {
    CHECK(complains({"--signals-to-handle=" + name}, "elastic-run needs " + name + " for itself"));
    CHECK(complains({"--forward-signals=" + name}, "elastic-run needs " + name + " for itself"));
  }
  CHECK(complains({"--forward-signals=SIGFOO"}, "there is no signal 'SIGFOO'"));
}

TEST_CASE("a name in --signals-to-handle that no signal has is passed over") {
  const auto checked = check({"--signals-to-handle=SIGFOO,SIGUSR1, sigterms ,"});
  REQUIRE(checked);
  CHECK(checked->signals == std::vector<int>{10});
  CHECK(checked->unknown_signals == std::vector<std::string>{"SIGFOO", "sigterms"});
}

TEST_CASE("run-path wins over module and no-python, which exclude each other") {
  CHECK(check({"-m"})->module);
  CHECK(check({"--no-python"})->no_python);
  CHECK(complains({"-m", "--no-python"}, "-m and --no-python: a module cannot be run without Python"));
  const auto checked = check({"-m", "--no-python", "--run-path"});
  REQUIRE(checked.has_value());
  CHECK(checked->run_path);
  CHECK(!checked->module);
  CHECK(!checked->no_python);
}

TEST_CASE("an event handler that is a plug-in is refused with the reason") {
  CHECK(check({"--event-log-handler=console"}).has_value());
  CHECK(check({"--event-log-handler=dynamic_rendezvous"}).has_value());
  CHECK(complains({"--event-log-handler=mine"}, "plug-ins in Python"));
}

TEST_CASE("names of sections are words of ASCII, so many that NVRx's client can take them") {
  CHECK(check({"--progress-sections=setup,step,my-part"}).has_value());
  CHECK(check({"--progress-sections="}).has_value());
  CHECK(complains({"--progress-sections=a,,b"}, "\"\" is no name of 1 to 64 ASCII characters"));
  CHECK(complains({"--progress-sections=a b"}, "\"a b\" is no name"));
  CHECK(complains({"--progress-sections=" + std::string(65, 'x')}, "is no name"));
  std::string many = "a";
  for (int i = 0; i < 64; ++i) many += ",a";
  CHECK(complains({"--progress-sections=" + many}, "more than 64 names"));
  CHECK(complains({"--progress-sections=a,b,a"}, "section \"a\" is named twice"));
}

TEST_CASE("sections may have limits, as for ft_launcher") {
  const auto checked = check({"--progress-sections=setup:600,step:30s,checkpointing"});
  REQUIRE(checked.has_value());
  REQUIRE(checked->progress_sections.size() == 3);
  CHECK(checked->progress_sections[0].name == "setup");
  CHECK(checked->progress_sections[0].limit_seconds == 600);
  CHECK(checked->progress_sections[1].limit_seconds == 30);
  CHECK(!checked->progress_sections[2].limit_seconds);
  CHECK(complains({"--progress-sections=step:soon"},
                  "--progress-sections=step:soon: the limit of section \"step\": "
                  "this is not a time"));
  CHECK(complains({"--progress-sections=step:0"}, "the limit of section \"step\": the time must be above 0"));
  CHECK(complains({"--progress-sections=step:"}, "this is not a time"));
  CHECK(complains({"--progress-sections=:30"}, "\"\" is no name"));
}
