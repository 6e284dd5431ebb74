#pragma once

#include <utility>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::process {

// Hands descriptors to a child through a socket. A child that copied one by its number would have to copy all below
// it, too, and to close those again.
class HandOver {
 public:
  // Fails where no socket can be had.
  static Result<HandOver> make();

  // Puts a descriptor in; it stays the caller's, who must not close it before the child has it. Two at most.
  Status put(int descriptor) const;

  // What the child takes them from.
  int out() const { return out_.get(); }

 private:
  HandOver(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  UniqueFd in_;
  UniqueFd out_;
};

// Takes the descriptor that was put in first, at the number `target`: what is there is closed, and all numbers below
// it must be in use. So there is no second copy of it to be closed. Returns an errno, or 0. Only system calls: for a
// child between vfork and exec, with descriptors of its own.
int take_descriptor(int out, int target);

}  // namespace elastic::process
