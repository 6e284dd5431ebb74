#include "health/probe/gpu_node.h"

#include <algorithm>
#include <utility>

#include "health/gpu/gpu_versions.h"
#include "health/gpu/image.h"
#include "health/gpu/judge_gpu.h"
#include "health/probe/lines.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// Before the deadline of an answer the probe itself gives up, aborts its communicator and lives on.
constexpr std::int64_t kAbortMs = 3000;

// An answer that is read, or why there is none.
template <class Value>
GpuReply<Value> reply_of(const Attempt<std::string>& answer, std::optional<GpuReply<Value>> (*read)(const std::string&)) {
  if (!answer) return std::unexpected(Refusal{.why = answer.error()});
  auto reply = read(*answer);
  if (!reply) return std::unexpected(Refusal{.why = "its probe's answer cannot be read: " + printable(answer->substr(0, 80))});
  return std::move(*reply);
}

std::string of_gpu(std::size_t gpu, const std::string& why) { return format("GPU {}: {}", gpu, why); }

void make_unfit(GpuLook& out, std::string why) {
  if (out.unfit.empty()) out.unfit = std::move(why);
}

// The better of what is known: of several GPUs the slowest counts.
template <class Choose>
void take(std::optional<double>& all, const std::optional<double>& one, Choose choose) {
  if (one) all = all ? choose(*all, *one) : *one;
}
double most(double one, double other) { return std::max(one, other); }
double least(double one, double other) { return std::min(one, other); }

}  // namespace

std::int64_t longest_look_ms(const GpuSettings& settings) {
  if (settings.gpus == 0) return 0;
  return settings.open_ms + settings.facts_ms + settings.compute_ms + settings.gather_ms;
}

GpuNode::Answers GpuNode::ask_all(const std::string& line, const Deadline& deadline) {
  return probes_->ask(std::vector<std::string>(opened_.size(), line), deadline);
}

GpuLook GpuNode::look() {
  GpuLook out;
  if (settings_.gpus == 0) return out;
  if (!open(out)) {
    probes_.reset();
    return out;
  }
  look_at_facts(out);
  compute(out);
  gather_alone(out);
  return out;
}

// Whether GPUs can be tested.
bool GpuNode::open(GpuLook& out) {
  if (settings_.program.empty() && gpu_probe_image().empty()) {
    out.unavailable = "this elastic-run has no probe for them, for its processor";
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
    out.unavailable = "their probe cannot be started: " + started.error();
    return false;
  }
  probes_.emplace(std::move(*started));
  std::vector<std::string> lines;
  for (int device = 0; device < settings_.gpus; ++device) {
    lines.push_back(text_of(GpuOpen{.device = device, .libraries = settings_.libraries}));
  }
  const Answers answers = probes_->ask(lines, Deadline(settings_.open_ms));
  for (std::size_t gpu = 0; gpu < answers.size(); ++gpu) {
    auto reply = reply_of(answers[gpu], read_gpu_opened);
    if (reply) {
      opened_.push_back(std::move(*reply));
    } else if (reply.error().kind == Refusal::Kind::kUnavailable) {
      out.unavailable = of_gpu(gpu, reply.error().why);
    } else {
      make_unfit(out, of_gpu(gpu, reply.error().why));
    }
  }
  if (opened_.size() < answers.size()) return false;
  out.versions = versions_of(opened_);
  nccl_version_ = opened_.front().nccl ? opened_.front().nccl->version : 0;
  for (const GpuOpened& one : opened_) {
    if (!one.nccl || one.nccl->version != nccl_version_) nccl_version_ = 0;
  }
  if (nccl_version_ == 0) {
    out.findings.push_back({.what = "NCCL is not tested: " + (opened_.front().nccl_why.empty() ? "not all GPUs have the same"
                                                                                              : opened_.front().nccl_why),
                            .remedy = "name the library that the job uses with --nccl-lib"});
  }
  return true;
}

void GpuNode::look_at_facts(GpuLook& out) {
  std::vector<std::string> lines(opened_.size());
  lines.front() = text_of(GpuAskFacts{});
  const auto facts = reply_of(probes_->ask(lines, Deadline(settings_.facts_ms)).front(), read_gpu_facts);
  if (!facts) {
    out.findings.push_back({.what = "what NVML knows of the GPUs is not known: " + facts.error().why});
    return;
  }
  GpuNeeds needs{.nproc = settings_.workers, .visible = settings_.gpus};
  for (const GpuOpened& one : opened_) needs.used.push_back({one.uuid, one.bus_id});
  for (Finding& finding : judge_gpus({}, *facts, needs)) out.findings.push_back(std::move(finding));
}

