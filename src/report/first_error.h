#pragma once

#include <vector>

#include "src/report/failure.h"

namespace elastic::report {

// Of the workers of one node the one that wrote its error.json first failed first, as torchrun has it, also where
// another was quicker to end, or it was still on its way out when it was told to stop. Those that wrote theirs before
// the first failure did come before it, in the order in which they wrote: they did not end because of a stop
// (error_came_first), and their time is as much before the first failure's as their files are older. Only the files'
// times are compared with each other, for a file system has a clock of its own. Without effect where the first failure
// is of another node than `node_rank`, or its file's time is not known.
void put_first_error_first(std::vector<FailedWorker>& failures, int node_rank);

}  // namespace elastic::report
