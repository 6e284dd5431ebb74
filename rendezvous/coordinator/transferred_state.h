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

// What a coordinator hands to its successor through the agents, which keep it as bytes and do not read it.
namespace elastic::coordinator {

// As of the last round that was prepared. What has happened since, a successor learns from the agents of that round,
// and judges by itself. Times are Unix milliseconds, since the coordinators of two hosts have no other clock in common.
struct TransferredState {
  // A host that has lost nodes (LossBudget).
  struct Host {
    std::string name;
    int losses = 0;                  // within the loss window, and since it was last kept out
    std::int64_t last_ms = 0;        // when it lost a node last
    std::int64_t quarantine_ms = 0;  // how long it was kept out the last time
    std::int64_t until_ms = 0;       // when that ends
    bool operator==(const Host&) const = default;
    static void fields(auto& io, auto& v) {
      io("name", v.name, protocol::bounds::kName);
      each(io, "losses", v.losses, "last_ms", v.last_ms, "keep_out_ms", v.quarantine_ms, "until_ms", v.until_ms);
    }
  };
  // A host that is excluded from the job.
  struct Evicted {
    std::string name;
    bool by_hang = false;  // a node of it is out for a hang; else the check before training has found it unfit
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
  int losses = 0;                                // of nodes, in the whole job
  std::optional<CrashLoop::Attempt> crash = {};  // with which the last attempt failed
  std::vector<Host> hosts = {};                  // those that matter most first
  std::vector<Evicted> evicted = {};
  // What has been added since: TransferredMore, as bytes. A coordinator that does not know it passes it on as it is.
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
  // What later versions hand over. A coordinator that does not know it passes it on as it is.
  std::string more = {};
  bool operator==(const TransferredMore&) const = default;
  static void fields(auto& io, auto& v) {
    io("hang", v.hang);
    io("more", v.more, at_most(limits::kTransferredMoreBytes / 2));
  }
};
std::string encode_more(const TransferredMore& more);
// Nothing if these are not its bytes.
std::optional<TransferredMore> decode_more(std::string_view bytes);

// At most limits::kTransferredBytes: the last hosts are left out if all of them would be longer.
std::string encode(TransferredState state);
// Nothing if these are not the bytes of such a state.
std::optional<TransferredState> decode(std::string_view bytes);

// The parts of a coordinator that are handed over.
struct TransferredParts {
  JobSettings& settings;
  JobBudgets& budgets;
  RoundCheck& check;
  HangDesk& hang;
  std::int64_t now_ms = 0;   // by the coordinator's clock
  std::int64_t unix_ms = 0;  // the same as Unix time
};

// Hands the state of a coordinator out, and takes over that of an earlier one.
class LeadershipTransfer {
 public:
  // What the agents of the next round are given by the coordinator of this term.
  protocol::Transferred give(protocol::Term term, const TransferredParts& parts);
  // What was given or taken over last, but for what a hang has changed since. What else has happened while the round
  // ends, a lost node above all, a successor charges by itself: it would count that twice.
  protocol::Transferred give_hang(protocol::Term term, const TransferredParts& parts);

  enum class Taken : std::uint8_t {
    kNew,         // the parts have it now
    kKnown,       // it is no newer than what was taken before: nothing changes
    kUnreadable,  // the bytes are no state: nothing changes
  };
  // A node of the round that is taken over has brought this. The newest state of all that are brought holds: it
  // replaces what the parts have, except for hosts that are excluded already and greater counts. A value that makes no
  // sense is brought within its bounds.
  Taken take(const protocol::Transferred& brought, TransferredParts parts);

 private:
  void put_hang(TransferredState& state, const TransferredParts& parts) const;
  protocol::Transferred numbered(protocol::Term term);

  TransferredState last_;    // that was given or taken over
  std::uint32_t given_ = 0;  // how many states were given
  std::uint64_t taken_ = 0;  // the number of the state that was taken over
  std::string more_;         // TransferredState::more
};

}  // namespace elastic::coordinator
