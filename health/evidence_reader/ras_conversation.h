#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "health/hang_evidence/evidence_part.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::evidence {

// Where RAS listens.
struct RasPlace {
  std::string address = "127.0.0.1";
  std::string port = "28028";
  bool is_named = false;  // by NCCL_RAS_ADDR
};
// By the workers' environment; nothing where NCCL_RAS_ENABLE=0 has turned it off. Fails where NCCL_RAS_ADDR is no
// numeric address (or localhost) with a port.
Result<std::optional<RasPlace>> ras_place(const Environment& environment);

// Asks RAS twice, and reads what both reports have in common. `before_reading` is called before, and nobody is asked if
// it fails.
hang::EvidenceAnswer ask_ras(const hang::EvidenceTask& task, const Environment& environment,
                             const std::function<Status()>& before_reading = {});

}  // namespace elastic::evidence
