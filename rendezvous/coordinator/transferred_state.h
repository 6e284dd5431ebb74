#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/job_settings.h"
#include "rendezvous/coordinator/limits.h"
#include "rendezvous/coordinator/round_check.h"
#include "rendezvous/coordinator/round_stop.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/fields.h"

// What a coordinator transfers to the next leader through the agents, which keep it as bytes and do not read it.
namespace elastic::coordinator {

// The state as of the last round that was prepared. The next leader learns from the agents of that round what has
// happened since, and judges it itself. Times are Unix milliseconds, since the coordinators of two hosts have no other
// common clock.
struct TransferredState {
  // A host that has lost nodes (LossBudget).
  struct Host {
    std::string name;
    int losses = 0;                  // within the loss window, and since its last quarantine
    std::int64_t last_ms = 0;        // when it lost a node last
    std::int64_t quarantine_ms = 0;  // how long its last quarantine was
    std::int64_t until_ms = 0;       // when that ends
    bool operator==(const Host&) const = default;
    static void fields(auto& io, auto& v) {
      io("name", v.name, protocol::bounds::kName);
      each(io, "losses", v.losses, "last_ms", v.last_ms, "keep_out_ms", v.quarantine_ms, "until_ms", v.until_ms);
    }
  };
  // A host that is evicted from the job.
  struct Evicted {
    std::string name;
    bool by_hang = false;  // a node of it is out for a hang; else the check before training has found it unhealthy
    bool operator==(const Evicted&) const = default;
    static void fields(auto& io, auto& v) {
      io("name", v.name, protocol::bounds::kName);
      io("by_hang", v.by_hang);
    }
  };
  protocol::JobRules rules = {};
  health::CheckRules check = {};
  int first_size = 0;  // how many nodes the first round had
  int restarts_used = 0;
  int losses = 0;                                // lost nodes, in the whole job
  std::optional<CrashLoop::Attempt> crash = {};  // the crash with which the last attempt failed
  std::vector<Host> hosts = {};                  // those that matter most first
  std::vector<Evicted> evicted = {};
  // Later additions: TransferredMore, as bytes. A coordinator that does not know them passes them on unchanged.
  std::string more = {};
  bool operator==(const TransferredState&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "rules", v.rules, "check", v.check, "first_size", v.first_size);
    each(io, "restarts_used", v.restarts_used, "losses", v.losses, "crash", v.crash);
    io("hosts", v.hosts, at_most(limits::kTransferredHosts));
    io("excluded", v.evicted, at_most(limits::kTransferredHosts));
    io("more", v.more, at_most(limits::kTransferredMoreBytes));
  }
};

struct TransferredMore {
  std::optional<TransferredHang> hang = {};
  // Additions of later versions. A coordinator that does not know them passes them on unchanged.
  std::string more = {};
  bool operator==(const TransferredMore&) const = default;
  static void fields(auto& io, auto& v) {
    io("hang", v.hang);
    io("more", v.more, at_most(limits::kTransferredMoreBytes / 2));
  }
};
std::string encode_more(const TransferredMore& more);
// Empty if these are not its bytes.
std::optional<TransferredMore> decode_more(std::string_view bytes);

// At most limits::kTransferredBytes: the last hosts are left out if the state would be longer.
std::string encode(TransferredState state);
// Empty if these are not the bytes of such a state.
std::optional<TransferredState> decode(std::string_view bytes);

// The parts of a coordinator that are transferred.
struct TransferredParts {
  JobSettings& settings;
  RoundCheck& check;
  HangDesk& hang;
  std::int64_t now_ms = 0;   // by the coordinator's clock
  std::int64_t unix_ms = 0;  // the same as Unix time
};

// Gives out the state of a coordinator, and takes over that of an earlier one.
class StateTransfer {
 public:
  // What the coordinator of this term gives to the agents of the next round.
  protocol::Transferred give(protocol::Term term, const TransferredParts& parts);
  // The state that was given or taken over last, with what a hang has changed since. Nothing else that happens while
  // the round ends is in it, above all no lost node: the next leader charges for that itself, and would count it twice.
  protocol::Transferred give_hang(protocol::Term term, const TransferredParts& parts);

  enum class Taken : std::uint8_t {
    kNew,         // the parts have it now
    kKnown,       // it is no newer than what was taken before: nothing changes
    kUnreadable,  // the bytes are no state: nothing changes
  };
  // A node of the round that is taken over has brought this state. The newest of all that are brought holds: it
  // replaces what the parts have, except for hosts that are evicted already and greater counts. A value that makes no
  // sense is brought within its bounds.
  Taken adopt_state(const protocol::Transferred& brought, TransferredParts parts);

 private:
  void put_hang(TransferredState& state, const TransferredParts& parts) const;
  protocol::Transferred numbered(protocol::Term term);

  TransferredState last_;    // the state that was given or taken over last
  std::uint32_t given_ = 0;  // how many states were given
  std::uint64_t taken_ = 0;  // the number of the state that was taken over
  std::string more_;         // TransferredState::more
};

}  // namespace elastic::coordinator
