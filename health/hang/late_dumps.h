#pragma once

#include "health/hang/hang_facts.h"

// Flight recorders that nobody could ask, and that can be had all the same when a hang ends its round: by the key
// /exception_dump in the worker store. PyTorch's NCCL engine of up to torch 2.14 looks for it every second, dumps, and
// ends the process some minutes later, so that the key is for rounds that are over.
namespace elastic::hang {

// The recorder of this rank was not had, and can be by the key.
bool can_still_dump(const RankFacts& rank);
// The key is worth being set: a rank can still dump, and a node of ours has the worker store.
bool want_dump_key(const JobFacts& facts);

}  // namespace elastic::hang
