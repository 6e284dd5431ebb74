#include "cli/launch_plan.h"
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/launch_plan_test_support.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/environment.h"

using namespace elastic;
using namespace elastic::cli;
using StoreKind = store::StoreSettings::Kind;

namespace {

std::vector<std::string> argv_of(const LaunchPlan& plan) { return plan.settings.worker.arguments; }

bool starts(const std::string& text, std::string_view beginning) { return text.starts_with(beginning); }

}  // namespace

TEST_CASE("a plain launch is one worker, standalone, with a random id and no warning") {
  const LaunchPlan plan = Trial().good({"train.py", "--lr", "1"});
  CHECK(plan.settings.node.local_world_size == 1);
  CHECK(plan.settings.store.kind == StoreKind::kFreshLoopback);
  CHECK(plan.settings.store.master_addr == "127.0.0.1");
  CHECK(plan.settings.worker.run_id == "uuid");
  CHECK(plan.settings.worker.use_agent_store);
  CHECK(plan.settings.node.shutdown_timeout_ms == 30'000);
  CHECK(plan.settings.max_restarts == 0);
  CHECK(argv_of(plan) == std::vector<std::string>{"/usr/bin/python3", "-u", "train.py", "--lr", "1"});
  CHECK(plan.warnings.empty());
}

TEST_CASE("workers are counted from GPUs, else from CPUs, as the word says") {
  Trial t;
  CHECK(t.good({"--nproc-per-node=auto", "train.py"}).settings.node.local_world_size == 6);
  CHECK(starts(t.error({"--nproc-per-node=gpu", "train.py"}), "--nproc-per-node=gpu: no NVIDIA GPU is found"));
  t.host.gpus = 3;
  CHECK(t.good({"--nproc-per-node=auto", "train.py"}).settings.node.local_world_size == 3);
  CHECK(t.good({"--nproc-per-node=gpu", "train.py"}).settings.node.local_world_size == 3);
  CHECK(t.good({"--nproc-per-node=cpu", "train.py"}).settings.node.local_world_size == 6);
  t.environment.emplace_back("CUDA_VISIBLE_DEVICES=");
  CHECK(t.good({"--nproc-per-node=auto", "train.py"}).settings.node.local_world_size == 6);
}

TEST_CASE("--auto_config takes nodes from NODE_NUM and workers from the GPUs, where they are there") {
  Trial t;
  CHECK(t.good({"--auto_config", "--nproc-per-node=2", "train.py"}).settings.node.local_world_size == 2);
  t.host.gpus = 4;
  t.environment.emplace_back("NODE_NUM=1");
  CHECK(t.good({"--auto_config", "--nproc-per-node=2", "train.py"}).settings.node.local_world_size == 4);
  t.environment.back() = "NODE_NUM=4";
  CHECK(t.good({"--auto_config", "--rdzv-backend=c10d", "train.py"}).settings.node.terms.min_nodes == 4);
  CHECK(starts(t.error({"--auto_config", "train.py"}), "NODE_NUM=4: a job of 4 nodes needs a place to meet"));
  t.environment.emplace_back("DLROVER_MASTER_ADDR=host0:50001");
  const LaunchPlan plan = t.good({"--auto_config", "train.py"});
  CHECK(!plan.settings.rendezvous.alone);
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "host0:50001");
  t.environment.pop_back();
  t.environment.back() = "NODE_NUM=x";
  CHECK(starts(t.error({"--auto_config", "train.py"}), "NODE_NUM=x: not a number of nodes"));
}

TEST_CASE("--standalone is for one node: more are refused where needed and warned about where only allowed") {
  const Trial t;
  CHECK(starts(t.error({"--standalone", "--nnodes=2", "train.py"}), "--nnodes=2: --standalone is for one node"));
  const LaunchPlan plan = t.good({"--standalone", "--nnodes=1:4", "train.py"});
  CHECK(plan.warnings.size() == 1);
  CHECK(plan.settings.rendezvous.alone);
}

