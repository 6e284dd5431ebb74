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
  std::string agent;    // of the elastic-run that wrote it; no two are alike

  friend bool operator==(const Claim&, const Claim&) = default;
};

// "10.0.0.5:4711", "[fd00::5]:4711".
std::string claim_endpoint(const Claim& claim);

// One line of JSON: {"version":1,"address":"10.0.0.5","port":4711,"agent":"5f3a..."}. Equal claims have equal texts.
std::string claim_text(const Claim& claim);
// Fails with a reason alone, as a clause, on what claim_text() has not made.
Result<Claim> read_claim(std::string_view text);

// A file has the claims of several jobs: {"version":1,"jobs":{"job":{"address":...},...}}.
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

// What the attempts at the claim that was tried last have shown. Times in milliseconds of a monotonic clock.
class ClaimTrials {
 public:
  // An attempt that began at `began_ms` has ended.
  void tried(const Claim& claim, Tried how, std::int64_t began_ms);
  // Of the last attempt at exactly this claim.
  Tried last(const Claim& claim) const;
  // Since the first of the attempts at it, one after the other, that were met by silence; 0 without two of them.
  std::int64_t silent_ms(const Claim& claim, std::int64_t now_ms) const;

 private:
  Claim claim_;
  Tried last_ = Tried::kNot;
  int silences_ = 0;
  std::int64_t silent_since_ms_ = 0;
};

// What is known when a node has looked at the place.
struct ClaimView {
  std::optional<Claim> there = {};   // none: nobody's
  bool is_own = false;               // this process has written it, and its coordinator listens
  bool may_host = true;              // false: is_host=0
  bool belongs = false;              // this node is in a job that has had a coordinator
  bool hosts = false;                // which is in this process
  Tried tried = Tried::kNot;         // at exactly what is there
  std::int64_t silent_ms = 0;        // the same
  std::int64_t loss_timeout_ms = 0;
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
//   3. is_host=0: connects, as long as it takes.
//   4. Nobody listens there, or somebody who is no coordinator: claims it.
//   5. It has been silent for twice the loss timeout: claims it. Who was attached to it knows it to be lost by then.
//   6. Connects.
ClaimDecision decide_claim(const ClaimView& view);

// The address that a claim names. `given`: by --local-addr; else `reached_by`, the own address of a connection to the
// place, unless that is loopback, and the place is not meant to be on this host alone; else the first of `own` (all
// addresses of interfaces that are up) that is neither loopback nor link-local, IPv4 before IPv6; else 127.0.0.1.
std::string claim_address(const std::string& given, const std::string& reached_by, bool loopback_is_meant,
                          const std::vector<std::string>& own);

}  // namespace elastic::locate
