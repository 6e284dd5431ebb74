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
// Keys and values of one request together.
inline constexpr std::size_t kStoreCommandBytes = 64 * 1024 * 1024;
// Replies that one client has not read yet, in bytes; above it the client is disconnected.
inline constexpr std::size_t kStoreUnreadReplyBytes = 64 * 1024 * 1024;
// What a store keeps in all, in bytes: values, queues and waits, with the memory around each below.
// 1,024 workers may leave an object of the longest value each.
inline constexpr std::size_t kStoreBytes = 10ULL * 1024 * 1024 * 1024;
// Unfinished requests and unread replies of all clients together, in bytes: as many workers may send
// or fetch such an object at the same moment.
inline constexpr std::size_t kStoreTransitBytes = 10ULL * 1024 * 1024 * 1024;

// What is counted beside the bytes of keys, values and items, since each takes memory, an empty one
// too: for a value and an awaited key; a queue; an item of a queue; a waiting client; each of the
// keys that it waits for.
inline constexpr std::size_t kStoreEntryBytes = 160;
inline constexpr std::size_t kStoreQueueBytes = 800;
inline constexpr std::size_t kStoreItemBytes = 64;
inline constexpr std::size_t kStoreWaitBytes = 160;
inline constexpr std::size_t kStorePlaceBytes = 96;

// Milliseconds that a connection to the store may take to say what it is.
inline constexpr std::int64_t kStoreGreetingMs = 30'000;

// One line of a worker's output on the console, in bytes; a longer one is given out in pieces.
inline constexpr std::size_t kLogLineBytes = 64 * 1024;
// The end of each worker's stderr that is kept for the failure report, in bytes.
inline constexpr std::size_t kStderrTailBytes = 64 * 1024;
// Output that waits for a slow console, in bytes, stdout and stderr each; above it lines are dropped.
inline constexpr std::size_t kConsoleWaitingBytes = 4 * 1024 * 1024;
// Output that waits for a log file, in bytes; above it its worker waits, too, unless the file does not answer.
inline constexpr std::size_t kLogFileWaitingBytes = 16 * 1024 * 1024;

}  // namespace elastic::limits
