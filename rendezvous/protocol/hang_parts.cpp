#include "rendezvous/protocol/hang_parts.h"

#include <array>
#include <utility>

#include "rendezvous/protocol/binary_archive.h"
#include "rendezvous/protocol/limits.h"

namespace elastic::protocol {
namespace {

using hang::NodeFacts;
using hang::RankFacts;
using hang::Source;
using hang::SourceFacts;

SourceFacts too_much() { return {Source::kLost, "it is more than one message holds"}; }

// What is left out of facts that are too long, one after the other.
void leave_out_collectives(NodeFacts& facts) {
  facts.groups.clear();
  facts.group_facts.clear();
  for (RankFacts& rank : facts.ranks) {
    if (rank.recorder.state == Source::kHad) rank.recorder = too_much();
  }
}
void leave_out_ras(NodeFacts& facts) {
  if (facts.ras) facts.ras_source = too_much();
  facts.ras.reset();
}
void leave_out_outer_frames(NodeFacts& facts) {
  constexpr std::size_t kFramesKept = 3;
  for (hang::Stack& stack : facts.different_stacks) {
    if (stack.frames.size() > kFramesKept) stack.frames.resize(kFramesKept);
  }
}
void leave_out_stacks(NodeFacts& facts) {
  facts.different_stacks.clear();
  for (RankFacts& rank : facts.ranks) rank.stack = rank.stack_then = rank.child_stack = {};
  if (facts.stacks.state == Source::kHad) facts.stacks = too_much();
}
void leave_out_most_ranks(NodeFacts& facts) {
  constexpr std::size_t kRanksKept = 256;
  if (facts.ranks.size() > kRanksKept) facts.ranks.resize(kRanksKept);
}
void leave_out_all(NodeFacts& facts) { facts = {}; }

ByteString bytes_of(const NodeFacts& facts) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  NodeFacts::fields(writer, facts);
  return bytes;
}

}  // namespace

std::string encode_facts(NodeFacts facts) {
  ByteString bytes = bytes_of(facts);
  for (void (*leave_out)(NodeFacts&) : {leave_out_collectives, leave_out_ras, leave_out_outer_frames, leave_out_stacks,
                                        leave_out_most_ranks, leave_out_all}) {
    if (bytes.size() <= limits::kHangEvidenceBytes) break;
    leave_out(facts);
    bytes = bytes_of(facts);
  }
  return {bytes.begin(), bytes.end()};
}

std::optional<NodeFacts> decode_facts(std::string_view bytes) {
  const ByteString copy(bytes.begin(), bytes.end());
  BinaryReader reader(copy, BinaryReader::Ending::kMayBeEarly);
  NodeFacts facts;
  NodeFacts::fields(reader, facts);
  if (copy.empty() || !reader.error().empty()) return {};
  return facts;
}

}  // namespace elastic::protocol
