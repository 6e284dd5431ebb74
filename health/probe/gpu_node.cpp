#include "health/probe/gpu_node.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "health/gpu/distance.h"
#include "health/gpu/gpu_versions.h"
#include "health/gpu/image.h"
#include "health/gpu/judge_gpu.h"
#include "health/gpu/used_gpus.h"
#include "health/host/read_infiniband.h"
#include "health/probe/lines.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// So long before our deadline the probe itself gives up. It then aborts its communicator and can be used again.
constexpr std::int64_t kAbortMs = 3000;

// Reads an answer; where there is none, the reason becomes a refusal.
template <class Value>
GpuReply<Value> reply_of(const Attempt<std::string>& answer,
                         std::optional<GpuReply<Value>> (*read)(const std::string&)) {
  if (!answer) return std::unexpected(Refusal{.why = answer.error()});
  auto reply = read(*answer);
  if (!reply)
    return std::unexpected(Refusal{.why = "its probe's answer cannot be read: " + printable(answer->substr(0, 80))});
  return std::move(*reply);
}

std::string of_gpu(std::size_t gpu, const std::string& why) { return format("GPU {}: {}", gpu, why); }

void make_unhealthy(GpuLook& out, std::string why) {
  if (out.unhealthy.empty()) out.unhealthy = std::move(why);
}

// A GPU's own fault makes the node unhealthy. Whether another failure does is decided when all nodes' results are
// known.
void note_failure(GpuLook& out, GpuStep step, const GatherFailure& failure) {
  if (failure.is_defect) return make_unhealthy(out, failure.why);
  if (!out.failure) out.failure = GpuFailure{.step = step, .why = failure.why};
}

GatherFailure failure_of(std::size_t gpu, const Refusal& refusal) {
  return {.why = of_gpu(gpu, refusal.why), .is_defect = refusal.kind == Refusal::Kind::kDefect};
}

// The value of a variable in a list of "NAME=value"; nothing where it is not set.
std::optional<std::string> variable_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

// Takes one GPU's figure into the node's, which is that of the slowest GPU. `choose`: the slower of two figures.
template <class Choose>
void take(std::optional<double>& all, const std::optional<double>& one, Choose choose) {
  if (one) all = all ? choose(*all, *one) : *one;
}
double most(double one, double other) { return std::max(one, other); }
double least(double one, double other) { return std::min(one, other); }

}  // namespace

// The other node of a test, at the end of a connection that is used for nothing else.
class OtherNode {
 public:
  OtherNode(int socket, const Deadline& deadline) : lines_(socket, kLineBytes), deadline_(deadline) {}

  // Reads the next line, which begins with `word`. If the other node has failed, the reason is empty, since that node
  // reports it.
  std::expected<std::string, GatherFailure> hear(const std::string& word) {
    const auto line = lines_.read(&deadline_);
    if (!line) return std::unexpected(GatherFailure{.why = "the other node: " + lines_.why()});
    if (!line->starts_with(word + " ")) return std::unexpected(GatherFailure{});
    return line->substr(word.size() + 1);
  }
  // The result of its GPUs, a time in ms. It is read once.
  const std::expected<std::string, GatherFailure>& result() {
    if (!result_) result_ = hear("ms");
    return *result_;
  }
  bool has_result() const { return result_.has_value(); }
  // Sends a line. Where that fails, the other node finds it out by itself.
  void tell(const std::string& line) { lines_.write(line, &deadline_); }
  void tell(const GatherFailure& failure) { tell("no " + failure.why); }

  int socket() const { return lines_.socket(); }
  bool has_news() { return lines_.has_news(); }

 private:
  static constexpr std::size_t kLineBytes = 4096;

  Lines lines_;
  const Deadline& deadline_;
  std::optional<std::expected<std::string, GatherFailure>> result_;
};

namespace {

// An all-gather, while its answers come in. Once one GPU has failed, the others cannot finish.
class Collective : public EarlyEnd {
 public:
  explicit Collective(OtherNode* other) : other_(other) {}

  int descriptor() const override { return other_ == nullptr || other_->has_result() ? -1 : other_->socket(); }
  bool is_over_by_descriptor() override { return other_->has_news() && !other_->result(); }
  bool is_over_by_answer(std::size_t gpu, const Attempt<std::string>& answer) override {
    const auto reply = reply_of(answer, read_gpu_gathered);
    if (!reply) {
      if (!failure_ && !has_other_failed()) failure_ = failure_of(gpu, reply.error());
      return true;
    }
    figures_.ms = std::max(figures_.ms, reply->ms);
    take(figures_.latency_us, reply->latency_us, most);
    return false;
  }

