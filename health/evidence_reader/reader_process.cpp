#include "health/evidence_reader/reader_process.h"

#include "health/evidence_reader/control_socket.h"
#include "health/evidence_reader/gpu_evidence.h"
#include "health/evidence_reader/link_samples.h"
#include "health/evidence_reader/ras_conversation.h"
#include "health/evidence_reader/recorder_dumps.h"
#include "health/evidence_reader/store_clients.h"
#include "health/evidence_reader/worker_samples.h"
#include "health/probe/attempt.h"
#include "health/probe/lines.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/process/confinement.h"
#include "src/process/spawn.h"

namespace elastic::evidence {
namespace {

// What the asking side does in no time.
constexpr std::int64_t kTaskMs = 5'000;
// Levels of a task or an answer, and members of an object.
constexpr std::size_t kMostLevels = 12;
constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kMostTextBytes = 4096;

template <class Message>
std::optional<Message> read_line(std::string_view line) {
  if (!json_over_bounds(line, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(line, "a line");
  Message message;
  if (!json || !read_json(*json, message, JsonForm::kExact, kMostTextBytes).empty()) return {};
  return message;
}

// A dump of a recorder is read into many times its size, and so is a report of RAS. Connections to control servers are
// open before.
constexpr process::Confinement kOfDumps{.memory_bytes = std::uint64_t{3} << 30, .cpu_s = 20};
constexpr process::Confinement kOfConversations{
    .memory_bytes = kOfDumps.memory_bytes, .cpu_s = kOfDumps.cpu_s, .may_connect = true};

// Where the kernel cannot confine this process, what other programs have written is not read, and what the kernel has
// is. What asks the driver is not confined here: it starts the probe of GPUs, which loads the driver, and reads what
// this has to say.
hang::EvidenceAnswer answer_to(const hang::EvidenceTask& task, const Environment& environment) {
  switch (task.part) {
    case hang::Part::kProcesses: (void)process::confine({}); return look_at_processes(task);
    case hang::Part::kRecorder:
      return ask_recorders(task, environment, [&task] {
        process::Confinement of_dumps = kOfDumps;
        of_dumps.descriptors += ControlSocket::kDescriptors * task.workers.size();
        return process::confine(of_dumps);
      });
    case hang::Part::kRas: return ask_ras(task, environment, [] { return process::confine(kOfConversations); });
    case hang::Part::kGpus: return ask_gpus(task, environment);
    case hang::Part::kLinks: (void)process::confine({}); return ask_links(environment);
    case hang::Part::kStoreClients: (void)process::confine({}); return find_store_clients(task);
    case hang::Part::kDumps: return await_recorders(task, environment, [] { return process::confine(kOfDumps); });
  }
  return {};
}

}  // namespace

std::int64_t limit_ms(hang::Part part) {
  switch (part) {
    case hang::Part::kProcesses: return 6'000;
    case hang::Part::kRecorder: return 10'000;
    case hang::Part::kRas: return 14'000;
    case hang::Part::kGpus: return 10'000;
    case hang::Part::kLinks: return 6'000;
    case hang::Part::kStoreClients: return 6'000;
    case hang::Part::kDumps: return 5'000;
  }
  return 0;
}

std::string line_of(const hang::EvidenceTask& task) { return write_json(task, JsonForm::kExact).dump(); }

std::optional<hang::EvidenceAnswer> read_evidence(std::string_view line) {
  return read_line<hang::EvidenceAnswer>(line);
}

int run_evidence_process(const Environment& environment) {
  health::Lines lines(process::kChannel, kMostEvidenceBytes);
  const health::Deadline deadline(kTaskMs);
  const auto line = lines.read(&deadline);
  if (!line) return 1;
  const auto task = read_line<hang::EvidenceTask>(*line);
  if (!task) return 1;
  return lines.write(write_json(answer_to(*task, environment), JsonForm::kExact).dump()) ? 0 : 1;
}

}  // namespace elastic::evidence
