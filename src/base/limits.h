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

// LossBudget: the losses of one node before it is kept out, and the number of nodes whose losses are remembered.
inline constexpr int kMaxLossesPerNode = 1000;
inline constexpr std::size_t kLossNodes = 16384;

// The worker store, as PyTorch's libuv server has them: one key, one command's payload, keys in one command.
inline constexpr std::size_t kStoreKeyBytes = 8192;
inline constexpr std::size_t kStorePayloadBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kStoreKeysPerCommand = 131072;
// Replies that one client has not read yet, in bytes; above it nothing more is read of the client.
inline constexpr std::size_t kStoreUnreadReplyBytes = 1024 * 1024;
// What a store keeps in all, in bytes: values, queues and waits, with the memory around each below.
// 1,024 workers may leave an object of the longest value each.
inline constexpr std::size_t kStoreBytes = 10ULL * 1024 * 1024 * 1024;
// Unfinished requests and unread replies of all clients together, in bytes, without values in replies that the store
// holds as well. As many workers may send such an object at the same moment.
inline constexpr std::size_t kStoreTransitBytes = 10ULL * 1024 * 1024 * 1024;

// The overhead that is counted in addition to the bytes of keys, values and items, since each takes memory even if it
// is empty: of a value and an awaited key; a queue; an item of a queue; a waiting client; each of the keys that it
// waits for.
inline constexpr std::size_t kStoreEntryBytes = 160;
inline constexpr std::size_t kStoreQueueBytes = 800;
inline constexpr std::size_t kStoreItemBytes = 64;
inline constexpr std::size_t kStoreWaitBytes = 160;
inline constexpr std::size_t kStorePlaceBytes = 96;

// Milliseconds until a connection to the store must have sent its first command.
inline constexpr std::int64_t kStoreGreetingMs = 30'000;

// The agent protocol, in bytes: what follows a frame's length, and the same before the other side has proven that it
// knows the secret; names (job, role, address, host) and the reason of a REFUSED; other reasons; orders and
// results of the check.
inline constexpr std::size_t kAgentFrameBytes = 256 * 1024;
inline constexpr std::size_t kAgentHelloBytes = 4096;
inline constexpr std::size_t kAgentNameBytes = 1024;
inline constexpr std::size_t kAgentTextBytes = 16 * 1024;
inline constexpr std::size_t kAgentCheckBytes = 128 * 1024;
// The addresses of one node, and those of all nodes of a round, in bytes.
inline constexpr std::size_t kAgentAddressesBytes = 4 * 1024;
inline constexpr std::size_t kAgentAdmittedBytes = 128 * 1024;
// What one node tells all others about the worker that failed first, in bytes.
inline constexpr std::size_t kAgentDetailsBytes = 64 * 1024;
// Bytes that a coordinator keeps for an agent that does not read; above it the connection is closed.
inline constexpr std::size_t kAgentUnreadBytes = 4 * 1024 * 1024;
// A job's secret, in bytes.
inline constexpr std::size_t kAgentSecretBytes = 4096;
// The munge exchange: bytes of one message behind its length; nodes that may ask a coordinator at once; milliseconds
// until munged counts as absent, and until a node that asks must be done.
inline constexpr std::size_t kMungeWordBytes = 4096;
inline constexpr std::size_t kMungeVisits = 4096;
inline constexpr std::int64_t kMungeSilenceMs = 2'000;
inline constexpr std::int64_t kMungeVisitMs = 5'000;
// What a coordinator hands to its successor: the bytes of all of it; hosts that are kept out or have lost nodes, and
// those that the check has excluded; the part of it that is passed on unread, in bytes.
inline constexpr std::size_t kCarriedBytes = 64 * 1024;
inline constexpr std::size_t kCarriedHosts = 64;
inline constexpr std::size_t kCarriedMoreBytes = 16 * 1024;
// Rounds that may be the last one that ran, and nodes that may host the coordinator next, in one message
// (docs/failover.md).
inline constexpr std::size_t kLastRounds = 8;
// Ranges of HCCL's ports that a node tells to be in use. What is above them counts as in use, too.
inline constexpr std::size_t kPortRanges = 128;
inline constexpr std::size_t kSuccessors = 8;
// The addresses of an announcement, in bytes: it goes with a HELLO.
inline constexpr std::size_t kAnnouncedBytes = 1024;
// Doors that a coordinator tries to reach at most, and how many open ones are enough for it.
inline constexpr std::size_t kDoorsTried = 64;
inline constexpr std::size_t kDoorsWanted = 2 * kSuccessors;
// Hosts in a list of --rdzv-endpoint.
inline constexpr std::size_t kEndpointHosts = 64;
// Failures in one list of a message.
inline constexpr std::size_t kAgentFailures = 64;
// Keep-alives without an answer that an agent remembers.
inline constexpr std::size_t kAgentUnansweredKeepAlives = 64;