  // Called when all answers are there. The first failure is the reason.
  std::expected<GpuGathered, GatherFailure> result() const {
    if (failure_) return std::unexpected(*failure_);
    if (has_other_failed()) return std::unexpected(other_->result().error());
    return figures_;
  }

 private:
  bool has_other_failed() const { return other_ != nullptr && other_->has_result() && !other_->result(); }

  OtherNode* other_;
  std::optional<GatherFailure> failure_;  // the first one of our GPUs
  GpuGathered figures_;
};

}  // namespace

std::int64_t longest_look_ms(const GpuSettings& settings) {
  if (settings.gpus == 0) return 0;
  return settings.first_facts_ms + settings.open_ms + settings.facts_ms + settings.compute_ms + settings.gather_ms;
}

GpuNode::Answers GpuNode::ask_all(const std::string& line, const Deadline& deadline) {
  return probes_->ask(std::vector<std::string>(opened_.size(), line), deadline);
}

GpuLook GpuNode::run_self_tests() {
  GpuLook out;
  if (settings_.gpus == 0 || !start(out)) return out;
  // NVML is asked before our probes use memory of a GPU.
  const auto before = first_facts();
  const bool can_test = open(out);
  if (can_test) {
    compute(out);
    gather_alone(out);
  }
  judge_facts(before, out);
  if (!can_test) probes_.reset();
  return out;
}

// The memory of a process that has just ended may become free only seconds later, so NVML is asked again for a while.
GpuReply<std::vector<GpuFacts>> GpuNode::first_facts() {
  constexpr std::int64_t kComesBackMs = 5'000;
  constexpr auto kBetween = std::chrono::milliseconds(250);
  const Deadline deadline(settings_.first_facts_ms);
  const Deadline retry_until(std::min(kComesBackMs, settings_.first_facts_ms));
  auto facts = ask_facts(deadline);
  while (facts && has_memory_of_nobody(*facts) && !retry_until.has_passed()) {
    std::this_thread::sleep_for(kBetween);
    facts = ask_facts(deadline);
  }
  // A probe that did not reply in time was killed; it is needed again to open its GPU.
  if (const auto restarted = probes_->restart(*image_, settings_.environment); !restarted) {
    return std::unexpected(Refusal{.why = "a probe cannot be started again: " + restarted.error()});
  }
  return facts;
}

// Starts the probes. Returns whether they run.
bool GpuNode::start(GpuLook& out) {
  if (settings_.program.empty() && gpu_probe_image().empty()) {
    out.unavailable = "this elastic-run has no GPU probe for its processor";
    return false;
  }
  if (settings_.program.empty()) {
    auto made = ProbeImage::make(gpu_probe_image(), settings_.temporary);
    if (!made) {
      out.unavailable = made.error().text();
      return false;
    }
    image_.emplace(std::move(*made));
  } else {
    image_.emplace(ProbeImage::at(settings_.program));
  }
  auto started = GpuProbes::start(settings_.gpus, *image_, settings_.environment);
  if (!started) {
    out.unavailable = "the GPU probe cannot be started: " + started.error();
    return false;
  }
  probes_.emplace(std::move(*started));
  return true;
}

// Opens all GPUs. Returns whether they can be tested.
bool GpuNode::open(GpuLook& out) {
  std::vector<std::string> lines;
  for (int device = 0; device < settings_.gpus; ++device) {
    lines.push_back(text_of(GpuOpen{.device = device, .libraries = settings_.libraries}));
  }
  const Answers answers = probes_->ask(lines, Deadline(settings_.open_ms));
  for (std::size_t gpu = 0; gpu < answers.size(); ++gpu) {
    auto reply = reply_of(answers[gpu], read_gpu_opened);
    identities_.push_back(reply ? std::optional(GpuIdentity{reply->uuid, reply->bus_id}) : std::nullopt);
    if (reply) {
      opened_.push_back(std::move(*reply));
    } else if (reply.error().kind == Refusal::Kind::kUnavailable) {
      out.unavailable = of_gpu(gpu, reply.error().why);
    } else {
      note_failure(out, GpuStep::kOpen, failure_of(gpu, reply.error()));
    }
  }
  if (opened_.size() < answers.size()) return false;
  out.versions = versions_of(opened_);
  nccl_version_ = opened_.front().nccl ? opened_.front().nccl->version : 0;
  for (const GpuOpened& one : opened_) {
    if (!one.nccl || one.nccl->version != nccl_version_) nccl_version_ = 0;
  }
  if (nccl_version_ == 0) {
    out.findings.push_back(
        {.what = "NCCL is not tested: " +
                 (opened_.front().nccl_why.empty() ? "not all GPUs have the same" : opened_.front().nccl_why),
         .remedy = "name the library that the job uses with --nccl-lib"});
  }
  return true;
}

