#include "rendezvous/coordinator/attribution.h"

#include <algorithm>
#include <tuple>

#include "src/base/text.h"

namespace elastic::coordinator {

std::string text(const LostNode& node) {
  const std::string address = node.address.empty() ? "" : format(" ({})", printable(node.address));
  const std::string how = node.how.empty() ? "" : ": " + node.how;
  return format("node {}{} was lost{}", node.node_rank, address, how);
}

void order_by_cause(std::vector<protocol::WorkerFailure>& failures, std::optional<int> stopped_for) {
  std::ranges::stable_sort(failures, {}, [&](const protocol::WorkerFailure& failure) {
    return std::tuple(failure.stopped_by_us, failure.rank != stopped_for, failure.kind, failure.failed_ms(),
                      failure.rank);
  });
}

}  // namespace elastic::coordinator
