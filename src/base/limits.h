#pragma once

#include <cstddef>
#include <cstdint>

// Every bound of elastic-run. docs/limits.md says what happens at each.
namespace elastic::limits {

// Workers on one node. Above it the number is taken for a mistake.
inline constexpr std::int64_t kMaxWorkersPerNode = 4096;
// Descriptors that the launcher opens for itself at most, connections to the store not counted.
inline constexpr int kLauncherDescriptors = 24;
// Restarts of a job (--max-restarts).
inline constexpr std::int64_t kMaxRestarts = 1'000'000'000;
// Seconds that any timeout on the command line may name: ten years, for "never".
inline constexpr std::int64_t kMaxTimeoutSeconds = 3650LL * 24 * 3600;

// The worker store, as PyTorch's libuv server has them: one key, one command's payload, keys in one command.
inline constexpr std::size_t kStoreKeyBytes = 8192;
inline constexpr std::size_t kStorePayloadBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kStoreKeysPerCommand = 131072;
// Replies that one client has not read yet, in bytes; above it the client is disconnected.
inline constexpr std::size_t kStoreUnreadReplyBytes = 64 * 1024 * 1024;
// Milliseconds that a connection to the store may take to say what it is.
inline constexpr std::int64_t kStoreGreetingMs = 30'000;

}  // namespace elastic::limits