GpuReply<std::vector<GpuFacts>> GpuNode::ask_facts(const Deadline& deadline) {
  GpuReply<std::vector<GpuFacts>> reply = std::unexpected(Refusal{.why = "there is no probe"});
  for (int probe = 0; probe < probes_->size() && !deadline.has_passed(); ++probe) {
    std::vector<std::string> lines(static_cast<std::size_t>(probes_->size()));
    lines[static_cast<std::size_t>(probe)] = text_of(GpuAskFacts{.nvml = settings_.libraries.nvml});
    const Attempt<std::string> answer = probes_->ask(lines, deadline)[static_cast<std::size_t>(probe)];
    reply = reply_of(answer, read_gpu_facts);
    if (answer) break;  // the other probes would reply the same
  }
  return reply;
}

// Judges the GPUs by what NVML says before and, if they were under load, after the test; by the kernel log; and by
// sysfs.
void GpuNode::judge_facts(const GpuReply<std::vector<GpuFacts>>& before, GpuLook& out) {
  const bool have_worked = out.figures.has_value();
  if (!before && !have_worked) return;
  if (!before) out.findings.push_back({.what = "NVML could not be asked about the GPUs: " + before.error().why});
  std::vector<GpuFacts> shown = before ? *before : std::vector<GpuFacts>{};
  for (GpuFacts& gpu : shown) {
    if (!out.unavailable.empty()) gpu.memory_used_bytes.reset();  // the GPUs are not used here
  }
  const auto used = used_gpus(identities_, shown, variable_of(settings_.environment, "CUDA_VISIBLE_DEVICES"));
  if (!used) return;
  GpuNeeds& needs = needs_.emplace(GpuNeeds{.nproc = settings_.workers, .visible = settings_.gpus, .used = *used});
  std::vector<GpuFacts> after = shown;
  if (before && have_worked) {
    auto now = ask_facts(Deadline(settings_.facts_ms));
    needs.after_work = now.has_value();
    if (now)
      after = std::move(*now);
    else
      out.findings.push_back({.what = "NVML could not be asked about the GPUs after the test: " + now.error().why});
  }
  const std::size_t others = out.findings.size();
  for (Finding& finding : judge_gpus(shown, after, needs)) out.findings.push_back(std::move(finding));
  for (Finding& finding : look_again()) out.findings.push_back(std::move(finding));
  judge_distances_of(*used, out);
  // What is wrong with a GPU is a better reason than the step that failed because of it.
  for (std::size_t i = others; i < out.findings.size(); ++i) {
    if (out.findings[i].severity != Severity::kFatal) continue;
    out.unhealthy = format("{}: {}", out.findings[i].where, out.findings[i].what);
    break;
  }
}

std::vector<Finding> GpuNode::look_again() {
  if (!needs_) return {};
  const XidLog log = xids_.read_new();
  std::vector<Finding> found = xid_findings(log.earlier, log.recent, *needs_);
  std::erase_if(found, [this](const Finding& finding) {
    return !told_xids_.emplace(finding.severity, finding.where, finding.what.substr(0, finding.what.find(':'))).second;
  });
  return found;
}

void GpuNode::judge_distances_of(const std::vector<GpuIdentity>& gpus, GpuLook& out) {
  std::vector<GpuPlace> places;
  for (const GpuIdentity& gpu : gpus) places.push_back({gpu.bus_id, read_pci_path(settings_.root, gpu.bus_id)});
  std::vector<NearestPort> nearest = nearest_ports(places, read_infiniband(settings_.root));
  for (Finding& finding : judge_distances(nearest)) out.findings.push_back(std::move(finding));
  if (out.versions) out.versions->nearest_ports = std::move(nearest);
}

void GpuNode::compute(GpuLook& out) {
  GpuFigures& figures = out.figures.emplace();
  if (nccl_version_ != 0) figures.gathers = static_cast<int>(opened_.size());
  std::string why_not;
  const Answers answers = ask_all(text_of(GpuCompute{}), Deadline(settings_.compute_ms));
  for (std::size_t gpu = 0; gpu < answers.size(); ++gpu) {
    const auto reply = reply_of(answers[gpu], read_gpu_computed);
    if (!reply) {
      if (reply.error().kind == Refusal::Kind::kUnavailable)
        why_not = of_gpu(gpu, reply.error().why);
      else
        note_failure(out, GpuStep::kCompute, failure_of(gpu, reply.error()));
      continue;
    }
    take(figures.product_ms, reply->product_ms, most);
    take(figures.tflops, reply->tflops, least);
    take(figures.memory_gbps, reply->memory_gbps, least);
    take(figures.host_to_device_gbps, reply->host_to_device_gbps, least);
    take(figures.device_to_host_gbps, reply->device_to_host_gbps, least);
    if (!reply->compute_why.empty()) why_not = of_gpu(gpu, reply->compute_why);
  }
  if (why_not.empty()) return;
  out.findings.push_back({.what = "the GPUs' matrix product is not tested in full: " + why_not});
}

