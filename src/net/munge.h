#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "src/base/result.h"

// munge, as it runs on Slurm's hosts: munged on each host makes credentials, which contain the user that made them and
// a payload, enciphered with a key that all hosts of a cluster share. libmunge does the work.
//
// These functions block until munged answers, which may be never: they are for a side thread. `socket` is munged's;
// empty: libmunge's default. An error's reason is libmunge's, as a clause.
namespace elastic::net::munge {

// Makes a credential that munged opens only for the user `only_for`, if one is given.
Result<std::string> encode(const std::string& socket, const std::string& payload, std::optional<uid_t> only_for);

struct Decoded {
  std::string payload;
  uid_t uid = 0;  // the user that made it, by munged
};
// Opens a credential. munged opens each only once on a host, and calls a second time a replay.
Result<Decoded> decode(const std::string& socket, const std::string& credential);

}  // namespace elastic::net::munge
