#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "src/base/result.h"
#include "src/process/death_notice.h"

namespace elastic::process {

// Memory that launcher and guardian share, for what the guardian has to know at the very moment when the launcher
// stops or dies. The launcher writes it without waiting. Nothing is lost while the guardian does not run, and the
// guardian always reads the last value, which messages that fill a socket could not promise.
class GuardianBoard {
 public:
  // Must be called before the fork. Fails where no memory can be mapped.
  static Result<GuardianBoard> make();

  // Launcher: sets until when its workers may run, in milliseconds of CLOCK_BOOTTIME; none: for ever.
  void set_lease(std::optional<std::int64_t> until_ms);
  std::optional<std::int64_t> lease() const;

  // Launcher: says that it ends with success, and that the workers' background processes are to live on. This cannot be
  // taken back.
  void leave_background();
  bool leaves_background() const;

  // Launcher: sets the death notice, which the guardian is to send when nothing of this node is left. If the launcher
  // is killed in the middle of this, the notice before it stands. At most kDeathNoticeListeners and kDeathNoticeBytes;
  // none: nothing is sent.
  void set_death_notice(std::span<const SocketAddress> to, std::span<const std::uint8_t> bytes);
  // Guardian, once the launcher does not write any more: the death notice, valid as long as the board is.
  std::optional<DeathNotice> death_notice() const;

 private:
  struct Shared;
  struct Unmap {
    void operator()(Shared* shared) const;
  };
  explicit GuardianBoard(Shared* shared) : shared_(shared) {}

  std::unique_ptr<Shared, Unmap> shared_;
};

}  // namespace elastic::process