void GpuNode::gather_alone(GpuLook& out) {
  const int world = static_cast<int>(opened_.size());
  if (world < 2 || nccl_version_ == 0) return;
  const Deadline deadline(settings_.gather_ms);
  const auto id = make_id(deadline);
  const auto gathered = id ? gather(*id, {.first = 0, .world = world}, deadline, nullptr) : std::unexpected(id.error());
  if (gathered) {
    out.figures->node_ms = gathered->ms;
    return;
  }
  note_failure(out, GpuStep::kGather,
               {.why = "the all-gather of its own GPUs over NCCL failed: " + gathered.error().why,
                .is_defect = gathered.error().is_defect});
}

std::expected<std::string, GatherFailure> GpuNode::make_id(const Deadline& deadline) {
  std::vector<std::string> lines(opened_.size());
  lines.front() = text_of(GpuMakeId{});
  auto reply = reply_of(probes_->ask(lines, deadline).front(), read_gpu_id);
  if (!reply) return std::unexpected(failure_of(0, reply.error()));
  return std::move(reply->id);
}

std::expected<GpuGathered, GatherFailure> GpuNode::gather(const std::string& id, Place place, const Deadline& deadline,
                                                          OtherNode* other) {
  std::vector<std::string> lines;
  const std::int64_t deadline_ms = std::max<std::int64_t>(deadline.left_ms() - kAbortMs, 1);
  for (std::size_t gpu = 0; gpu < opened_.size(); ++gpu) {
    lines.push_back(text_of(GpuGather{.id = id,
                                      .rank = place.first + static_cast<int>(gpu),
                                      .world = place.world,
                                      .bytes = settings_.gather_bytes,
                                      .deadline_ms = deadline_ms}));
  }
  Collective collective(other);
  probes_->ask(lines, deadline, &collective);
  return collective.result();
}

std::expected<void, GatherFailure> GpuNode::revive(const Deadline& deadline) {
  const auto restarted = probes_->restart(*image_, settings_.environment);
  if (!restarted) return std::unexpected(GatherFailure{.why = "a probe cannot be started again: " + restarted.error()});
  std::vector<std::string> lines(opened_.size());
  for (const std::size_t gpu : *restarted) {
    lines[gpu] = text_of(GpuOpen{.device = static_cast<int>(gpu), .libraries = settings_.libraries});
  }
  const Answers answers = probes_->ask(lines, deadline);
  for (const std::size_t gpu : *restarted) {
    const auto reply = reply_of(answers[gpu], read_gpu_opened);
    if (!reply) return std::unexpected(failure_of(gpu, reply.error()));
  }
  return {};
}

// The leader makes the id, all GPUs gather, and each node sends its result as soon as it knows it:
//
//   id HEX, or no REASON
//   ms MILLISECONDS, or no REASON
std::expected<GpuPairFigures, GatherFailure> GpuNode::meet(int socket, bool leads, int others,
                                                           const Deadline& deadline) {
  if (!probes_) return std::unexpected(GatherFailure{.why = "its GPUs are not tested"});
  OtherNode other(socket, deadline);
  const Place place{.first = leads ? 0 : others, .world = static_cast<int>(opened_.size()) + others};
  const auto revived = revive(deadline);
  const auto id = !revived ? std::unexpected(revived.error()) : leads ? make_id(deadline) : other.hear("id");
  if (id && leads) other.tell("id " + *id);
  const auto gathered = id ? gather(*id, place, deadline, &other) : std::unexpected(id.error());
  if (!gathered) {
    other.tell(gathered.error());
    return std::unexpected(gathered.error());
  }
  other.tell(format("ms {}", gathered->ms));
  const auto& theirs = other.result();
  if (!theirs) return std::unexpected(theirs.error());
  const auto ms = parse_float(*theirs);
  if (!ms || *ms < 0) return std::unexpected(GatherFailure{.why = "the other node reported no time"});
  return GpuPairFigures{.ms = std::max(gathered->ms, *ms), .latency_us = gathered->latency_us, .ranks = place.world};
}

}  // namespace elastic::health