void GpuNode::compute(GpuLook& out) {
  GpuFigures& figures = out.figures.emplace();
  if (nccl_version_ != 0) figures.gathers = static_cast<int>(opened_.size());
  std::string why_not;
  const Answers answers = ask_all(text_of(GpuCompute{}), Deadline(settings_.compute_ms));
  for (std::size_t gpu = 0; gpu < answers.size(); ++gpu) {
    const auto reply = reply_of(answers[gpu], read_gpu_computed);
    if (!reply) {
      if (reply.error().kind == Refusal::Kind::kFailed) make_unfit(out, of_gpu(gpu, reply.error().why));
      else why_not = of_gpu(gpu, reply.error().why);
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
  const auto gathered = id ? gather(*id, 0, world, deadline) : std::unexpected(id.error());
  if (!gathered) return make_unfit(out, "the all-gather of its own GPUs failed: " + gathered.error());
  out.figures->node_ms = gathered->ms;
}

Attempt<std::string> GpuNode::make_id(const Deadline& deadline) {
  std::vector<std::string> lines(opened_.size());
  lines.front() = text_of(GpuMakeId{});
  auto reply = reply_of(probes_->ask(lines, deadline).front(), read_gpu_id);
  if (!reply) return std::unexpected(of_gpu(0, reply.error().why));
  return std::move(reply->id);
}

Attempt<GpuGathered> GpuNode::gather(const std::string& id, int first, int world, const Deadline& deadline) {
  std::vector<std::string> lines;
  const std::int64_t deadline_ms = std::max<std::int64_t>(deadline.left_ms() - kAbortMs, 1);
  for (std::size_t gpu = 0; gpu < opened_.size(); ++gpu) {
    lines.push_back(text_of(GpuGather{.id = id,
                                      .rank = first + static_cast<int>(gpu),
                                      .world = world,
                                      .bytes = settings_.gather_bytes,
                                      .deadline_ms = deadline_ms}));
  }
  const Answers answers = probes_->ask(lines, deadline);
  GpuGathered all;
  for (std::size_t gpu = 0; gpu < answers.size(); ++gpu) {
    const auto reply = reply_of(answers[gpu], read_gpu_gathered);
    if (!reply) return std::unexpected(of_gpu(gpu, reply.error().why));
    all.ms = std::max(all.ms, reply->ms);
    take(all.latency_us, reply->latency_us, most);
  }
  return all;
}

// The leader makes the id, all gather, and each says what came of it:
//
//   id HEX, or no REASON
//   ms MILLISECONDS, or no REASON
Attempt<GpuPairFigures> GpuNode::meet(int socket, bool leads, int others, const Deadline& deadline) {
  constexpr std::size_t kLineBytes = 4096;
  if (!probes_) return std::unexpected("its GPUs are not tested");
  Lines lines(socket, kLineBytes);
  std::string id;
  if (leads) {
    auto made = make_id(deadline);
    if (!lines.write(made ? "id " + *made : "no " + made.error(), &deadline)) return std::unexpected(lines.why());
    if (!made) return std::unexpected(made.error());
    id = std::move(*made);
  } else {
    const auto told = lines.read(&deadline);
    if (!told) return std::unexpected(lines.why());
    if (!told->starts_with("id ")) return std::unexpected(std::string());
    id = told->substr(3);
  }
  const int world = static_cast<int>(opened_.size()) + others;
  const auto gathered = gather(id, leads ? 0 : others, world, deadline);
  // What cannot be told any more the other misses.
  const bool is_told = lines.write(gathered ? format("ms {}", gathered->ms) : "no " + gathered.error(), &deadline);
  if (!gathered) return std::unexpected(gathered.error());
  const auto theirs = is_told ? lines.read(&deadline) : std::nullopt;
  if (!theirs) return std::unexpected(lines.why());
  const double ms = theirs->starts_with("ms ") ? parse_float(theirs->substr(3)).value_or(-1) : -1;
  if (ms < 0) return std::unexpected(std::string());
  return GpuPairFigures{.ms = std::max(gathered->ms, ms), .latency_us = gathered->latency_us, .ranks = world};
}

}  // namespace elastic::health