TEST_CASE("nodes of a job of many meet at the endpoint, at port 29400 unless it is named") {
  Trial t;
  LaunchPlan plan = t.good({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "--max-restarts=3",
                            "--node_unit=2", "train.py"});
  CHECK(!plan.settings.rendezvous.alone);
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "host0:29400");
  CHECK(plan.settings.store.kind == StoreKind::kFreshPort);
  CHECK(plan.settings.store.master_addr.empty());
  CHECK(plan.settings.node.terms == protocol::JobTerms{2, 4, 2, 3});
  CHECK(!plan.settings.node.node_rank);
  plan = t.good({"--nnodes=2", "--rdzv-backend=dlrover-master", "--rdzv-endpoint=[::1]:1234", "train.py"});
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "[::1]:1234");
  CHECK(t.good({"--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "train.py"}).settings.rendezvous.alone);
  t.environment.emplace_back("DLROVER_MASTER_ADDR=10.0.0.9:50001");
  plan = t.good({"--nnodes=2", "--rdzv-backend=c10d", "train.py"});
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "10.0.0.9:50001");
  CHECK(starts(t.error({"--nnodes=2:3", "--node-unit=4", "--rdzv-backend=c10d", "train.py"}),
               "--node-unit=4: no multiple"));
  CHECK(
      starts(t.error({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=a:0", "train.py"}), "--rdzv-endpoint=a:0"));
}

TEST_CASE("nodes of c10d that are given a master and no endpoint meet at the master, and say so in one line") {
  Trial t;
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--nnodes=2", "--rdzv-backend=c10d", "--master-addr=node0"});
    more.push_back("train.py");
    return more;
  };
  t.environment.emplace_back("DLROVER_MASTER_ADDR=10.0.0.9:50001");
  LaunchPlan plan = t.good(with({"--master-port=29501", "--node-rank=1"}));
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "node0:29501");
  CHECK(!plan.settings.rendezvous.is_default);
  CHECK(plan.settings.node.node_rank == 1);
  CHECK(plan.warnings == std::vector<std::string>{"--master-addr=node0: nodes meet there, at port 29501, as "
                                                  "--rdzv-endpoint is not given"});
  CHECK(std::ranges::any_of(plan.entries, [](const PlanEntry& entry) {
    return entry.name == "endpoint" && entry.value == "node0:29501" &&
           entry.origin == "command line: --master-addr=node0";
  }));
  plan = t.good(with({"--rdzv-endpoint=host0"}));
  CHECK(transport::endpoint_text(plan.settings.rendezvous) == "host0:29400");
  CHECK(plan.warnings.empty());
  CHECK(starts(t.error(with({"--master-port=0"})), "--master-port=0: the other nodes must know"));
}

TEST_CASE("static nodes have the ranks that they are given, the master hosts, and the store is at its port") {
  const Trial t;
  for (const int rank : {0, 1}) {
    const LaunchPlan plan = t.good({"--nnodes=1:2", format("--node-rank={}", rank), "--master-addr=host0", "train.py"});
    CHECK(plan.settings.node.node_rank == rank);
    CHECK(plan.settings.rendezvous.is_host == (rank == 0));
    CHECK(plan.settings.rendezvous.asks_first);
    CHECK(plan.settings.rendezvous.option.name == "--master-addr");
    CHECK(plan.settings.node.terms.min_nodes == 2);  // as torchrun's: all of them
    CHECK(plan.settings.store.kind == StoreKind::kAtEndpoint);
    CHECK(plan.settings.store.master_addr == "host0");
    CHECK(plan.settings.store.port == 29500);
    CHECK(plan.settings.node.rules.join_timeout_ms == 900'000);
  }
}

TEST_CASE("static nodes wait for each other as long as join_timeout says, else timeout, else 900 s") {
  const Trial t;
  const auto waits_ms = [&](const std::string& conf) {
    return t.good({"--nnodes=2", "--master-addr=host0", "--rdzv-conf=" + conf, "train.py"})
        .settings.node.rules.join_timeout_ms;
  };
  CHECK(waits_ms("") == 900'000);
  CHECK(waits_ms("timeout=7") == 7'000);
  CHECK(waits_ms("join_timeout=8") == 8'000);
  CHECK(waits_ms("timeout=7,join_timeout=8") == 8'000);
}

TEST_CASE("with c10d a rank is claimed by the environment, or by a flag that is more than the default") {
  Trial t;
  const std::vector<std::string> c10d{"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "train.py"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), c10d.begin(), c10d.end());
    return more;
  };
  CHECK(!t.good(with({"--node-rank=0"})).settings.node.node_rank);
  CHECK(t.good(with({"--node-rank=2"})).settings.node.node_rank == 2);
  t.environment.emplace_back("WORKER_RANK=1");
  CHECK(t.good(with({})).settings.node.node_rank == 1);
  t.environment.emplace_back("NODE_RANK=0");
  CHECK(t.good(with({})).settings.node.node_rank == 0);
  t.environment.back() = "NODE_RANK=3";
  CHECK(starts(t.error(with({})), "NODE_RANK=3: the last node rank of a job of 3 nodes is 2"));
  t.environment.back() = "NODE_RANK=x";
  CHECK(starts(t.error(with({})), "NODE_RANK=x: this is not a node rank"));
}

TEST_CASE("a pod's address and its ports of the host are those by which its node and its store are reached") {
  Trial t;
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "train.py"});
    return more;
  };
  CHECK(t.good(plan({})).settings.node.address.empty());
  t.environment.emplace_back("POD_IP=10.1.2.3");
  CHECK(t.good(plan({})).settings.node.address == "10.1.2.3");
  CHECK(t.good(plan({"--local-addr=10.9.9.9"})).settings.node.address == "10.9.9.9");
  t.environment.emplace_back("HOST_PORTS=20000, 20010,20020");
  CHECK(t.good(plan({})).settings.store.port_choices == std::vector<std::uint16_t>{20000, 20010, 20020});
  CHECK(t.good(plan({"--rdzv-conf=store_port=30000"})).settings.store.port_choices.empty());
  t.environment.back() = "HOST_PORTS=";
  CHECK(t.good(plan({})).settings.store.port_choices.empty());
  for (const char* bad : {"20000,", "x", "0", "65536"}) {
    t.environment.back() = format("HOST_PORTS={}", bad);
    CHECK(starts(t.error(plan({})), format("HOST_PORTS={}: ", bad)));
  }
}

TEST_CASE("status and metrics want a port of their own, and events a file of their own") {
  const Trial t;
  const auto c10d = [](const char* port) {
    return std::vector<std::string>{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0:4000", port,
                                    "train.py"};
  };
  CHECK(starts(t.error(c10d("--http-port=4000")), "--http-port=4000: it is the port of the rendezvous"));
  CHECK(t.good(c10d("--http-port=4001")).settings.http_port == 4001);
  CHECK(t.good(c10d("--http-port=0")).settings.http_port == 0);
  CHECK(starts(t.error({"--master-port=4000", "--http-port=4000", "train.py"}),
               "--http-port=4000: it is the port of the workers' store"));
  CHECK(starts(t.error({"--events=f", "--record=f", "train.py"}), "--events=f: --record=f is the same file"));
  CHECK(t.plan({"--events=f", "--record=g", "train.py"}).has_value());
}

TEST_CASE("failover=majority needs nodes that can all host the coordinator") {
  const Trial t;
  CHECK(t.error({"--nnodes=2", "--rdzv-backend=static", "--rdzv-conf=failover=majority", "train.py"})
            .contains(
                "--rdzv-conf=failover=majority: failover=majority, and with --rdzv-backend=static node 0 is the only "
                "host; leave it out, or use --rdzv-backend=c10d"));
  for (const std::string key : {"on_leave=wait", "failover_evidence=none", "rejoin_timeout=9"}) {
    CHECK(t.error({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "--rdzv-conf=failover=off," + key,
                   "train.py"})
              .contains(key + ", and with failover=off no other node takes over; leave it out"));
    CHECK(t.error({"--nnodes=2", "--rdzv-backend=static", "--rdzv-conf=" + key, "train.py"})
              .contains(key + ", and with --rdzv-backend=static no other node takes over; leave it out"));
  }
}

TEST_CASE("an endpoint may name several hosts, of which the first begins the job") {
  const Trial t;
  const auto with = [](const std::string& endpoint, const std::string& conf = "join_timeout=9") {
    return std::vector<std::string>{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint,
                                    "--rdzv-conf=" + conf, "train.py"};
  };
  using Hosts = std::vector<transport::RendezvousSettings::Host>;
  const auto plan = t.good(with("host0,host1,host2:4000")).settings.rendezvous;
  CHECK(plan.host == "host0");
  CHECK(plan.port == 4000);
  CHECK(plan.more_hosts == Hosts{{"host1", 4000}, {"host2", 4000}});
  CHECK(transport::endpoint_text(plan) == "host0:4000 or 2 more hosts");
  CHECK(t.good(with("a:1,b,[::1]:2,c")).settings.rendezvous.more_hosts == Hosts{{"b", 2}, {"::1", 2}, {"c", 29400}});
  CHECK(t.error(with("a,b,a")).contains("a stands there twice; name each host once"));
  CHECK(t.error(with("a,,b")).contains("the list of hosts has an empty place"));
  CHECK(t.error(with("a,b", "failover=off")).contains("with failover=off no other than the first"));
  CHECK(t.error(with("a,b:0")).contains("the other nodes must know the port in advance"));
  CHECK(t.good(with("a", "coordinator_port=7")).settings.rendezvous.peer_port == 7);
  CHECK(t.error(with("a", "coordinator_port=7,failover=off")).contains("the coordinator listens at the port of"));
}

TEST_CASE("the keys of --rdzv-conf become the rules of the job and the patience of its nodes") {
  const Trial t;
  const auto conf = [&](const std::string& text) {
    return t.good({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "--rdzv-conf=" + text, "train.py"})
        .settings;
  };
  using ScaleUp = protocol::JobRules::ScaleUp;
  run::LaunchSettings plan = conf("");
  constexpr auto kMajority = protocol::JobRules::Failover::kMajority;
  constexpr auto kReport = protocol::JobRules::Hang::kReport;
  CHECK(plan.node.rules == protocol::JobRules{.failover = kMajority, .hang = kReport});
  CHECK(plan.rendezvous.loss_timeout_ms == 5'000);
  CHECK(!plan.rendezvous.gives_loss_timeout);
  plan = conf(
      "last_call_timeout=7,join_timeout=8,scale_up=after=2.5,node_losses=-1,keep_out=9,job_losses=11,"
      "replacement_grace=0,exit_barrier=12,rejoin_timeout=13,loss_timeout=14,store_port=15000,is_host=1");
  CHECK(plan.node.rules == protocol::JobRules{.last_call_ms = 7'000,
                                              .join_timeout_ms = 8'000,
                                              .scale_up_after_ms = 2'500,
                                              .node_losses = -1,
                                              .quarantine_ms = 9'000,
                                              .job_losses = 11,
                                              .failover = kMajority,
                                              .hang = kReport});
  CHECK(plan.node.exit_barrier_ms == 12'000);
  CHECK(plan.rendezvous.rejoin_ms == 13'000);
  CHECK(plan.rendezvous.loss_timeout_ms == 14'000);
  CHECK(plan.rendezvous.gives_loss_timeout);
  CHECK(plan.store.port == 15000);
  CHECK(plan.rendezvous.is_host == true);
  CHECK(conf("scale_up=never").node.rules.scale_up == ScaleUp::kNever);
  CHECK_FALSE(conf("failover=off").rendezvous.has_peer_server);
  plan = conf("failover=majority");
  CHECK(plan.node.rules.failover == protocol::JobRules::Failover::kMajority);
  CHECK(plan.node.rules.on_leave == protocol::JobRules::OnLeave::kLeadershipTransfer);
  using Evidence = protocol::JobRules::Evidence;
  CHECK(conf("failover=majority").node.rules.failover_evidence == Evidence::kRefusal);
  CHECK(conf("failover=majority,failover_evidence=none").node.rules.failover_evidence == Evidence::kNone);
  CHECK(conf("failover=majority,on_leave=end").node.rules.on_leave == protocol::JobRules::OnLeave::kEnd);
  CHECK(conf("failover=majority,on_leave=wait").node.rules.on_leave == protocol::JobRules::OnLeave::kWait);
  CHECK(plan.rendezvous.has_peer_server);
  CHECK(conf("failover=off").node.rules == protocol::JobRules{.hang = kReport});
  CHECK(conf("lastcall_timeout=3").node.rules.last_call_ms == 3'000);
  CHECK(conf("keep_alive_interval=2").rendezvous.loss_timeout_ms == 6'000);
  CHECK(conf("keep_alive_interval=2").rendezvous.gives_loss_timeout);
  CHECK(conf("keep_alive_max_attempt=1").rendezvous.loss_timeout_ms == 5'000);
}

TEST_CASE("nodes that find each other by a file have the same failover as those that meet at an endpoint") {
  const Trial t;
  const auto rendezvous = [&](const std::string& text) {
    return t
        .good({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=/shared/meeting",
               "--rdzv-conf=store_type=file," + text, "train.py"})
        .settings;
  };
  CHECK(rendezvous("rejoin_timeout=3").node.rules.failover == protocol::JobRules::Failover::kMajority);
  CHECK(rendezvous("rejoin_timeout=3").rendezvous.rejoin_ms == 3'000);
  CHECK(rendezvous("coordinator_port=7").rendezvous.has_peer_server);
  CHECK(rendezvous("coordinator_port=7").rendezvous.peer_port == 7);
  CHECK(rendezvous("coordinator_port=7").rendezvous.refusal_is_proof);
  CHECK_FALSE(rendezvous("failover_evidence=none").rendezvous.refusal_is_proof);
  CHECK_FALSE(rendezvous("failover=off").rendezvous.has_peer_server);
}
TEST_CASE("the job's secret comes from a file or the environment, and workers do not get it") {
  Trial t;
  t.environment.emplace_back("ELASTIC_RUN_TOKEN=of the environment");
  const std::vector<std::string> line{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), line.begin(), line.end());
    more.emplace_back("train.py");
    return more;
  };
  LaunchPlan plan = t.good(with({}));
  CHECK(plan.settings.rendezvous.secret == "of the environment");
  CHECK(!elastic::lookup(plan.settings.worker.environment, "ELASTIC_RUN_TOKEN"));
  for (const PlanEntry& entry : plan.entries) CHECK(!entry.value.contains("of the environment"));
  t.host.contents["secret"] = "of the file\n";
  CHECK(t.good(with({"--rdzv-conf=token_file=secret"})).settings.rendezvous.secret == "of the file");
  t.host.contents["secret"] = "\n";
  CHECK(t.error(with({"--rdzv-conf=token_file=secret"})).contains("token_file=secret is empty"));
  CHECK(t.error(with({"--rdzv-conf=token_file=none"})).contains("token_file=none: no such file"));
}

TEST_CASE("a port or an endpoint makes the store static, on that port, under the name that was given") {
  const Trial t;
  LaunchPlan plan = t.good({"--master-port=29501", "train.py"});
  CHECK(plan.settings.store.kind == StoreKind::kFixedPort);
  CHECK(plan.settings.store.port == 29501);
  CHECK(plan.settings.store.master_addr == "127.0.0.1");
  CHECK(plan.settings.store.of_loopback);
  CHECK(plan.settings.worker.run_id == "none");
  plan = t.good({"--rdzv-endpoint=trainer-0:4000", "--rdzv-id=job7", "train.py"});
  CHECK(plan.settings.store.port == 4000);
  CHECK(plan.settings.store.master_addr == "trainer-0");
  CHECK(plan.settings.worker.run_id == "job7");
}

TEST_CASE("a static store of one node is open on loopback alone where its name is loopback, else to this host") {
  const Trial t;
  for (const char* address : {"127.0.0.1", "127.3.2.1", "::1", "localhost", "LOCALHOST"}) {
    CAPTURE(address);
    const LaunchPlan plan = t.good({std::string("--master-addr=") + address, "--master-port=4000", "train.py"});
    CHECK(plan.settings.store.of_loopback);
    CHECK(plan.settings.store.master_addr == address);
  }
  LaunchPlan plan = t.good({"--master-addr=trainer-0", "--master-port=4000", "train.py"});
  CHECK(!plan.settings.store.of_loopback);
  CHECK(!plan.settings.store.admits_all);
  plan = t.good({"--master-addr=trainer-0", "--master-port=4000", "--rdzv-conf=store_admits=all", "train.py"});
  CHECK(plan.settings.store.admits_all);
}

TEST_CASE("--standalone overwrites the id, a plain launch of one node keeps one that was given") {
  const Trial t;
  CHECK(t.good({"--standalone", "--rdzv-id=mine", "train.py"}).settings.worker.run_id == "uuid");
  CHECK(t.good({"--rdzv-id=mine", "train.py"}).settings.worker.run_id == "mine");
  const LaunchPlan empty = t.good({"--rdzv-id=", "--master-port=4000", "train.py"});
  CHECK(empty.settings.worker.run_id == "uuid");
  CHECK(empty.warnings.size() == 1);
}

TEST_CASE("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 leaves the store to rank 0, but for static") {
  Trial t;
  t.environment.emplace_back("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1");
  CHECK(t.good({"train.py"}).settings.store.kind == StoreKind::kByWorker);
  CHECK(!t.good({"train.py"}).settings.worker.use_agent_store);
  CHECK(t.good({"--master-port=4000", "train.py"}).settings.worker.use_agent_store);
}

TEST_CASE("the shutdown timeout comes from the flag, else from torch's variable, else is 30 s") {
  Trial t;
  t.environment.emplace_back("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7");
  CHECK(t.good({"train.py"}).settings.node.shutdown_timeout_ms == 7'000);
  CHECK(t.good({"--shutdown-timeout=3", "train.py"}).settings.node.shutdown_timeout_ms == 3'000);
  t.environment.back() = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=-1";
  CHECK(t.good({"train.py"}).settings.node.shutdown_timeout_ms == 0);
  t.environment.back() = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon";
  CHECK(starts(t.error({"train.py"}), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon: "));
}

TEST_CASE("a script that is not there is an error before the start, but not where a wrapper looks for it") {
  Trial t;
  CHECK(starts(t.error({"none.py"}), "none.py: no such file"));
  t.environment.emplace_back("PYTHON_EXEC=python3");
  CHECK(starts(t.error({"none.py"}), "none.py: no such file"));
  CHECK(t.good({"train.py"}).settings.title == "python3");
  t.host.program("/usr/bin/apptainer");
  t.environment.back() = "PYTHON_EXEC=apptainer exec image python";
  const LaunchPlan plan = t.good({"none.py", "-x"});
  CHECK(plan.settings.program == "/usr/bin/apptainer");
  CHECK(argv_of(plan) ==
        std::vector<std::string>{"/usr/bin/apptainer", "exec", "image", "python", "-u", "none.py", "-x"});
  CHECK(plan.settings.title == "apptainer exec image python");
}

TEST_CASE("-m, --run-path and --no-python make torchrun's command lines") {
  Trial t;
  CHECK(argv_of(t.good({"-m", "pkg.train", "-x"})) ==
        std::vector<std::string>{"/usr/bin/python3", "-u", "-m", "pkg.train", "-x"});
  const auto run_path = argv_of(t.good({"--run-path", "train.py", "-x"}));
  REQUIRE(run_path.size() == 6);
  CHECK(run_path[2] == "-c");
  CHECK(run_path[4] == "train.py");
  t.host.program("/usr/bin/nvidia-smi");
  const LaunchPlan binary = t.good({"--no-python", "nvidia-smi", "-L"});
  CHECK(binary.settings.program == "/usr/bin/nvidia-smi");
  CHECK(argv_of(binary) == std::vector<std::string>{"nvidia-smi", "-L"});
}

TEST_CASE("a script that cannot be run is named with the reason before anything starts") {
  Trial t;
  t.host.directory("folder");
  t.host.files["locked.py"] = {true, false, false, false};
  t.host.file("plain");
  CHECK(starts(t.error({"gone.py"}), "gone.py: no such file"));
  CHECK(starts(t.error({"folder"}), "folder: it is a directory without a __main__.py"));
  CHECK(starts(t.error({"locked.py"}), "locked.py: it cannot be read"));
  CHECK(starts(t.error({"--no-python", "./gone"}), "./gone: no such file"));
  CHECK(starts(t.error({"--no-python", "folder/"}), "folder/: no such file"));
  t.host.file("./plain");
  CHECK(starts(t.error({"--no-python", "./plain"}), "./plain: it is not executable"));
  CHECK(t.error({"--no-python", "plain"}) ==
        "plain: not found on PATH; to run the file in this directory write ./plain");
  t.host.file("folder/__main__.py");
  CHECK(t.plan({"folder"}).has_value());
}

TEST_CASE("the OMP rule warns only where it acts") {
  Trial t;
  CHECK(t.good({"--nproc-per-node=2", "train.py"}).warnings.size() == 1);
  t.environment.emplace_back("OMP_NUM_THREADS=4");
  CHECK(t.good({"--nproc-per-node=2", "train.py"}).warnings.empty());
}

TEST_CASE("a virtual local rank without a device is refused before anything starts") {
  Trial t;
  t.environment.emplace_back("CUDA_VISIBLE_DEVICES=0,1");
  CHECK(starts(t.error({"--virtual-local-rank", "--nproc-per-node=3", "train.py"}), "CUDA_VISIBLE_DEVICES=0,1: "));
}

TEST_CASE("a file timer that nobody serves is kept from the workers") {
  Trial t;
  t.environment.emplace_back("TORCHELASTIC_TIMER_FILE=/tmp/fifo");
  CHECK(!elastic::lookup(t.good({"train.py"}).settings.worker.environment, "TORCHELASTIC_TIMER_FILE"));
}

TEST_CASE("logs go to --log-dir, else to a new directory in the temporary one, or nowhere") {
  Trial t;
  t.host.directory("/scratch");
  t.environment.emplace_back("TMPDIR=/scratch");
  CHECK(t.good({"--log-dir=/logs", "train.py"}).settings.logs.base == "/logs");
  const LaunchPlan by_default = t.good({"--log-dir=", "train.py"});
  CHECK(!by_default.settings.logs.base);
  CHECK(by_default.settings.logs.temporary == "/scratch");
  CHECK(!t.good({"--log-dir=/dev/null", "train.py"}).settings.logs.enabled);
}

TEST_CASE("a temporary directory that cannot be written is passed over with a warning, as Python does without") {
  Trial t;
  t.host.directory("/scratch");
  t.host.files["/scratch"].writable = false;
  t.host.directory(".");
  t.environment.emplace_back("TMPDIR=/scratch");
  const LaunchPlan passed_over = t.good({"train.py"});
  CHECK(passed_over.settings.logs.temporary == "/tmp");
  CHECK(passed_over.warnings ==
        std::vector<std::string>{"TMPDIR=/scratch cannot be written; log directories go to /tmp"});

  t.host.files["/tmp"].writable = false;
  CHECK(t.good({"train.py"}).settings.logs.temporary == ".");

  t.host.files["."].writable = false;
  const LaunchPlan nowhere = t.good({"train.py"});
  CHECK(!nowhere.settings.logs.enabled);
  REQUIRE(nowhere.warnings.size() == 1);
  CHECK(starts(nowhere.warnings[0], "no log directory and no error files"));
  CHECK(t.good({"--log-dir=/logs", "train.py"}).warnings.empty());
}
