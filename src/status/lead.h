#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Where clients are led that ask for a job whose coordinator is on another node.
namespace elastic::status {

// Where the coordinator of this node's job is, as far as the node knows.
struct Whereabouts {
  enum class Kind : std::uint8_t {
    kHere,       // in this process, or nothing here says where clients are to go instead
    kElsewhere,  // in another process, at `address`
    kUnknown,    // it was lost, or not found yet
  };
  Kind kind = Kind::kHere;
  std::string job = {};      // --rdzv-id
  std::string address = {};  // numeric: by which this node reaches it
  std::uint16_t port = 0;
  bool is_on_this_host = false;  // `address` is one of this host's own
};

// The client that asks: its address, and that of this host to which it has connected. Empty: not known.
struct Caller {
  std::string from = {};
  std::string at = {};
};

enum class Lead : std::uint8_t {
  kServe,     // the answer is here
  kRedirect,  // place_for() is where the client is to ask
  kNotYet,    // nobody can say now
};

// What to do with a request about this job; empty: the only one, or all. `has_others`: coordinators of other jobs are
// in this process.
Lead lead_of(const Whereabouts& is, std::string_view job, bool has_others);

// The address by which the caller reaches a coordinator that is elsewhere. A caller on this host gets a loopback
// address if the coordinator is on this host, too, and only such a caller gets one.
std::string address_for(const Whereabouts& is, const Caller& caller);
// The same with the port: "10.0.0.2:40123", "[fd00::2]:40123".
std::string place_for(const Whereabouts& is, const Caller& caller);

// The answers: a redirect to the same target there, and a sentence for 503.
std::string url_of(std::string_view place, std::string_view target);
std::string not_yet(const Whereabouts& is);

}  // namespace elastic::status
