#include "src/process/guardian_board.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <new>

#include "src/base/check.h"

namespace elastic::process {
namespace {

constexpr std::int64_t kNoLease = std::numeric_limits<std::int64_t>::max();

struct Slot {
  std::size_t listeners = 0;
  std::array<SocketAddress, kDeathNoticeListeners> to;
  std::size_t size = 0;
  std::array<std::uint8_t, kDeathNoticeBytes> bytes;
};

}  // namespace

// Two processes use this: the atomics must be lock-free, for a process could die while it holds a lock.
struct GuardianBoard::Shared {
  std::atomic<std::int64_t> lease_until_ms{kNoLease};
  std::atomic<bool> leaves_background{false};
  std::atomic<std::size_t> said_slot{0};  // the other one is being written
  std::array<Slot, 2> slots;

  static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::size_t>::is_always_lock_free &&
                std::atomic<bool>::is_always_lock_free);
};

void GuardianBoard::Unmap::operator()(Shared* shared) const { munmap(shared, sizeof(Shared)); }

Result<GuardianBoard> GuardianBoard::make() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno("cannot map memory to share with the launcher", errno);
  return GuardianBoard(new (memory) Shared);
}

void GuardianBoard::set_lease(std::optional<std::int64_t> until_ms) {
  shared_->lease_until_ms.store(until_ms.value_or(kNoLease));
}

std::optional<std::int64_t> GuardianBoard::lease() const {
  const std::int64_t until_ms = shared_->lease_until_ms.load();
  return until_ms == kNoLease ? std::nullopt : std::optional(until_ms);
}

void GuardianBoard::leave_background() { shared_->leaves_background.store(true); }

bool GuardianBoard::leaves_background() const { return shared_->leaves_background.load(); }

void GuardianBoard::set_death_notice(std::span<const SocketAddress> to, std::span<const std::uint8_t> bytes) {
  ELASTIC_CHECK(to.size() <= kDeathNoticeListeners && bytes.size() <= kDeathNoticeBytes);
  const std::size_t free_slot = 1 - shared_->said_slot.load();
  Slot& slot = shared_->slots.at(free_slot);
  slot.listeners = to.size();
  std::ranges::copy(to, slot.to.begin());
  slot.size = bytes.size();
  std::ranges::copy(bytes, slot.bytes.begin());
  shared_->said_slot.store(free_slot);
}

std::optional<DeathNotice> GuardianBoard::death_notice() const {
  const Slot& slot = shared_->slots.at(shared_->said_slot.load());
  if (slot.size == 0 || slot.listeners == 0) return {};
  return DeathNotice{std::span(slot.to).first(slot.listeners), std::span(slot.bytes).first(slot.size)};
}

}  // namespace elastic::process
