#pragma once

#include "cli/detect/detect.h"

namespace elastic::cli::detect {

// In a pod of an Indexed Job, finds the node rank, the job's id, and pod 0 as the endpoint, by the pod's full name in
// /etc/hosts. In a pod to which an operator has given RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, finds the number
// of nodes, the node rank and the endpoint by these. Elsewhere it finds nothing. `flags` say whether the job is to have
// several nodes. If so, it fails where the pods have no names by which to meet, or a variable is not what it should be.
Result<Detected> detect_kubernetes(const ParsedFlags& flags, const EnvironmentLookup& environment,
                                   const FileLookup& file);

}  // namespace elastic::cli::detect