// One line of a worker's output on the console, in bytes; a longer one is written in pieces.
inline constexpr std::size_t kLogLineBytes = 64 * 1024;
// The end of each worker's stderr that is kept for the failure report, in bytes.
inline constexpr std::size_t kStderrTailBytes = 64 * 1024;
// Output that waits for a slow console, in bytes, stdout and stderr each; above it lines are dropped.
inline constexpr std::size_t kConsoleWaitingBytes = 4 * 1024 * 1024;
// Output that ended workers have left in their pipes for a slow console, in bytes: it is kept, too, as long as the
// console goes on taking bytes, and the end of a round does not wait for it.
inline constexpr std::size_t kConsoleRestBytes = 128 * 1024 * 1024;
// The least that --log-max-bytes may be: less is taken for a mistake.
inline constexpr std::uint64_t kLeastLogMaxBytes = 4096;
// Output that waits for a log file, in bytes; above it the worker waits, too, unless the file does not respond.
inline constexpr std::size_t kLogFileWaitingBytes = 16 * 1024 * 1024;

// Nodes that one job's coordinator serves, those that stand by included.
inline constexpr std::size_t kNodesPerJob = 16'384;
// Connections of agents and guardians that a coordinator's process may have at once.
inline constexpr std::size_t kAgentConnections = 32'768;
// Jobs that one coordinator's process serves at once, and ended jobs whose verdicts it remembers for agents that come
// late.
inline constexpr std::size_t kJobsServed = 1024;
inline constexpr std::size_t kEndedJobs = 256;
// Newcomers that may wait at once because another node has the rank that they claim.
inline constexpr std::size_t kHeldNodes = 64;
// Failures of a round that its verdict contains: those that most likely are the cause.
inline constexpr std::size_t kFailuresKept = 64;

// Jobs whose coordinators one file may name (store_type=file), and the bytes of such a file.
inline constexpr std::size_t kEntriesPerFile = 256;
inline constexpr std::size_t kEntryFileBytes = 2 * 1024 * 1024;

// Milliseconds until an import server has imported all that it will, and until one has forked the workers that are to
// wait. It has the lowest priority, and may read thousands of files over a network.
inline constexpr std::int64_t kImportServerMs = 600'000;

// Status and metrics by HTTP: bytes of a request's head, and of its target; connections at once;
// requests that one turn of the loop answers; bytes that a client may send ahead, and of answers that it leaves unread;
// milliseconds in which a request must be complete, and for which a connection may be silent; and those in which a
// client must have taken its answers.
inline constexpr std::size_t kHttpHeadBytes = 8 * 1024;
inline constexpr std::size_t kHttpTargetBytes = 2 * 1024;
inline constexpr std::size_t kHttpConnections = 256;
inline constexpr std::size_t kHttpRequestsPerTurn = 64;
inline constexpr std::size_t kHttpAheadBytes = 128 * 1024;
inline constexpr std::size_t kHttpUnreadBytes = 16 * 1024 * 1024;
inline constexpr std::int64_t kHttpIdleMs = 10'000;
inline constexpr std::int64_t kHttpTakesMs = 60'000;
// Answers that come later (stacks): how many may be awaited, and for how many milliseconds.
inline constexpr std::size_t kHttpLater = 32;
inline constexpr std::int64_t kHttpLaterMs = 40'000;
// Bytes of an answer that --status and --stacks read.
inline constexpr std::size_t kHttpAnswerBytes = 64 * 1024 * 1024;
// What /status shows: nodes, the last failures, and the last jobs that have ended.
inline constexpr std::size_t kStatusNodes = 1024;
inline constexpr std::size_t kStatusFailures = 16;
inline constexpr std::size_t kStatusEndedJobs = 16;

