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
// The list of a Slurm step's nodes: its text, and the hosts that it stands for.
inline constexpr std::size_t kHostListBytes = 1024 * 1024;
inline constexpr std::size_t kHostListHosts = 65536;
// Seconds that any timeout on the command line may name: ten years, for "never".
inline constexpr std::int64_t kMaxTimeoutSeconds = 3650LL * 24 * 3600;

// Of LossBudget: losses of one node before it is kept out, and nodes whose losses are remembered.
inline constexpr int kMaxLossesPerNode = 1000;
inline constexpr std::size_t kLossNodes = 16384;

// The worker store, as PyTorch's libuv server has them: one key, one command's payload, keys in one command.
inline constexpr std::size_t kStoreKeyBytes = 8192;
inline constexpr std::size_t kStorePayloadBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kStoreKeysPerCommand = 131072;
// Replies that one client has not read yet, in bytes; above it nothing more is read of the client.
inline constexpr std::size_t kStoreUnreadReplyBytes = 1024 * 1024;
// What our own client sends in one request: keys and values.
inline constexpr std::size_t kStoreClientBytes = 64 * 1024 * 1024;
// What a store keeps in all, in bytes: values, queues and waits, with the memory around each below.
// 1,024 workers may leave an object of the longest value each.
inline constexpr std::size_t kStoreBytes = 10ULL * 1024 * 1024 * 1024;
// Unfinished requests and unread replies of all clients together, in bytes, but for values in replies that the store
// holds as well: as many workers may send such an object at the same moment.
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

// The agent protocol, in bytes: what follows a frame's length, and before the other side has proven that it
// knows the secret; names (job, role, address, host) and the reason of a REFUSED; other reasons; orders and
// results of the check.
inline constexpr std::size_t kAgentFrameBytes = 256 * 1024;
inline constexpr std::size_t kAgentHelloBytes = 4096;
inline constexpr std::size_t kAgentNameBytes = 1024;
inline constexpr std::size_t kAgentTextBytes = 16 * 1024;
inline constexpr std::size_t kAgentCheckBytes = 128 * 1024;
// The addresses of a node; those of all nodes of a round.
inline constexpr std::size_t kAgentAddressesBytes = 4 * 1024;
inline constexpr std::size_t kAgentAdmittedBytes = 128 * 1024;
// What one node tells all others of the worker that failed first.
inline constexpr std::size_t kAgentDetailsBytes = 64 * 1024;
// What a coordinator keeps for an agent that does not read: then the connection is closed.
inline constexpr std::size_t kAgentUnreadBytes = 4 * 1024 * 1024;
// A job's secret.
inline constexpr std::size_t kAgentSecretBytes = 4096;
// What one side says to the other of munge, in bytes, behind its length; nodes that a coordinator is asked by at once;
// and milliseconds: until munged is taken not to be there, and until a node that asks has to be done.
inline constexpr std::size_t kMungeWordBytes = 4096;
inline constexpr std::size_t kMungeVisits = 4096;
inline constexpr std::int64_t kMungeSilenceMs = 2'000;
inline constexpr std::int64_t kMungeVisitMs = 5'000;
// Failures in one list of a message.
inline constexpr std::size_t kAgentFailures = 64;
// Keep-alives without an answer that an agent remembers.
inline constexpr std::size_t kAgentUnansweredKeepAlives = 64;

// One line of a worker's output on the console, in bytes; a longer one is given out in pieces.
inline constexpr std::size_t kLogLineBytes = 64 * 1024;
// The end of each worker's stderr that is kept for the failure report, in bytes.
inline constexpr std::size_t kStderrTailBytes = 64 * 1024;
// Output that waits for a slow console, in bytes, stdout and stderr each; above it lines are dropped.
inline constexpr std::size_t kConsoleWaitingBytes = 4 * 1024 * 1024;
// What workers that have ended left in their pipes for such a console, in bytes: it waits, too, as long as the console
// takes some, and the end of a round does not wait for it.
inline constexpr std::size_t kConsoleRestBytes = 128 * 1024 * 1024;
// The least that --log-max-bytes may be: less is taken for a mistake.
inline constexpr std::uint64_t kLeastLogMaxBytes = 4096;
// Output that waits for a log file, in bytes; above it its worker waits, too, unless the file does not answer.
inline constexpr std::size_t kLogFileWaitingBytes = 16 * 1024 * 1024;

