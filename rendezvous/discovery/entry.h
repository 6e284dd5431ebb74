#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/message_parts.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/fields.h"
#include "src/base/result.h"

// Where no endpoint is given, nodes find their job's coordinator by a file that all of them can read: it has an entry
// for each job. The entry says where the leader is, and gives no right to act: votes do (docs/failover.md).
// docs/rendezvous.md has the rules for users.
namespace elastic::discovery {

struct Entry {
  struct Place {
    std::string address = {};  // numeric, or a name if the user has given one
    std::uint16_t port = 0;
    bool operator==(const Place&) const = default;
    static void fields(auto& io, auto& v) {
      io("address", v.address);
      io("port", v.port, Bounds{1, 65535});
    }
  };
  // The incarnation of the job, and when it began, as Unix time in milliseconds. 0: the elastic-run that wrote the
  // entry is still to begin the job.
  protocol::Incarnation incarnation = 0;
  std::int64_t birth_ms = 0;
  std::optional<protocol::RoundNumber> round = {};  // the last one; not set: none has formed
  protocol::Term term = 1;
  protocol::AgentId process = 0;  // the number of the elastic-run that has written it
  std::string host = {};          // the name of its host
  Place leader = {};
  std::vector<Place> next_leaders = {};  // their peer ports
  std::int64_t written_ms = 0;           // when, as Unix time in milliseconds

  bool operator==(const Entry&) const = default;
  static void fields(auto& io, auto& v) {
    io("incarnation", v.incarnation);
    io("birth_ms", v.birth_ms, Bounds{0, std::numeric_limits<std::int64_t>::max()});
    io("round", v.round);
    io("term", v.term, Bounds{1, std::numeric_limits<protocol::Term>::max()});
    io("process", v.process);
    io("host", v.host);
    io("leader", v.leader);
    io("next_leaders", v.next_leaders);
    io("written_ms", v.written_ms, Bounds{0, std::numeric_limits<std::int64_t>::max()});
  }
};

// Why a file of entries has not answered.
struct RegisterFailure {
  std::string reason;     // as a clause
  bool hopeless = false;  // another attempt will fail, too
};
// The text of the present entry; empty if there is none.
using RegisterAnswer = std::expected<std::string, RegisterFailure>;

// "10.0.0.5:4711", "[fd00::5]:4711".
std::string endpoint_of(const Entry::Place& place);

// One line of JSON; equal entries have equal texts.
std::string entry_text(const Entry& entry);
// Parses an entry. Fails with a reason alone, as a clause, if entry_text() has not made the text.
Result<Entry> read_entry(std::string_view text);

// A file has the entries of several jobs: {"version":1,"jobs":{"job":{...},...}}.
// The text of a job's entry; empty if it has none. Fails as read_entry() does, but not on an empty file.
Result<std::string> entry_in_file(std::string_view file, const std::string& job);
// The file's text with a job's entry set, or removed if `entry` is empty; empty if no entry is left. Fails as
// entry_in_file() does, and above limits::kEntriesPerFile.
Result<std::string> file_with_entry(std::string_view file, const std::string& job, const std::string& entry);

// What the leader of a job does about the entry that it has read.
struct Keeping {
  bool writes = false;   // its own entry in place of that one
  bool gossips = false;  // at the leader which that entry names: it is of another start of the job
};
// `own` is what the leader would write.
//  1. There is no entry: the leader writes. It says the same: it does not.
//  2. It is of the same start of the job: the leader writes, unless the entry is of a later term.
//  3. It is of another start, and of this process: the leader writes.
//  4. It is of another start elsewhere: the leader gossips there, and writes if its own start goes before that one
//     (judge_duplicate_job).
Keeping keep_entry(const Entry& own, const std::optional<Entry>& there);

// The address that this node's entry names: `given` by --local-addr; else the first of `own` (the addresses of all
// interfaces that are up) that is neither loopback nor link-local, IPv4 before IPv6; else 127.0.0.1.
std::string entry_address(const std::string& given, const std::vector<std::string>& own);

}  // namespace elastic::discovery