// Addresses of one name that are tried, in the order of RFC 6724.
inline constexpr std::size_t kAddressesOfName = 64;

// The longest line of a coordinator's recording that is read, in bytes.
inline constexpr std::size_t kRecordingLineBytes = 16 * 1024 * 1024;
// Bytes that may wait to be written to a recording; above it the recording ends.
inline constexpr std::size_t kRecordingWaitingBytes = 16 * 1024 * 1024;

// One line of --events, in bytes, and the bytes that may wait to be written there; above it lines are lost.
inline constexpr std::size_t kEventLineBytes = 4096;
inline constexpr std::size_t kEventsWaitingBytes = 4 * 1024 * 1024;

// Commands of --on-event: how many run at once, events that wait for one, milliseconds that one may take, bytes of
// the end of its output that are reported, and milliseconds for which the end of the job waits for those that still
// run.
inline constexpr std::size_t kEventCommands = 4;
inline constexpr std::size_t kEventCommandsWaiting = 64;
inline constexpr std::int64_t kEventCommandMs = 30'000;
inline constexpr std::size_t kEventCommandOutputBytes = 4096;
inline constexpr std::int64_t kEventCommandsEndMs = 10'000;

// Progress of a rank (docs/progress.md), in what it writes: bytes of a line, lines in a tenth of a second, bytes of one
// read, and of a file that it writes bytes per look. Bytes of DLRover's file, and of --progress-pattern; the memory of
// the latter's expression. Milliseconds between two reports of a node to its coordinator.
inline constexpr std::size_t kProgressLineBytes = 512;
inline constexpr std::size_t kProgressLines = 50;
inline constexpr std::size_t kProgressReadBytes = 16 * 1024;
inline constexpr std::size_t kProgressFileBytes = 4096;
inline constexpr std::size_t kProgressPatternBytes = 1024;
inline constexpr std::int64_t kProgressPatternMemory = 1024 * 1024;
inline constexpr std::int64_t kProgressReportMs = 5000;

// The sockets of NVRx's clients (docs/progress.md): bytes of one message, connections to one socket at once, names of
// sections, and bytes of one.
inline constexpr std::size_t kNvrxMessageBytes = 64 * 1024;
inline constexpr std::size_t kNvrxConnections = 4;
inline constexpr std::size_t kNvrxSections = 64;
inline constexpr std::size_t kNvrxSectionBytes = 64;

// torchelastic's file timers (docs/hangs.md), of one node: bytes of a request, which the client keeps to PIPE_BUF;
// timers at once; milliseconds that looking at the stacks of processes may delay their end.
inline constexpr std::size_t kFileTimerLineBytes = 4096;
inline constexpr std::size_t kFileTimers = 4096;
inline constexpr std::int64_t kFileTimerStacksMs = 1500;

// A hang (docs/hangs.md), in bytes: what one node's evidence takes on its way to the coordinator, and the report that
// each node gets; of all nodes' reports together. health/hang/bounds.h has the bounds of what the evidence says.
inline constexpr std::size_t kHangEvidenceBytes = 192 * 1024;
inline constexpr std::size_t kHangReportBytes = 64 * 1024;
inline constexpr std::size_t kHangReportsBytes = 64 * 1024 * 1024;
// Nodes that were blamed for hangs, as a coordinator remembers them, and their bytes as it hands them on.
inline constexpr std::size_t kHangCharges = 64;
inline constexpr std::size_t kHangChargesBytes = 8 * 1024;

}  // namespace elastic::limits
