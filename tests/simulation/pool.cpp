// The allocator of the program `simulate`, which spent a quarter of its time in malloc. It serves one thread with
// blocks of a few sizes, which are used again and never freed; large blocks come from malloc. The build with sanitizers
// does not use it.
#ifndef __SANITIZE_ADDRESS__

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kStep = 16;
constexpr std::size_t kLargest = 1024;
constexpr std::size_t kClasses = kLargest / kStep + 1;
constexpr std::size_t kSlab = 64 * 1024;  // of one class each
constexpr std::size_t kSlabs = 1 << 18;   // 16 GiB of addresses, of which only what is used costs anything

struct Free {
  Free* next;
};

constinit std::array<Free*, kClasses> free_lists{};
constinit std::byte* first = nullptr;
constinit std::size_t used = 0;
constinit std::array<std::uint8_t, kSlabs> class_of_slab{};

bool refill(std::size_t index) {
  if (first == nullptr) {
    void* mapped =
        mmap(nullptr, kSlab * kSlabs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    first = static_cast<std::byte*>(mapped);
  }
  if (used == kSlabs) return false;
  class_of_slab[used] = static_cast<std::uint8_t>(index);
  std::byte* const slab = first + used++ * kSlab;
  const std::size_t size = index * kStep;
  for (std::size_t at = kSlab / size; at-- > 0;) free_lists[index] = new (slab + at * size) Free{free_lists[index]};
  return true;
}

void* large(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t size) {
  if (size > kLargest) return large(size);
  const std::size_t index = (size + kStep - 1) / kStep + (size == 0);
  Free*& list = free_lists[index];
  if (list == nullptr && !refill(index)) return large(size);
  Free* const block = list;
  list = block->next;
  return block;
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  const auto offset = reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(first);
  if (first == nullptr || offset >= kSlab * kSlabs) return std::free(block);
  Free*& list = free_lists[class_of_slab[offset / kSlab]];
  list = new (block) Free{list};
}

void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

#endif
