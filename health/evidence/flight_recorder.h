#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace elastic::evidence {

// | what is kept of a dump: entries, groups, members of a group; a name of a group, another text | the newest
// {kFlightEntries}; {kFlightGroups}; {kFlightMembers}; {kFlightNameBytes}, {kFlightTextBytes} | the rest is left out,
// and the result says so; of a longer list no member is known; a text is cut |
inline constexpr std::size_t kFlightGroups = 256;
inline constexpr std::size_t kFlightMembers = 65'536;
inline constexpr std::size_t kFlightEntries = 32'768;
inline constexpr std::size_t kFlightNameBytes = 256;
inline constexpr std::size_t kFlightTextBytes = 64;
// | a dump of PyTorch's flight recorder, as JSON of a control server | {kFlightJsonBytes}, {kFlightJsonLevels} levels,
// {kFlightJsonMembers} members of an object | it is refused, with the reason |
inline constexpr std::size_t kFlightJsonBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kFlightJsonLevels = 8;
inline constexpr std::size_t kFlightJsonMembers = 4096;

// One operation of a process group, as PyTorch's flight recorder has it.
struct FlightOperation {
  enum class State : std::uint8_t { kScheduled, kStarted, kCompleted, kUnknown };

  std::string backend;        // "nccl", "gloo"
  std::string name;           // "all_reduce", "send"
  std::optional<int> peer;    // of a send or a receive: a rank in the group
  std::int64_t record = 0;    // the place among all operations of the process
  std::int64_t sequence = 0;  // among the collectives of the group, or among its sends and receives
  bool is_p2p = false;
  State state = State::kUnknown;  // gloo's operations are kScheduled until they are over, and after that
  bool is_over = false;           // it is retired, or completed
  // Of all sizes of inputs and of outputs, in order: equal sizes have equal digests, on every host.
  std::uint64_t input_digest = 0;
  std::uint64_t output_digest = 0;
  std::int64_t input_elements = 0;  // all-to-all may be of different sizes, not of different sums
  std::int64_t output_elements = 0;
  std::string sizes;  // of the inputs, for people: "4x2, 3"
  std::string dtype;  // of the first input: "Float"
};

// What one process knows of one of its groups.
struct FlightGroup {
  std::string name;
  std::string description;
  // The global ranks of the group; empty where the dump does not say: of gloo no release up to 2.15 does.
  std::vector<int> members;
  // The latest sequence of its collectives that was enqueued, was started, is over. The entries say it. Nothing where
  // the dump has no such entry. gloo's operations are never known to have started before they are over.
  std::optional<std::int64_t> enqueued;
  std::optional<std::int64_t> started;
  std::optional<std::int64_t> completed;
  // The same as pg_status counts it; nothing where it has none, or -1. These counts include sends
  // and receives, of which a rank has as many as it has neighbours: they are no measure between ranks, but tell whether
  // one rank moves.
  std::optional<std::int64_t> counted_enqueued;
  std::optional<std::int64_t> counted_started;
  std::optional<std::int64_t> counted_completed;
  std::optional<FlightOperation> newest;  // of any kind
};

// What a judge needs of one process's dump. The version of the format decides nothing: each field is used where it is.
struct FlightFacts {
  std::string version;              // "2.10"
  std::vector<FlightGroup> groups;  // those of the entries; the one with the newest entry first
  std::size_t entries = 0;          // that were read
  // The oldest one that the ring still has. Above 0 a group without entries may have had some.
  std::int64_t oldest_record = 0;
  std::size_t entries_left_out = 0;  // incomplete ones, and those beyond the bounds
  bool has_more_groups = false;      // than kFlightGroups
  // The file was cut off: the newest entries are missing, so that the facts do not prove that this rank is behind. Its
  // last entry is left out, as it may not be whole.
  bool is_cut = false;
};

// Reads a dump as the recorder writes it into a file (a pickle), or as PyTorch's handlers return it (JSON). Fails on
// what is no dump: the error says what is wrong with it, and which bound it exceeds.
Result<FlightFacts> flight_facts_of_pickle(std::string bytes);
Result<FlightFacts> flight_facts_of_json(std::string_view text);

}  // namespace elastic::evidence
