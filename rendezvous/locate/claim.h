#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/message_parts.h"
#include "src/base/fields.h"
#include "src/base/limits.h"
#include "src/base/result.h"

// If no endpoint says which node hosts the coordinator, the nodes agree on one by compare-and-set: the host writes a
// claim into a file that all nodes can read. docs/rendezvous.md has the rules for users.
namespace elastic::locate {

// The text that says which node hosts a job's coordinator.
struct Claim {
  std::string address;  // numeric, or a name if the user has given one
  std::uint16_t port = 0;
  std::string agent;                 // a random name of the elastic-run that wrote it
  std::int64_t renewals = 0;         // how often its holder has renewed it, so that no text is written twice
  std::int64_t loss_timeout_ms = 0;  // its holder's, from which its validity follows
  // With which its coordinator begins: above that of every claim that was taken over before it. 1: there was no claim.
  protocol::Term term = 1;

  friend bool operator==(const Claim&, const Claim&) = default;
  static void fields(auto& io, auto& v) {
    io.must("address", v.address);
    io.must("port", v.port, Bounds{1, 65535});
    io.must("agent", v.agent);
    io.must("renewals", v.renewals, Bounds{0, INT64_MAX});
    io.must("loss_timeout_ms", v.loss_timeout_ms, Bounds{1, limits::kMaxTimeoutSeconds * 1000});
    io.must("term", v.term, Bounds{1, std::numeric_limits<protocol::Term>::max()});
  }
};

// Whether one elastic-run has written both, whatever their number of renewals.
bool same_holder(const Claim& one, const Claim& other);

// "10.0.0.5:4711", "[fd00::5]:4711".
std::string claim_endpoint(const Claim& claim);

// One line of JSON: {"version":3,"address":"10.0.0.5","port":4711,"agent":"5f3a...","renewals":17,
// "loss_timeout_ms":5000,"term":1}. Equal claims have equal texts.
std::string claim_text(const Claim& claim);
// Parses a claim. Fails with a reason alone, as a clause, if claim_text() has not made the text.
Result<Claim> read_claim(std::string_view text);

// A file has the claims of several jobs: {"version":3,"jobs":{"job":{"address":...},...}}.
// The text of a job's claim; empty if it has none. Fails as read_claim() does, but not on an empty file.
Result<std::string> claim_in_file(std::string_view file, const std::string& job);
// The file's text with a job's claim set, or removed if `claim` is empty; empty if no claim is left. Fails as
// claim_in_file() does, and above limits::kClaimsPerFile.
Result<std::string> file_with_claim(std::string_view file, const std::string& job, const std::string& claim);

// How an attempt to reach the coordinator that a claim names has ended.
enum class Tried : std::uint8_t {
  kNot,       // no attempt was made
  kAnswered,  // a coordinator answered
  kRefused,   // no process listens there
  kStranger,  // another kind of server answered
  kSilent,    // there was no answer
};

// How the last attempt to reach a claim's coordinator has ended.
class ClaimTrials {
 public:
  // An attempt has ended.
  void tried(const Claim& claim, Tried how);
  // How the last attempt ended if it was at exactly this claim, with the same number of renewals; else kNot.
  Tried last(const Claim& claim) const;

 private:
  Claim claim_;
  Tried last_ = Tried::kNot;
};

// For how long a claim has not been renewed. Times are milliseconds of a monotonic clock.
class ClaimSight {
 public:
  // The claim has been read. Returns for how many milliseconds it has been exactly as it is.
  std::int64_t seen(const Claim& claim, std::int64_t now_ms);

 private:
  std::optional<Claim> claim_;
  std::int64_t since_ms_ = 0;
};

// What a node knows after it has read the claim.
struct ClaimView {
  std::optional<Claim> there = {};  // the claim; nothing if there is none
  bool is_own = false;              // this process has written it, and its coordinator listens
  bool may_host = true;             // false: is_host=0
  bool belongs = false;             // this node is in a job that has had a coordinator
  bool hosts = false;               // that coordinator is in this process
  Tried tried = Tried::kNot;        // how the last attempt at exactly this claim ended
  std::int64_t unchanged_ms = 0;    // for how long the claim has been exactly as it is
};

enum class ClaimStep : std::uint8_t {
  kConnect,  // connect to the coordinator that the claim names
  kClaim,    // write this node's claim in the place of the one that was read
  kWait,     // read again later
};

struct ClaimDecision {
  ClaimStep step = ClaimStep::kWait;
  // Why, as a clause: "no node had claimed it", "no process listens at 10.0.0.5:4711".
  std::string reason;
};

// The first rule that applies:
//   1. There is no claim: claim it. But a node whose job has had a coordinator elsewhere waits: a claim is only removed
//      when its job is over; that of a coordinator which died stays.
//   2. The claim is this node's own: connect.
//   3. The claim has not been renewed while it was valid: its holder may not act any more, whether it is dead or cut
//      off. Claim it, unless is_host=0.
//   4. An attempt at the claim has failed since its last renewal: wait for a renewal, or until rule 3 holds.
//   5. Otherwise connect.
ClaimDecision decide_claim(const ClaimView& view);

// The address that this node's claim names: `given` by --local-addr; else the first of `own` (the addresses of all
// interfaces that are up) that is neither loopback nor link-local, IPv4 before IPv6; else 127.0.0.1.
std::string claim_address(const std::string& given, const std::vector<std::string>& own);

}  // namespace elastic::locate
