#include "cli/gpu_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "health/messages/messages.h"
#include "src/base/text.h"

namespace elastic::cli {

Status plan_gpu_test(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  constexpr const char* kVariable = "ELASTIC_RUN_PROBE_GPUS";
  const auto asked = elastic::lookup(environment, kVariable);
  // GPUs that perhaps no worker will use are not tested: others may be using them, and a broken one does no harm.
  const int visible = host.visible_gpus(elastic::lookup(environment, "CUDA_VISIBLE_DEVICES"));
  int count = std::min({visible, plan.settings.node.local_world_size, health::kMostGpus});
  std::string origin = count < visible ? "one visible GPU for each worker" : "visible GPUs";
  if (asked && *asked != "auto") {
    const auto number = *asked == "off" ? std::optional<std::int64_t>(0) : parse_int(*asked);
    if (!number || *number < 0 || *number > health::kMostGpus) {
      return fail(format("{}={}", kVariable, printable(*asked)),
                  format("not auto, off or a number of GPUs from 0 to {}", health::kMostGpus),
                  "unset it to test the GPUs that workers see, or set it to off");
    }
    count = static_cast<int>(*number);
    origin = format("environment: {}", kVariable);
  }
  const bool is_told = count > 0 || (asked && *asked != "auto");
  for (const FlagId id : {FlagId::kAccelerator, FlagId::kCheckProbe}) {
    if (flags.text(id) == flag_of(id).by_default.value_or("") || count == 0) continue;
    count = 0;
    origin = flags.origin_text(id);
  }
  plan.settings.check.gpus = count;
  if (is_told) plan.entries.push_back({"GPUs to test", count == 0 ? "none" : format("{}", count), std::move(origin)});
  return {};
}

}  // namespace elastic::cli
