#pragma once

#include <utility>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::process {

// Hands descriptors to a child through a socket. A child that has a copied descriptor table would have a copy of every
// descriptor below it, too, and would have to close those.
class HandOver {
 public:
  // Fails where no socket can be made.
  static Result<HandOver> make();

  // Sends a descriptor. The caller keeps it, and must not close it before the child has received it. At most two.
  Status put(int descriptor) const;

  // The socket from which the child receives them.
  int out() const { return out_.get(); }

 private:
  HandOver(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  UniqueFd in_;
  UniqueFd out_;
};

// Receives the next descriptor as the number `target`: a descriptor that has this number is closed, and all lower
// numbers must be in use, so that no second copy has to be closed. Returns an errno, or 0. Makes only system calls: for
// a child between vfork and exec that has a descriptor table of its own.
int take_descriptor(int out, int target);

}  // namespace elastic::process
