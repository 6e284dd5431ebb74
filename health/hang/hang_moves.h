#pragma once

#include "health/hang/hang_picture.h"

namespace elastic::hang {

// Whether a job that shows no progress does something all the same, by the two looks at its stacks: most of the ranks
// that wait in a collective, or for storage, stand elsewhere than before; or no rank waits, and most stand elsewhere or
// compute. An evaluation that prints nothing is such a job. Ranks of which two stacks are not known say nothing, but
// that they wait where they do so by the numbers of their collectives.
bool is_moving(const HangPicture& picture);

}  // namespace elastic::hang
