#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/locate/authority.h"
#include "rendezvous/locate/claim.h"
#include "rendezvous/locate/tenure.h"

namespace elastic::locate {

// Why the register of a claim has not answered.
struct RegisterFailure {
  std::string reason;     // as a clause
  bool hopeless = false;  // another attempt will fail, too
};
// The text of the present claim; empty if there is none.
using RegisterAnswer = std::expected<std::string, RegisterFailure>;

// A node that finds its job's coordinator by a claim, as decide_claim() decides. It hosts the coordinator itself where
// it is the one to write the claim, renews that as Tenure says, and gives the coordinator up when another node has
// taken the claim over. The claim is read again for each attempt to connect, even if the coordinator is in this
// process.
//
// Times are milliseconds of a clock that goes on while the machine is suspended. The effects of a call are to be
// performed in their order. Reads and writes use one register, renewals another one of the same claim, so that they do
// not wait for each other.
class Claimant {
 public:
  struct Settings {
    std::string place = {};    // for messages: "file /shared/meeting"
    std::string agent = {};    // a random name, which this node's claims contain
    std::uint32_t random = 0;  // goes into the terms of its claims
    std::int64_t loss_timeout_ms = 5000;
    bool may_host = true;  // false: is_host=0
  };

  struct Read {};  // answered by read()
  // Replace `expected` by `desired`, if it is the present text. Answered by written().
  struct Write {
    std::string expected;
    std::string desired;
  };
  // The same for a renewal, and to remove the claim. Answered by renewed() and taken_back().
  struct Renew {
    std::string expected;
    std::string desired;
  };
  struct TakeBack {
    std::string expected;
  };
  struct RenewAt {
    std::int64_t at_ms = 0;  // when renewal_is_due() is to be called
  };
  struct StopRenewing {};  // renewal_is_due() and renewed() are not to be called any more
  // A coordinator is to listen in this process, unless it does already, and begins with this term. Answered at once by
  // opened() or not_opened().
  struct Open {
    protocol::Term term = 1;
  };
  // The coordinator in this process may act until then.
  struct ActUntil {
    Authority authority;
  };
  // The claim leads other nodes to the coordinator in this process.
  struct Hosts {
    std::string where;
    std::string reason;  // as a clause
  };
  struct Close {};  // the coordinator in this process is to be closed: no node knows of it
  // Another node hosts the coordinator now.
  struct Depose {
    std::string why;  // as a clause
  };
  // The attempt is over: the coordinator is where the claim says, or none was found.
  struct Found {
    Claim claim;
    bool is_own = false;  // in this process
  };
  struct NotFound {
    RegisterFailure failure;
  };
  struct Withdrawn {};  // the answer to withdraw()
  // A line of the log; `event` is its name in the event stream (docs/events.md).
  struct Tell {
    enum class Level : std::uint8_t { kDebug, kInfo, kWarning };
    Level level = Level::kDebug;
    std::string_view event;
    std::string text;
    std::optional<std::uint16_t> port = {};  // for programs
  };
  using Effect = std::variant<Read, Write, Renew, TakeBack, RenewAt, StopRenewing, Open, ActUntil, Hosts, Close, Depose,
                              Found, NotFound, Withdrawn, Tell>;
  using Effects = std::vector<Effect>;

  explicit Claimant(Settings settings) : settings_(std::move(settings)) {}

  // Looks for the coordinator: answered by Found or NotFound, once. `belongs` says that this node is in a job that has
  // had a coordinator. The answers that an earlier attempt waits for are not to be given any more.
  Effects find(bool belongs);
  Effects read(const RegisterAnswer& answer, std::int64_t now_ms);
  Effects written(const RegisterAnswer& answer, std::int64_t now_ms);
  // The coordinator listens in this process, and other nodes reach it at this address and port.
  Effects opened(const std::string& address, std::uint16_t port, std::int64_t now_ms);
  Effects not_opened(const std::string& problem);
  // How the attempt to connect to what was Found has ended.
  void tried(Tried how);

  Effects renewal_is_due(std::int64_t now_ms);
  Effects renewed(const RegisterAnswer& answer, std::int64_t now_ms);

  // Removes this node's claim, if it has one, since its coordinator ends. To be the last call but taken_back().
  Effects withdraw();
  Effects taken_back(const RegisterAnswer& answer);

  // This node's claim stands, as far as it knows.
  bool holds() const { return tenure_.has_value(); }

 private:
  void go_to(const Claim& claim, Effects& out);
  void hold(Tenure tenure, const std::string& where, const std::string& reason, std::int64_t now_ms, Effects& out);
  void plan_renewal(std::int64_t now_ms, Effects& out) const;
  void tell_not_renewed(const std::string& reason, std::int64_t now_ms, Effects& out);
  // This node does not hold the claim any more. `why` is a clause.
  void lose(const std::string& why, Effects& out);
  // The term of a claim that takes this one's place.
  protocol::Term term_after(const std::optional<Claim>& there) const;
  // Closes a coordinator that was opened for a claim which was not written.
  void close_if_unclaimed(Effects& out);
  bool is_own(const Claim& claim) const { return own_ && same_holder(*own_, claim); }
  ClaimTimes times() const { return {{settings_.loss_timeout_ms}}; }

  Settings settings_;
  bool belongs_ = false;
  std::int64_t written_ = 0;      // the number of the next claim: each has one of its own
  std::optional<Claim> own_;      // names the coordinator in this process; it was written, or that was not answered
  std::optional<Tenure> tenure_;  // set while this node holds the claim
  std::optional<Claim> going_;    // the claim that was found last
  std::optional<Claim> reached_;  // the last claim whose coordinator answered
  ClaimTrials trials_;
  ClaimSight sight_;
  std::string expected_;     // of the Write that is under way, or waits for the coordinator to be opened
  std::string reason_;       // why the claim is written, as a clause
  protocol::Term term_ = 1;  // of the coordinator that is open, or is to be opened
  std::int64_t write_began_ms_ = 0;
  std::int64_t renewal_began_ms_ = 0;
  bool told_not_renewed_ = false;
  bool takes_back_again_ = false;
};

}  // namespace elastic::locate
