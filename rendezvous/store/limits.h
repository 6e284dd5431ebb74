#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of the worker store (docs/store-protocol.md). docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a key in the worker store | {kStoreKeyBytes}, with the `/` that PyTorch puts before it | that connection is closed,
// as by PyTorch's server |
inline constexpr std::size_t kStoreKeyBytes = 8192;
// | the payload of one store command | {kStorePayloadBytes} | that connection is closed, as by PyTorch's server |
inline constexpr std::size_t kStorePayloadBytes = 8 * 1024 * 1024;
// | keys in one CHECK, WAIT, MULTI_GET, MULTI_SET | {kStoreKeysPerCommand} | that connection is closed, as by PyTorch's
// server |
inline constexpr std::size_t kStoreKeysPerCommand = 131072;
// | replies that wait for a store client, beside what the kernel holds for it | {kStoreUnreadReplyBytes}, and the reply
// that exceeds it, of any length | nothing more is read from the client until it has taken them |
inline constexpr std::size_t kStoreUnreadReplyBytes = 1024 * 1024;
// | the part of a long reply that one store client gets in a turn | 256 KiB; 2 MiB for all together, but 16 KiB each at
// least | the rest follows in the next turns |
// | keys, values, queues and waits of a store, with the memory around each | {kStoreBytes} | the connection whose
// request could exceed it is closed, nothing is changed; one warning |
inline constexpr std::size_t kStoreBytes = 10ULL * 1024 * 1024 * 1024;
// | unfinished requests and unread replies of all store clients, except values that the store holds anyway |
// {kStoreTransitBytes} | the connection that has the most of them is closed; one warning |
inline constexpr std::size_t kStoreTransitBytes = 10ULL * 1024 * 1024 * 1024;
// | the memory that is counted around a value and an awaited key; a queue; an item of it; a waiting client; each of the
// keys that it waits for | {kStoreEntryBytes}; {kStoreQueueBytes}; {kStoreItemBytes}; {kStoreWaitBytes};
// {kStorePlaceBytes} | it counts in addition to the bytes, since each takes memory even if it is empty |
inline constexpr std::size_t kStoreEntryBytes = 160;
inline constexpr std::size_t kStoreQueueBytes = 800;
inline constexpr std::size_t kStoreItemBytes = 64;
inline constexpr std::size_t kStoreWaitBytes = 160;
inline constexpr std::size_t kStorePlaceBytes = 96;
// | time from a connection to the worker store to its VALIDATE | {kStoreGreetingMs} | that connection is closed |
inline constexpr std::int64_t kStoreGreetingMs = 30'000;
// | a store client whose host does not answer, or that takes nothing of what is sent to it | 2 minutes | that
// connection is closed |

}  // namespace elastic::limits
