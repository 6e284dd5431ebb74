#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "health/hang/hang_facts.h"
#include "src/base/fields.h"

// What messages about a hang consist of.
namespace elastic::protocol {

// Facts of a node that mean something without those of others (hang::Fact).
struct HangFacts {
  bool waits_for_disk = false;   // a worker has been in state D for some time
  bool is_stopped = false;       // a worker is stopped, and not by elastic-run
  bool lacks_gpu = false;        // a GPU is lost
  bool has_dump_key = false;     // /exception_dump is in the store
  bool misses_init_key = false;  // ranks wait in the store for the key of one that has not come
  bool operator==(const HangFacts&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "waits_for_disk", v.waits_for_disk, "is_stopped", v.is_stopped, "lacks_gpu", v.lacks_gpu);
    each(io, "has_dump_key", v.has_dump_key, "misses_init_key", v.misses_init_key);
  }
};

// A node's facts as bytes for NodeEvidence: at most limits::kHangEvidenceBytes. What would be more is left out, the
// numbers of collectives first and the ranks themselves last, and the sources say so.
std::string encode_facts(hang::NodeFacts facts);
// Empty if these are not the bytes of such facts. They may be anything that an agent sends: HangPicture brings them
// within their bounds.
std::optional<hang::NodeFacts> decode_facts(std::string_view bytes);

}  // namespace elastic::protocol
