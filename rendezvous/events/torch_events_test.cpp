#include "rendezvous/events/torch_events.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::events;
using namespace elastic::protocol;

namespace {

const PrepareRound kRound{.round = 0, .restart_count = 0, .max_restarts = 1, .place = {0, 1, 0, 2, 0, 2}};

struct Launch {
  // A round of two workers, which run.
  std::string start(const PrepareRound& round, double at_ms) {
    std::string lines = events.on_event(FromCoordinator{round}, at_ms);
    lines += events.on_effect(StartWorkers{round, {}}, at_ms + 1.5);
    lines += events.on_event(WorkerStarted{0, 70}, at_ms + 2);
    return lines += events.on_event(WorkerStarted{1, 71}, at_ms + 3);
  }
  void exit(int local_rank, ExitStatus status) { events.on_event(WorkerExited{local_rank, status, 0}, 0); }
  void finish(double now_ms) {
    events.on_effect(CloseStore{}, now_ms);
    events.on_effect(Finish{}, now_ms);
  }

  TorchEvents events{{"night", "default", "host-a", "c10d", "python3", 2}, 1000};
};

// Each line as its state and rank: "FAILED 1".
std::string states(const std::string& lines) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    const Json json = *Json::parse(lines.substr(at, end - at), "a line");
    const Json& metadata = *json.find("metadata");
    out += *json.find("source")->as_string() + " " + *metadata.find("state")->as_string();
    if (const auto rank = metadata.find("global_rank")->as_integer()) out += " " + std::to_string(*rank);
    out += "; ";
    at = end + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("the events of a round are PyTorch's, letter by letter") {
  Launch launch;
  CHECK(
      launch.events.on_event(FromCoordinator{kRound}, 1012.25) ==
      R"({"name": "torchelastic.worker.status.RENDEZVOUS", "source": "AGENT", "timestamp": 0, "metadata": )"
      R"({"run_id": "night", "global_rank": null, "group_rank": null, "worker_id": null, "role": "default", )"
      R"("hostname": "host-a", "state": "RENDEZVOUS", "total_run_time": 0, "rdzv_backend": "c10d", "raw_error": null, )"
      R"("metadata": "{\"group_world_size\": null, \"entry_point\": \"python3\"}", "agent_restarts": 0, )"
      R"("duration_ms": 12.25}})"
      "\n");
  const std::string lines = launch.start(kRound, 1012.25);
  CHECK(states(lines) == "AGENT RENDEZVOUS; AGENT ASSIGN_WORKER_RANKS; WORKER START 0; WORKER START 1; ");
  CHECK(lines.ends_with(
      R"({"name": "torchelastic.worker.status.START", "source": "WORKER", "timestamp": 0, "metadata": )"
      R"({"run_id": "night", "global_rank": 1, "group_rank": 0, "worker_id": "71", "role": "default", )"
      R"("hostname": "host-a", "state": "START", "total_run_time": 0, "rdzv_backend": "c10d", "raw_error": null, )"
      R"("metadata": "{\"group_world_size\": 1, \"entry_point\": \"python3\", \"local_rank\": [1], )"
      R"(\"role_rank\": [1], )"
      R"(\"role_world_size\": [2], \"exit_code\": [null], \"worker_pid\": [null]}", "agent_restarts": 0, )"
      R"("duration_ms": null}})"
      "\n"));
  launch.exit(0, {});
  launch.exit(1, {});
  launch.finish(4900);
  const std::string end = launch.events.ended({}, {});
  CHECK(states(end) == "WORKER SUCCEEDED 0; WORKER SUCCEEDED 1; AGENT SUCCEEDED; ");
  CHECK(end.contains(R"("total_run_time": 3, )"));
}

TEST_CASE("a failed worker's event has its exit code and what it said, one that ended well was terminated") {
  Launch launch;
  launch.start(kRound, 1010);
  launch.exit(1, {.code = 3});
  launch.exit(0, {});
  launch.finish(2000);
  const JobResult failed{.outcome = JobResult::Outcome::kFailed,
                         .failures = {WorkerFailure{.rank = 1, .exit = {.code = 3}}}};
  const std::string end = launch.events.ended(failed, {"", R"({"message":{"message":"ValueError: é"}})"});
  CHECK(states(end) == "WORKER TERMINATED 0; WORKER FAILED 1; AGENT SUCCEEDED; ");
  CHECK(end.contains(R"("raw_error": "{\"message\": {\"message\": \"ValueError: \\u00e9\"}}", )"));
  CHECK(end.contains(R"(\"exit_code\": [3], \"worker_pid\": [71]})"));
}

TEST_CASE("without an error file all failures have the traits of an exit code, if one of them has") {
  Launch launch;
  launch.start(kRound, 1010);
  launch.exit(1, {.signal = SIGTERM});
  const JobResult failed{.outcome = JobResult::Outcome::kFailed,
                         .failures = {WorkerFailure{.rank = 0, .exit = {.code = 3}}}};
  const std::string none = R"("raw_error": "{\"message\": \"<NONE>\"}", )";
  const std::string traits = R"("raw_error": "{\"message\": \"<NONE>\", \"errorTraits\": {\"category\": )"
                             R"(\"system_terminated_error\", \"retryability\": \"False\"}}", )";
  CHECK(launch.events.ended(failed, {}).contains(none));
  launch.exit(0, {.code = 1});
  // A file that cannot be read counts as none, and a worker with an error file has no traits.
  const std::string one = launch.events.ended(failed, {"[]", R"({"message": ""})"});
  CHECK(one.find(traits) == one.rfind(traits));
  CHECK(one.contains(traits));
  CHECK(one.contains(R"("raw_error": "{\"message\": \"\"}")"));
  const std::string end = launch.events.ended(failed, {});
  CHECK(end.find(traits) != end.rfind(traits));
}

TEST_CASE("a restart has the last round's group and the new count, and its wait begins when the old workers are gone") {
  Launch launch;
  launch.start(kRound, 1010);
  launch.events.on_effect(CloseStore{}, 3000);
  PrepareRound next = kRound;
  next.restart_count = 1;
  const std::string lines = launch.start(next, 3020.5);
  CHECK(lines.starts_with(
      R"({"name": "torchelastic.worker.status.RENDEZVOUS", "source": "AGENT", "timestamp": 0, "metadata": )"
      R"({"run_id": "night", "global_rank": null, "group_rank": 0, "worker_id": null, "role": "default", )"
      R"("hostname": "host-a", "state": "RENDEZVOUS", "total_run_time": 0, "rdzv_backend": "c10d", "raw_error": null, )"
      R"("metadata": "{\"group_world_size\": 1, \"entry_point\": \"python3\"}", "agent_restarts": 1, )"
      R"("duration_ms": 20.5}})"));
}

TEST_CASE("an agent fails that is stopped or could not begin, and says why") {
  Launch launch;
  const JobResult hopeless{.outcome = JobResult::Outcome::kFailed, .reason = "no nodes came"};
  CHECK(states(launch.events.ended(hopeless, {})) == "AGENT FAILED; ");
  CHECK(launch.events.ended(hopeless, {}).contains(R"("raw_error": "no nodes came")"));
  launch.start(kRound, 1010);
  const JobResult stopped{.outcome = JobResult::Outcome::kStopped, .reason = "stopped by SIGTERM"};
  CHECK(states(launch.events.ended(stopped, {})) == "AGENT FAILED; ");
}
