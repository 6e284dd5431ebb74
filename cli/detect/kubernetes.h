#pragma once

#include "cli/detect/detect.h"

namespace elastic::cli::detect {

// In a pod of an Indexed Job: node rank, the job's id, and pod 0 of it as the endpoint, by the pod's full name in
// /etc/hosts. In a pod that an operator has told RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of
// its pods: number of nodes, node rank and endpoint by these. Elsewhere: nothing. Of `flags` it is looked at whether
// there are to be several nodes. Fails where they are, and the pods have no names by which to meet, or a variable is
// not what it should be.
Result<Detected> detect_kubernetes(const ParsedFlags& flags, const EnvironmentLookup& environment,
                                   const FileLookup& file);

}  // namespace elastic::cli::detect
