#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "src/base/result.h"

// munge, as Slurm's hosts have it: munged on each host makes credentials that say which user made them, and what that
// user put into them, enciphered with a key that all hosts of a cluster share. libmunge is behind this.
//
// These block until munged answers, which it may never do: they are for a side thread. `socket` is munged's, empty: the
// one that libmunge knows. An error's reason is libmunge's, as a clause.
namespace elastic::net::munge {

// `only_for`: munged opens it for no other user.
Result<std::string> encode(const std::string& socket, const std::string& payload, std::optional<uid_t> only_for);

struct Decoded {
  std::string payload;
  uid_t uid = 0;  // who made it, as munged sees users
};
// Each credential is opened once on a host: munged calls it a replay after that.
Result<Decoded> decode(const std::string& socket, const std::string& credential);

}  // namespace elastic::net::munge
