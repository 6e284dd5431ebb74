#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "src/base/result.h"
#include "src/process/farewell.h"

namespace elastic::process {

// Memory that launcher and guardian share: what the guardian has to know at the very moment when the launcher
// stops or dies. The launcher writes; nothing waits, nothing is lost while the guardian does not run, and
// nothing older is ever read than what was written last, as it would be with messages that fill a socket.
class GuardianBoard {
 public:
  // To be made before the fork. Fails where no memory can be mapped.
  static Result<GuardianBoard> make();

  // Launcher: until when its workers may run, in milliseconds of CLOCK_BOOTTIME; none: for ever.
  void set_lease(std::optional<std::int64_t> until_ms);
  std::optional<std::int64_t> lease() const;

  // Launcher: it ends well, and what workers have left in the background is to live on. Not taken back.
  void leave_background();
  bool leaves_background() const;

  // Launcher: what the guardian is to say when nothing of this node is left, and to whom. A launcher that is
  // killed in the middle of this leaves the word before it. At most kFarewellBytes; none: nothing is said.
  void set_farewell(const SocketAddress& to, std::span<const std::uint8_t> bytes);
  // Guardian, when the launcher does not write any more; valid as long as the board is.
  std::optional<Farewell> farewell() const;

 private:
  struct Shared;
  struct Unmap {
    void operator()(Shared* shared) const;
  };
  explicit GuardianBoard(Shared* shared) : shared_(shared) {}

  std::unique_ptr<Shared, Unmap> shared_;
};

}  // namespace elastic::process
