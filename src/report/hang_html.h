#pragma once

#include <string>
#include <string_view>

#include "src/report/hang.h"

// A hang as HTML, without scripts and references to other files. All texts are escaped, whatever bytes they have.
namespace elastic::report {

// The whole page hang.html. Times are shown `utc_offset_s` seconds east of UTC.
std::string hang_page(const Hang& hang, std::string_view run_id, int utc_offset_s);

// What a page needs in its style, and the part of a page below its heading: the cause first, then the groups of ranks
// by their stacks, the odd ones on top, then what the verdict follows from.
std::string_view hang_style();
std::string hang_section(const Hang& hang, int utc_offset_s);

}  // namespace elastic::report
