#pragma once

#include <span>
#include <vector>

#include "health/hang/hang_facts.h"
#include "health/stacks/look.h"

// The stacks of a node's workers, as facts about a hang.
namespace elastic::hang {

// Adds them to the node's facts: stacks, each different one once, the places of them in what is known of each rank, and
// how far the source has come. `first` are looks at least 2 s earlier, of the same workers, and `second` the later
// ones; either may be empty, and then it had not come in time. A rank that is not in the facts yet is added.
//
// Where a worker itself is no Python (--wrap, a shell) its stack is that of the first Python that it has started. Of
// the other processes that it has started the one tells whose stack is the rarest among them; helpers of Python's
// multiprocessing and of torch's compiler, which wait for orders all the time, tell nothing.
void add_stacks(NodeFacts& facts, std::span<const stacks::RankLook> first, std::span<const stacks::RankLook> second);

}  // namespace elastic::hang
