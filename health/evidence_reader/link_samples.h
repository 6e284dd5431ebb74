#pragma once

#include <string>
#include <vector>

#include "health/hang_evidence/evidence_part.h"
#include "health/hang_evidence/link_facts.h"
#include "src/base/environment.h"

namespace elastic::evidence {

// Every port of InfiniBand and RoCE, from sysfs below `root`, which is "" except in tests.
std::vector<hang::LinkSample> look_at_links(const std::string& root);

// Looks twice, 2 s apart. A host without such ports has nothing to say. A port's counters come from its device, which
// may not answer.
hang::EvidenceAnswer ask_links(const Environment& environment);

}  // namespace elastic::evidence
