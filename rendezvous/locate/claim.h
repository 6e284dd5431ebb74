#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

// Where no node is the coordinator's by its address, the nodes agree on one by compare-and-set: a claim stands in a
// place that all can read, a file or a key of a TCPStore. docs/rendezvous.md has the rules for users.
namespace elastic::locate {

// Who hosts a job's coordinator.
struct Claim {
  std::string address;  // numeric, or a name where the user has given one
  std::uint16_t port = 0;
  std::string agent;  // of the elastic-run that wrote it; no two are alike
  // How often its holder has renewed it, so that no text stands there twice; none: by an elastic-run that wrote version
  // 1, and renews nothing.
  std::optional<std::uint64_t> renewals = {};
  std::int64_t loss_timeout_ms = 0;  // of its holder, from which follows how long it is good; 0 where it isn't renewed

  friend bool operator==(const Claim&, const Claim&) = default;
};

// Whether both are of one elastic-run, renewed since or not.
bool same_holder(const Claim& one, const Claim& other);

// "10.0.0.5:4711", "[fd00::5]:4711".
std::string claim_endpoint(const Claim& claim);

// One line of JSON: {"version":2,"address":"10.0.0.5","port":4711,"agent":"5f3a...","renewals":17,
// "loss_timeout_ms":5000}; version 1 has neither of the last two. Equal claims have equal texts.
std::string claim_text(const Claim& claim);
// Fails with a reason alone, as a clause, on what claim_text() has not made.
Result<Claim> read_claim(std::string_view text);

// A file has the claims of several jobs: {"version":2,"jobs":{"job":{"address":...},...}}; version 1 is read, too.
// The text of a job's claim; empty: it has none. Fails as read_claim() does, on an empty file never.
Result<std::string> claim_in_file(std::string_view file, const std::string& job);
// The file's text with a job's claim set, or taken out where `claim` is empty; empty where none is left. Fails as
// claim_in_file() does, and above limits::kClaimsPerFile.
Result<std::string> file_with_claim(std::string_view file, const std::string& job, const std::string& claim);

// How an attempt to reach the coordinator that a claim names has ended.
enum class Tried : std::uint8_t {
  kNot,
  kAnswered,  // by the agent protocol
  kRefused,   // nobody listens there
  kStranger,  // somebody else does
  kSilent,    // nothing came
};

// What the attempts at the claim that was tried last have shown.
class ClaimTrials {
 public:
  // An attempt has ended.
  void tried(const Claim& claim, Tried how);
  // Of the last attempt at exactly this claim, as often renewed.
  Tried last(const Claim& claim) const;

 private:
  Claim claim_;
  Tried last_ = Tried::kNot;
};

// For how long a claim has stood there without being renewed. Times in milliseconds of a monotonic clock.
class ClaimSight {
 public:
  // It is seen there now. Since when it has been, exactly as it is.
  std::int64_t seen(const Claim& claim, std::int64_t now_ms);

 private:
  std::optional<Claim> claim_;
  std::int64_t since_ms_ = 0;
};

// What is known when a node has looked at the place.
struct ClaimView {
  std::optional<Claim> there = {};   // none: nobody's
  bool is_own = false;               // this process has written it, and its coordinator listens
  bool may_host = true;              // false: is_host=0
  bool belongs = false;              // this node is in a job that has had a coordinator
  bool hosts = false;                // which is in this process
  Tried tried = Tried::kNot;         // at exactly what is there
  std::int64_t unchanged_ms = 0;     // since it was first seen exactly as it is
  std::int64_t loss_timeout_ms = 0;  // of this node
};

enum class ClaimStep : std::uint8_t {
  kConnect,  // to what is there
  kClaim,    // write an own claim in place of what is there
  kWait,     // look again later
};

struct ClaimDecision {
  ClaimStep step = ClaimStep::kWait;
  // Why, as a clause: "nobody was there", "10.0.0.5:4711 refuses connections".
  std::string reason;
};

// The first rule that applies:
//   1. Nobody is there: claims it; but a node whose job has had a coordinator elsewhere waits, for what has been
//      removed was removed in order, when the job was over. What a coordinator that died has left is still there.
//   2. The claim is our own: connects.
//   3. It has not been renewed for as long as it is good: its holder may do nothing any more, be it dead, cut off from
//      the place or from us. Claims it, unless is_host=0.
//   4. An attempt at it has failed since it was renewed last: waits for it to be renewed, or to be over.
//   5. It is one that is never renewed, and all attempts at it have failed for twice the loss timeout: claims it,
//   unless
//      is_host=0.
//   6. Connects.
ClaimDecision decide_claim(const ClaimView& view);

// The address that a claim names. `given`: by --local-addr; else `reached_by`, the own address of a connection to the
// place, unless that is loopback, and the place is not meant to be on this host alone; else the first of `own` (all
// addresses of interfaces that are up) that is neither loopback nor link-local, IPv4 before IPv6; else 127.0.0.1.
std::string claim_address(const std::string& given, const std::string& reached_by, bool loopback_is_meant,
                          const std::vector<std::string>& own);

}  // namespace elastic::locate