// Nodes that one job's coordinator serves, those that stand by included.
inline constexpr std::size_t kNodesPerJob = 16'384;
// Connections of agents and guardians that a coordinator's process has at once.
inline constexpr std::size_t kAgentConnections = 32'768;
// Jobs that one coordinator's process serves at once, and of jobs that are over, whose verdicts it remembers for
// agents that come late.
inline constexpr std::size_t kJobsServed = 1024;
inline constexpr std::size_t kEndedJobs = 256;
// Newcomers that wait at once because another node has the rank that they claim.
inline constexpr std::size_t kHeldNodes = 64;
// Failures of a round that its verdict carries, those that are the likeliest cause.
inline constexpr std::size_t kFailuresKept = 64;

// Jobs whose coordinators one file names (store_type=file), and the bytes of such a file.
inline constexpr std::size_t kClaimsPerFile = 256;
inline constexpr std::size_t kClaimFileBytes = 2 * 1024 * 1024;

// Status and metrics by HTTP: of a request its head (what is not a head is refused), its target; connections at once;
// requests that one turn of the loop answers; bytes of what a client sends ahead, and of answers that it leaves unread;
// milliseconds that a request may take to come, and a connection to be silent; and that answers may take to be taken.
inline constexpr std::size_t kHttpHeadBytes = 8 * 1024;
inline constexpr std::size_t kHttpTargetBytes = 2 * 1024;
inline constexpr std::size_t kHttpConnections = 256;
inline constexpr std::size_t kHttpRequestsPerTurn = 64;
inline constexpr std::size_t kHttpAheadBytes = 128 * 1024;
inline constexpr std::size_t kHttpUnreadBytes = 16 * 1024 * 1024;
inline constexpr std::int64_t kHttpIdleMs = 10'000;
inline constexpr std::int64_t kHttpTakesMs = 60'000;
// Bytes of an answer that --status reads.
inline constexpr std::size_t kHttpAnswerBytes = 64 * 1024 * 1024;
// Nodes that /status names, failures and jobs that are over that it remembers.
inline constexpr std::size_t kStatusNodes = 1024;
inline constexpr std::size_t kStatusFailures = 16;
inline constexpr std::size_t kStatusEndedJobs = 16;

// Addresses of one name that are tried, those first that RFC 6724 puts first.
inline constexpr std::size_t kAddressesOfName = 64;

// A line of a coordinator's recording that is read, in bytes.
inline constexpr std::size_t kRecordingLineBytes = 16 * 1024 * 1024;
// What waits to be written to a recording, in bytes; above it the recording ends.
inline constexpr std::size_t kRecordingWaitingBytes = 16 * 1024 * 1024;

// One line of --events, in bytes; and what waits to be written there, above which lines are lost.
inline constexpr std::size_t kEventLineBytes = 4096;
inline constexpr std::size_t kEventsWaitingBytes = 4 * 1024 * 1024;

// Commands of --on-event: those that run at once, events that wait for one, milliseconds that one may take, bytes of
// the end of its output that are told, and milliseconds that the end of the job waits for those that are left.
inline constexpr std::size_t kEventCommands = 4;
inline constexpr std::size_t kEventCommandsWaiting = 64;
inline constexpr std::int64_t kEventCommandMs = 30'000;
inline constexpr std::size_t kEventCommandOutputBytes = 4096;
inline constexpr std::int64_t kEventCommandsEndMs = 10'000;

}  // namespace elastic::limits
