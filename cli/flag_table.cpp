#include "cli/flag_table.h"

#include <algorithm>
#include <array>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

using enum FlagGroup;
using enum FlagState;
constexpr Family kTorchrun = Family::kTorchrun;
constexpr Family kDlrover = Family::kDlrover;
constexpr Family kOurs = Family::kOurs;
constexpr FlagKind kSwitch = FlagKind::kSwitch;
constexpr FlagKind kInteger = FlagKind::kInteger;
constexpr FlagKind kNumber = FlagKind::kNumber;
constexpr FlagKind kChoice = FlagKind::kChoice;
constexpr FlagKind kTextList = FlagKind::kTextList;
constexpr FlagKind kOptionalChoice = FlagKind::kOptionalChoice;

constexpr std::int64_t kMaxPort = 65535;
// What a flag says of elastic-run's own messages holds whatever is asked for.
constexpr Modes kEveryMode{Mode::kReport, Mode::kStatusKey,       Mode::kStatus,
                           Mode::kReplay, Mode::kCoordinatorOnly, Mode::kStoreOnly};

// Texts are shared with every output format: no markup in them, only what a person reads.
constexpr std::array<Flag, kFlagCount> kTable{{
    // --- Job size
    {.id = FlagId::kNnodes,
     .name = "nnodes",
     .family = kTorchrun,
     .group = kJobSize,
     .by_default = "1:1",
     .metavar = "N|MIN:MAX",
     .help = "nodes of the job",
     .more = "With a number the job has exactly that many nodes; with a range it starts as soon as MIN are there and "
             "no more have come in time, and takes up to MAX. The same on all nodes."},
    {.id = FlagId::kNprocPerNode,
     .name = "nproc-per-node",
     .family = kTorchrun,
     .group = kJobSize,
     .by_default = "1",
     .metavar = "N",
     .words = "auto|cpu|gpu",
     .help = "workers on this node, or: auto, cpu, gpu",
     .more =
         "The word cpu stands for the number of CPUs that elastic-run may run on and that the limits of its cgroups (a "
         "container's) leave whole, at least 1, gpu for the number of NVIDIA GPUs that CUDA_VISIBLE_DEVICES leaves "
         "visible (found without loading a library), auto for gpu where there is one, else for cpu."},
    {.id = FlagId::kAutoConfig,
     .name = "auto-config",
     .family = kDlrover,
     .group = kJobSize,
     .kind = kSwitch,
     .by_default = "false",
     .help = "nodes and workers from NODE_NUM and the GPUs",
     .more = "As dlrover-run does it: NODE_NUM in the environment is the number of nodes, the number of GPUs, where "
             "there are any, is --nproc-per-node, and from 4 nodes on --network-check is on."},
    {.id = FlagId::kNodeUnit,
     .name = "node-unit",
     .family = kDlrover,
     .group = kJobSize,
     .kind = kInteger,
     .least = 1,
     .most = kMaxNodes,
     .by_default = "1",
     .metavar = "N",
     .help = "take only multiples of N nodes"},

    // --- How nodes meet
    {.id = FlagId::kStandalone,
     .name = "standalone",
     .family = kTorchrun,
     .group = kRendezvous,
     .kind = kSwitch,
     .by_default = "false",
     .help = "one node alone, on free ports of 127.0.0.1",
     .more = "Overwrites --rdzv-backend, --rdzv-endpoint and --rdzv-id; the id is a random one. A command line that "
             "names neither more than one node nor an endpoint nor a port is standalone too."},
    {.id = FlagId::kRdzvBackend,
     .name = "rdzv-backend",
     .family = kTorchrun,
     .group = kRendezvous,
     .beside = {Mode::kCoordinatorOnly},
     .by_default = "static",
     .metavar = "NAME",
     .words = "static|c10d",
     .help = "how nodes meet: static or c10d",
     .more = "With static, node ranks and the address of node 0 are given by --node-rank, --master-addr and "
             "--master-port. With c10d, nodes find each other at --rdzv-endpoint, and the one to which that address "
             "belongs hosts the coordinator; dlrover-master is another name for it. No client for etcd is built in, "
             "and plug-ins are written in Python, which a program without Python cannot load: both are errors."},
    {.id = FlagId::kRdzvEndpoint,
     .name = "rdzv-endpoint",
     .family = kTorchrun,
     .group = kRendezvous,
     .beside = {Mode::kCoordinatorOnly},
     .by_default = "",
     .metavar = "HOST[:PORT]",
     .help = "where nodes meet",
     .more = "Without it, static takes --master-addr and --master-port, and c10d localhost: then a line says where "
             "node 0 listens and what to type on the other nodes. The port of c10d is 29400 unless it is named. An "
             "IPv6 address stands in brackets: [::1]:29400."},
    {.id = FlagId::kRdzvId,
     .name = "rdzv-id",
     .family = kTorchrun,
     .group = kRendezvous,
     .beside = {Mode::kStatus, Mode::kCoordinatorOnly},
     .by_default = "none",
     .metavar = "ID",
     .help = "name of the job",
     .more = "Workers see it as TORCHELASTIC_RUN_ID; it begins the name of the run's log directory."},
    {.id = FlagId::kRdzvConf,
     .name = "rdzv-conf",
     .family = kTorchrun,
     .group = kRendezvous,
     .beside = {Mode::kStatusKey, Mode::kStatus, Mode::kCoordinatorOnly},
     .by_default = "",
     .metavar = "KEY=VALUE,...",
     .help = "more settings, such as join_timeout=600",
     .more = "Values of known keys are checked; unknown keys are ignored, as torchrun ignores them."},
    {.id = FlagId::kNodeRank,
     .name = "node-rank",
     .family = kTorchrun,
     .group = kRendezvous,
     .kind = kInteger,
     .least = 0,
     .most = kMaxNodes - 1,
     .by_default = "0",
     .metavar = "N",
     .help = "rank of this node",
     .more = "With static each node needs its own. With c10d a rank above 0 is a wish that holds, as those of "
             "NODE_RANK and WORKER_RANK do; 0 is the default and says nothing."},
    {.id = FlagId::kMasterAddr,
     .name = "master-addr",
     .family = kTorchrun,
     .group = kRendezvous,
     .by_default = "127.0.0.1",
     .metavar = "HOST",
     .help = "address of node 0, for static"},
    {.id = FlagId::kMasterPort,
     .name = "master-port",
     .family = kTorchrun,
     .group = kRendezvous,
     .kind = kInteger,
     .least = 0,
     .most = kMaxPort,
     .metavar = "PORT",
     .help = "port of node 0, for static; 29500 if not given",
     .more = "Given for one node it makes the job static: the port then stays the same over restarts."},
    {.id = FlagId::kLocalAddr,
     .name = "local-addr",
     .family = kTorchrun,
     .group = kRendezvous,
     .metavar = "HOST",
     .help = "address at which other nodes reach this one",
     .more = "Workers get it as MASTER_ADDR when this node has rank 0, and other nodes know this one by it. Without "
             "it, MASTER_ADDR is the address from which the node's connection to the coordinator comes, and 127.0.0.1 "
             "in a job of one node. Without effect on the workers of a static job."},
    {.id = FlagId::kCoordinatorOnly,
     .name = "coordinator-only",
     .family = kOurs,
     .group = kRendezvous,
     .kind = kSwitch,
     .mode = Mode::kCoordinatorOnly,
     .has_variable = false,
     .by_default = "false",
     .help = "serve the coordinator at --rdzv-endpoint, and start nothing",
     .more = "For any number of jobs, away from the nodes that train. It ends by SIGTERM or SIGINT, with status 0, and "
             "may be started again within the lease (3 s) without touching training."},
    {.id = FlagId::kStoreOnly,
     .name = "store-only",
     .family = kOurs,
     .group = kRendezvous,
     .kind = kSwitch,
     .mode = Mode::kStoreOnly,
     .has_variable = false,
     .by_default = "false",
     .help = "serve a worker store on --port, and start nothing",
     .more = "A store as PyTorch's TCPStore clients use it, on all addresses, for tests and for jobs that are started "
             "by other means. It ends in order by SIGTERM or SIGINT, with status 0."},
    {.id = FlagId::kPort,
     .name = "port",
     .family = kOurs,
     .group = kRendezvous,
     .kind = kInteger,
     .beside = {Mode::kStoreOnly},
     .needs = {{FlagId::kStoreOnly, "it is the port of --store-only", "use --master-port for the workers' store"}},
     .least = 0,
     .most = kMaxPort,
     .has_variable = false,
     .by_default = "29500",
     .metavar = "N",
     .help = "port of --store-only; 0 for a free one",
     .more = "The port is told on stderr."},

    // --- Workers and their command
    {.id = FlagId::kModule,
     .name = "module",
     .letter = 'm',
     .family = kTorchrun,
     .group = kWorkers,
     .kind = kSwitch,
     .by_default = "false",
     .help = "SCRIPT is a Python module, as with python -m"},
    {.id = FlagId::kNoPython,
     .name = "no-python",
     .family = kTorchrun,
     .group = kWorkers,
     .kind = kSwitch,
     .by_default = "false",
     .help = "run SCRIPT itself, without Python"},
    {.id = FlagId::kRunPath,
     .name = "run-path",
     .family = kTorchrun,
     .group = kWorkers,
     .kind = kSwitch,
     .by_default = "false",
     .help = "run SCRIPT through Python's runpy.run_path",
     .more = "The script then runs under PyTorch's record, so that an error file is written for any exception. A "
             "worker whose script has ended well keeps its process until all workers of the node are done, or one has "
             "failed. Wins over --no-python and --module."},
    {.id = FlagId::kRole,
     .name = "role",
     .family = kTorchrun,
     .group = kWorkers,
     .by_default = "default",
     .metavar = "NAME",
     .help = "name of the workers' role",
     .more = "Workers see it as ROLE_NAME."},
    {.id = FlagId::kWrap,
     .name = "wrap",
     .family = kOurs,
     .group = kWorkers,
     .repeats = true,
     .metavar = "RANKS:COMMAND",
     .help = "put COMMAND before the workers of these ranks",
     .more = "For profilers and debuggers: --wrap='0:nsys profile -o report-%r' runs the worker of rank 0 as an "
             "argument of nsys. RANKS are global ranks between commas, with ranges (0,8-15), or all. COMMAND is split "
             "as a shell does, and nothing is expanded but %r (rank), %l (local rank), %n (node rank), %a (restarts "
             "before), %j (job id) and %%. May be given several times; the first that names a rank holds. The worker "
             "is then COMMAND with all that it starts: its exit status is COMMAND's. PET_WRAP has a rule a line."},
    {.id = FlagId::kVirtualLocalRank,
     .name = "virtual-local-rank",
     .family = kTorchrun,
     .group = kWorkers,
     .kind = kSwitch,
     .by_default = "false",
     .help = "LOCAL_RANK=0 for all; each worker sees one GPU",
     .more = "CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES where that is set) is narrowed to one entry for each worker."},
    {.id = FlagId::kNumaBinding,
     .name = "numa-binding",
     .family = kTorchrun,
     .group = kWorkers,
     .kind = kChoice,
     .state = kLater,
     .has_variable = false,
     .metavar = "MODE",
     .words = "node|socket|exclusive|core-complex",
     .help = "bind workers to CPUs near their GPU: node, socket, exclusive, core-complex"},
    {.id = FlagId::kNumaAffinity,
     .name = "numa-affinity",
     .family = kDlrover,
     .group = kWorkers,
     .kind = kSwitch,
     .state = kLater,
     .by_default = "false",
     .help = "bind workers to the NUMA node of their GPU"},
    {.id = FlagId::kMembindPolicy,
     .name = "membind-policy",
     .family = kDlrover,
     .group = kWorkers,
     .state = kLater,
     .by_default = "preferred",
     .metavar = "POLICY",
     .words = "bind|preferred",
     .help = "memory for --numa-affinity",
     .more = "The words are bind and preferred; any other binds the CPUs only."},

    // --- Restart and stop
    {.id = FlagId::kMaxRestarts,
     .name = "max-restarts",
     .family = kTorchrun,
     .group = kRestart,
     .kind = kInteger,
     .least = 0,
     .most = limits::kMaxRestarts,
     .by_default = "0",
     .metavar = "N",
     .help = "restarts of all workers before the job fails"},
    {.id = FlagId::kCrashLoop,
     .name = "crash-loop",
     .family = kOurs,
     .group = kRestart,
     .kind = kChoice,
     .by_default = "stop",
     .metavar = "WHAT",
     .words = "stop|restart",
     .help = "after the same import, syntax or missing-file error twice",
     .more = "stop: where two attempts running failed first with the same exception (type, text, file and line), "
             "further ones would, too: the job ends with exit status 93, whatever restarts are left. Meant are "
             "ImportError, ModuleNotFoundError, SyntaxError, IndentationError, TabError, FileNotFoundError, and a "
             "script that Python cannot open. restart: restarts are made until --max-restarts is spent, as torchrun "
             "does. The first node's word holds for all."},
    {.id = FlagId::kShutdownTimeout,
     .name = "shutdown-timeout",
     .family = kTorchrun,
     .group = kRestart,
     .kind = kInteger,
     .least = 0,
     .most = limits::kMaxTimeoutSeconds,
     .metavar = "SECONDS",
     .help = "time from SIGTERM to SIGKILL; 30 if not given",
     .more = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT sets another default. It counts for every stop, also for one that a "
             "failed worker causes."},
    {.id = FlagId::kSignalsToHandle,
     .name = "signals-to-handle",
     .family = kTorchrun,
     .group = kRestart,
     .by_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .metavar = "LIST",
     .help = "signals that end the job in order",
     .more = "SIGKILL and SIGSTOP cannot be handled, SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH and SIGPIPE "
             "are needed by elastic-run itself: errors. A name that no signal has is passed over with a warning. A "
             "signal that was ignored when elastic-run started (nohup) stays ignored. A second SIGINT or SIGTERM, at "
             "least a second after the first, kills all workers at once."},
    {.id = FlagId::kForwardSignals,
     .name = "forward-signals",
     .family = kOurs,
     .group = kRestart,
     .metavar = "LIST",
     .help = "signals handed to the workers, and no more",
     .more = "Such as USR1,USR2: every worker's process group gets the signal, and the job goes on. A signal may not "
             "stand in --signals-to-handle too."},
    {.id = FlagId::kStuckWorker,
     .name = "stuck-worker",
     .family = kOurs,
     .group = kRestart,
     .kind = kChoice,
     .by_default = "fail",
     .metavar = "WHAT",
     .words = "fail|ignore",
     .help = "when a killed worker does not end",
     .more = "A process in uninterruptible sleep (state D) or in a frozen cgroup does not end even by SIGKILL. It is "
             "named one second after SIGKILL and given up after stuck_timeout seconds (a key of --rdzv-conf, 5 if not "
             "given): then the job fails, or with ignore goes on without it."},
    {.id = FlagId::kLeaveBackground,
     .name = "leave-background",
     .family = kOurs,
     .group = kRestart,
     .kind = kSwitch,
     .by_default = "false",
     .help = "after success let workers' background processes live",
     .more = "What workers have left behind (`nohup upload &`) then goes on, as with torchrun. Without the flag it is "
             "ended, and named in a warning. A job that fails, restarts or is stopped ends everything in any case. "
             "Workers then have elastic-run's own stderr, as with --stderr-tail=never, unless --stderr-tail is given: "
             "the reader of a pipe would go away with elastic-run."},
    {.id = FlagId::kPropagateExitCode,
     .name = "propagate-exit-code",
     .family = kOurs,
     .group = kRestart,
     .kind = kSwitch,
     .by_default = "false",
     .help = "end with the first failure's exit code, not 1",
     .more = "128 plus the number of the signal where a signal killed it, or stopped the job; 69 on a node that the "
             "check has left out."},

    // --- Output and logs
    {.id = FlagId::kLogDir,
     .name = "log-dir",
     .family = kTorchrun,
     .group = kOutput,
     .metavar = "DIR",
     .help = "keep logs and error files below DIR",
     .more = "Each run makes a directory of its own in it. Without the flag it is made in the directory for temporary "
             "files; /dev/null means no files at all."},
    {.id = FlagId::kRedirects,
     .name = "redirects",
     .letter = 'r',
     .family = kTorchrun,
     .group = kOutput,
     .by_default = "0",
     .metavar = "MAP",
     .help = "output to log files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank, 0:3,1:2",
     .more = "The files are stdout.log and stderr.log in the directory of each attempt and local rank. Ranks that a "
             "list does not name are left as they are."},
    {.id = FlagId::kTee,
     .name = "tee",
     .letter = 't',
     .family = kTorchrun,
     .group = kOutput,
     .by_default = "0",
     .metavar = "MAP",
     .help = "the same, and to the console too",
     .more = "Whole lines only, each with a prefix that tells its rank."},
    {.id = FlagId::kLogLinePrefixTemplate,
     .name = "log-line-prefix-template",
     .family = kTorchrun,
     .group = kOutput,
     .by_default = "",
     .metavar = "TEXT",
     .help = "what begins each line of --tee on the console",
     .more = "The macros are ${role_name}, ${local_rank}, ${rank} and ${hostname}."},
    {.id = FlagId::kLocalRanksFilter,
     .name = "local-ranks-filter",
     .family = kTorchrun,
     .group = kOutput,
     .by_default = "",
     .metavar = "LIST",
     .help = "local ranks whose output reaches the console",
     .more = "What others tee goes to their files only, what they would write to the console to /dev/null."},
    {.id = FlagId::kDuplicateStdoutFilters,
     .name = "duplicate-stdout-filters",
     .family = kTorchrun,
     .group = kOutput,
     .kind = kTextList,
     .metavar = "LIST",
     .help = "copy lines of stdout with such a text to a file",
     .more = "To filtered_stdout.log of the attempt, from ranks that are tee'd to the console. The parts of the list "
             "stand between commas; two commas are a comma within a part."},
    {.id = FlagId::kDuplicateStderrFilters,
     .name = "duplicate-stderr-filters",
     .family = kTorchrun,
     .group = kOutput,
     .kind = kTextList,
     .metavar = "LIST",
     .help = "the same for stderr"},
    {.id = FlagId::kLogMaxBytes,
     .name = "log-max-bytes",
     .family = kOurs,
     .group = kOutput,
     .by_default = "0",
     .metavar = "SIZE",
     .help = "rotate log files of workers: 100M, 1G; 0 lets them grow",
     .more =
         "A file that would grow over SIZE bytes is renamed to stdout.log.1, which replaces the one before it, so that "
         "each costs at most twice SIZE; so for stderr.log and the filtered files. Files end between two lines; only a "
         "line of more than 64 KiB or SIZE may be cut. K, M, G and T (or KiB and so on) are powers of 1024, KB, MB, GB "
         "and TB of 1000. What is redirected then passes through elastic-run, as what is tee'd does."},
    {.id = FlagId::kStderrTail,
     .name = "stderr-tail",
     .family = kOurs,
     .group = kOutput,
     .kind = kChoice,
     .by_default = "auto",
     .metavar = "WHEN",
     .words = "auto|never",
     .help = "keep the end of stderr for the failure report",
     .more = "With auto each worker's stderr passes through elastic-run, by a pseudo-terminal where it is a terminal, "
             "and the last 64 KiB are kept. With never the worker has elastic-run's own."},
    {.id = FlagId::kLogLevel,
     .name = "log-level",
     .family = kOurs,
     .group = kOutput,
     .beside = kEveryMode,
     .metavar = "LEVEL",
     .words = "debug|info|warning|error|critical",
     .help = "what elastic-run itself says on stderr, from this level on; warning if not given",
     .more = "In any case, or as a number of Python's logging. LOGLEVEL in the environment, as torchrun reads it, sets "
             "another default."},
    {.id = FlagId::kLogFormat,
     .name = "log-format",
     .family = kOurs,
     .group = kOutput,
     .kind = kChoice,
     .beside = kEveryMode,
     .by_default = "text",
     .metavar = "FORMAT",
     .words = "text|json",
     .help = "text, or one JSON object a line",
     .more = "Of what elastic-run itself says; the failure report stays text."},
    {.id = FlagId::kEvents,
     .name = "events",
     .family = kOurs,
     .group = kOutput,
     .metavar = "FILE",
     .help = "append every event of this launcher to FILE, as lines of JSON",
     .more = "Whatever the log level; docs/events.md lists them with their fields. Each line is one write, so that "
             "nodes may share a file where the file system appends whole writes. A file that fails or does not answer "
             "costs events only."},
    {.id = FlagId::kOnEvent,
     .name = "on-event",
     .family = kOurs,
     .group = kOutput,
     .metavar = "CMD",
     .help = "run CMD when a node is lost, unfit or kept out, and when the job ends",
     .more =
         "By /bin/sh -c, once in the job for each such event, on the node that has the coordinator: give it to all "
         "nodes. The event's line of JSON, as --events has it, is on stdin; the environment is that of the workers. 4 "
         "run at once, 64 wait, and one that takes more than 30 s is killed. What it does never changes the job."},
    {.id = FlagId::kOnEventKinds,
     .name = "on-event-kinds",
     .family = kOurs,
     .group = kOutput,
     .needs = {{FlagId::kOnEvent, "it says for which events --on-event is run", "give --on-event=CMD, too"}},
     .by_default = "node_lost,node_unfit,node_kept_out,job_ends",
     .metavar = "KINDS",
     .help = "with --on-event: the events for which it is run",
     .more = "Any of the four, with commas between; docs/events.md says when each comes."},
    {.id = FlagId::kReport,
     .name = "report",
     .family = kOurs,
     .group = kOutput,
     .mode = Mode::kReport,
     .has_variable = false,
     .metavar = "DIR",
     .help = "print the failure report of an earlier run, and start nothing",
     .more = "From the failure.json in DIR, the log directory of a run, or from those right below it. Directories of "
             "other nodes of the job may follow; their reports become one, first cause first."},
    {.id = FlagId::kHtml,
     .name = "html",
     .family = kOurs,
     .group = kOutput,
     .beside = {Mode::kReport},
     .needs = {{FlagId::kReport, "it is for the page that --report makes", "name a run's directory with --report"}},
     .has_variable = false,
     .metavar = "FILE",
     .help = "write what --report has to say as a page",
     .more = "It needs nothing else, neither a script nor a network; - is stdout."},
    {.id = FlagId::kRecord,
     .name = "record",
     .family = kOurs,
     .group = kOutput,
     .has_variable = false,
     .metavar = "FILE",
     .help = "record what the job's coordinator is told, for --replay",
     .more =
         "FILE is made, or emptied, and written as it happens; a file that does not answer costs the recording only."},
    {.id = FlagId::kReplay,
     .name = "replay",
     .family = kOurs,
     .group = kOutput,
     .mode = Mode::kReplay,
     .has_variable = false,
     .metavar = "FILE",
     .help = "print what was decided in a recorded job, and why; start nothing",
     .more = "Each event of FILE, a recording by --record, with what the coordinator decides of it, whom it tells "
             "what, and the job's state after it; - is stdin."},
    {.id = FlagId::kHttpPort,
     .name = "http-port",
     .family = kOurs,
     .group = kOutput,
     .kind = kInteger,
     .least = 0,
     .most = kMaxPort,
     .metavar = "PORT",
     .help = "serve status and metrics of this node by HTTP",
     .more = "/healthz, /readyz, /status (JSON) and /metrics (Prometheus), on all addresses; 0 takes a free port and "
             "says which. Names of hosts and texts are for those who send the job's status key or, where it has no "
             "token, ask from the same host; others see counts and states. The coordinator's port serves the same, "
             "with all that the coordinator knows of its jobs."},
    {.id = FlagId::kStatusOpen,
     .name = "status-open",
     .family = kOurs,
     .group = kOutput,
     .kind = kSwitch,
     .beside = {Mode::kCoordinatorOnly},
     .by_default = "false",
     .help = "show names and texts to all who ask for the status",
     .more = "On the coordinator's port and --http-port: names of hosts, addresses, process ids, and what workers "
             "failed of. Without it others than this host, or those with the job's token, see counts and states."},
    {.id = FlagId::kStatus,
     .name = "status",
     .family = kOurs,
     .group = kOutput,
     .mode = Mode::kStatus,
     .has_variable = false,
     .metavar = "HOST[:PORT]",
     .help = "print who is in a job and how it goes; start nothing",
     .more = "HOST:PORT is the job's --rdzv-endpoint, or the --http-port of a node; the port is 29400 unless it is "
             "named. With --rdzv-id of that job alone; with --log-format=json the document of /status. With the job's "
             "token, from ELASTIC_RUN_TOKEN or by --rdzv-conf=token_file=FILE, names and texts are shown from "
             "elsewhere, too; what is sent is a key made of it."},
    {.id = FlagId::kWatch,
     .name = "watch",
     .family = kOurs,
     .group = kOutput,
     .kind = kSwitch,
     .beside = {Mode::kStatus},
     .needs = {{FlagId::kStatus, "it is for the page that --status prints", "name an endpoint with --status"}},
     .has_variable = false,
     .by_default = "false",
     .help = "with --status: again every 2 s, until Ctrl-C",
     .more = "On a terminal the page is drawn anew, elsewhere there is a line each time."},
    {.id = FlagId::kStatusKey,
     .name = "status-key",
     .family = kOurs,
     .group = kOutput,
     .kind = kSwitch,
     .mode = Mode::kStatusKey,
     .has_variable = false,
     .by_default = "false",
     .help = "print the key by which a job's status shows names and texts",
     .more = "For Prometheus and curl, which send it as Authorization: Bearer KEY. It is made of the job's token, from "
             "ELASTIC_RUN_TOKEN or by --rdzv-conf=token_file=FILE, and opens nothing but the status."},

    // --- Node check
    {.id = FlagId::kNetworkCheck,
     .name = "network-check",
     .family = kDlrover,
     .group = kNodeCheck,
     .kind = kSwitch,
     .by_default = "false",
     .help = "test nodes and their links before workers start",
     .more = "Each node looks at itself, then meets others in up to three stages of pairs over TCP. A faulty node ends "
             "with exit status 1 and the reason, the others train. The first node's word holds for all. MOCK_ERR_RANK "
             "(a local rank) lets a node's tests fail, to try what then happens; NETWORK_CHECK_TIMEOUT is how many "
             "seconds one test may take (30)."},
    {.id = FlagId::kCheckPolicy,
     .name = "check-policy",
     .family = kOurs,
     .group = kNodeCheck,
     .kind = kChoice,
     .by_default = "suspect",
     .metavar = "WHEN",
     .words = "suspect|first|always",
     .help = "when a node is checked again",
     .more =
         "With first each node is checked before its first round, and again after it was lost; with suspect also the "
         "node whose worker has failed first; with always all nodes before each round, as dlrover-run does it."},
    {.id = FlagId::kExcludeStraggler,
     .name = "exclude-straggler",
     .family = kDlrover,
     .group = kNodeCheck,
     .kind = kSwitch,
     .by_default = "false",
     .help = "leave out slow nodes, too",
     .more = "A node that the check finds more than twice as slow as the median ends with exit status 1; without this "
             "option it trains, and a line says that it is slow."},
    {.id = FlagId::kCommPerfTest,
     .name = "comm-perf-test",
     .family = kDlrover,
     .group = kNodeCheck,
     .kind = kSwitch,
     .by_default = "false",
     .help = "with the check, measure an all-gather of all nodes",
     .more = "Once the pairs are done, all nodes that are fit form a ring and pass on blocks of 2 MiB over TCP. A line "
             "says the bandwidth; nobody is left out for it. Without --network-check it is ignored."},
    {.id = FlagId::kPrecheck,
     .name = "precheck",
     .family = kDlrover,
     .group = kNodeCheck,
     .kind = kChoice,
     .by_default = "0",
     .metavar = "N",
     .words = "0|1|2",
     .help = "1: --network-check, 2: --comm-perf-test as well"},

    {.id = FlagId::kNcclLib,
     .name = "nccl-lib",
     .family = kOurs,
     .group = kNodeCheck,
     .metavar = "FILE",
     .help = "with --network-check: the libnccl.so.2 to test with",
     .more = "Where GPUs are tested. By default the one that the job's Python would load, else the loader's; which it "
             "was stands in health.json."},
    {.id = FlagId::kProbePath,
     .name = "probe-path",
     .family = kOurs,
     .group = kNodeCheck,
     .metavar = "FILE",
     .help = "with --network-check: the program that tests GPUs",
     .more = "Where there are any, in the place of the one that lies in elastic-run; docs/gpu-probe.md says what it is "
             "asked."},
    {.id = FlagId::kCheckOnly,
     .name = "check-only",
     .family = kOurs,
     .group = kNodeCheck,
     .kind = kSwitch,
     .mode = Mode::kCheckOnly,
     .by_default = "false",
     .help = "test nodes and links, tell the result, start no worker",
     .more = "The acceptance test of a cluster: exit status 0 where every node and link is fit, 1 where one is not, on "
             "all nodes. No script is needed, and one that is named is not started."},
    {.id = FlagId::kNodeGroup,
     .name = "node-group",
     .family = kOurs,
     .group = kNodeCheck,
     .by_default = "",
     .metavar = "NAME",
     .help = "the rack that this node is in, for the check",
     .more = "Nodes of one name meet each other first, then nodes of other racks, and ways between racks are held to "
             "each other alone. By default what the environment has as scheduling/rack-id, DLRover's variable."},

    {.id = FlagId::kHealthHook,
     .name = "health-hook",
     .family = kOurs,
     .group = kNodeCheck,
     .metavar = "CMD",
     .help = "with --network-check: a check of yours for this host",
     .more = "By /bin/sh -c, once in each check, with the workers' environment. What it finds it writes to stdout, as "
             "a JSON line {\"severity\": \"note\", \"warning\" or \"fatal\", \"what\": \"...\"}; an exit status but 0 "
             "without such a line is fatal, and so is one that takes more than 30 s."},
    {.id = FlagId::kCheckProbe,
     .name = "check-probe",
     .family = kOurs,
     .group = kNodeCheck,
     .metavar = "CMD",
     .help = "with --network-check: test pairs by your program",
     .more = "By /bin/sh -c, once for each worker of the two, with the workers' variables for these. Each that is fine "
             "writes /tmp/dlrover/network_check/LOCAL_RANK.txt, {\"time\": SECONDS}, as DLRover's probes do. "
             "NETWORK_CHECK_TIMEOUT is how many seconds it may take (180). To be given to all nodes."},
    {.id = FlagId::kHealthReport,
     .name = "health-report",
     .family = kOurs,
     .group = kNodeCheck,
     .metavar = "FILE",
     .help = "write what the check has found as an HTML page",
     .more = "By the node that hosts the coordinator; each check of the job writes it anew."},

    // --- Taken for compatibility
    {.id = FlagId::kMonitorInterval,
     .name = "monitor-interval",
     .family = kTorchrun,
     .group = kCompatibility,
     .kind = kNumber,
     .state = kAccepted,
     .above = 0,
     .by_default = "0.1",
     .metavar = "SECONDS",
     .help = "not needed: exits are seen at once",
     .more = "With torchrun it is the time between two looks at the workers."},
    {.id = FlagId::kStartMethod,
     .name = "start-method",
     .family = kTorchrun,
     .group = kCompatibility,
     .kind = kChoice,
     .state = kAccepted,
     .by_default = "spawn",
     .metavar = "METHOD",
     .words = "spawn|fork|forkserver",
     .help = "not needed: every worker is a fresh process",
     .more = "That holds for --run-path, too."},
    {.id = FlagId::kEventLogHandler,
     .name = "event-log-handler",
     .family = kTorchrun,
     .group = kCompatibility,
     .by_default = "null",
     .metavar = "NAME",
     .words = "null|console|dynamic_rendezvous",
     .help = "console: print torchelastic's events to stderr; null, dynamic_rendezvous: nothing",
     .more = "As with torchrun LOGLEVEL above INFO silences them; docs/events.md says what differs. Other handlers are "
             "plug-ins in Python, which a program without Python cannot load: an error."},
    {.id = FlagId::kLogsSpecs,
     .name = "logs-specs",
     .family = kTorchrun,
     .group = kCompatibility,
     .state = kRefused,
     .has_variable = false,
     .metavar = "NAME",
     .help = "an error: plug-ins in Python cannot be loaded",
     .why = "it names a plug-in in Python, which a program without Python cannot load"},
    {.id = FlagId::kAccelerator,
     .name = "accelerator",
     .family = kDlrover,
     .group = kCompatibility,
     .kind = kChoice,
     .by_default = "nvidia.com/gpu",
     .metavar = "KIND",
     .words = "nvidia.com/gpu|cpu|ascend-npu|mthreads.com/gpu|metax-tech.com/gpu",
     .help = "with --network-check: other than nvidia.com/gpu: test no GPU",
     .more =
         "NVIDIA's GPUs are tested where there are any. With cpu, which dlrover-run does not have, none is; where "
         "ascend-npu, mthreads.com/gpu or metax-tech.com/gpu is named one line says that such devices are not tested."},
    {.id = FlagId::kTrainingPort,
     .name = "training-port",
     .family = kDlrover,
     .group = kCompatibility,
     .kind = kInteger,
     .state = kLater,
     .least = 0,
     .most = kMaxPort,
     .by_default = "60000",
     .metavar = "PORT",
     .help = "first port of HCCL, for ascend-npu"},
    {.id = FlagId::kAutoTunning,
     .name = "auto-tunning",
     .family = kDlrover,
     .group = kCompatibility,
     .kind = kSwitch,
     .state = kLater,
     .by_default = "false",
     .help = "tune batch size and learning rate while training"},
    {.id = FlagId::kSaveAtBreakpoint,
     .name = "save-at-breakpoint",
     .family = kDlrover,
     .group = kCompatibility,
     .kind = kSwitch,
     .state = kLater,
     .by_default = "false",
     .help = "save the checkpoint in memory on a failure"},
    {.id = FlagId::kUcpDeviceType,
     .name = "ucp-device-type",
     .family = kDlrover,
     .group = kCompatibility,
     .state = kLater,
     .by_default = "cpu",
     .metavar = "TYPE",
     .help = "device that converts universal checkpoints"},

    // --- About
    {.id = FlagId::kDryRun,
     .name = "dry-run",
     .family = kOurs,
     .group = kAbout,
     .kind = kOptionalChoice,
     .has_variable = false,
     .words = "text|json",
     .help = "print what would be started, and start nothing",
     .more = "The launch plan: every value with the place that it came from, and the command and the environment of "
             "each worker. --dry-run=json prints it for programs."},
    {.id = FlagId::kPrintCompletion,
     .name = "print-completion",
     .family = kTorchrun,
     .group = kAbout,
     .kind = kChoice,
     .mode = Mode::kPrintCompletion,
     .has_variable = false,
     .metavar = "SHELL",
     .words = "bash|zsh|fish",
     .help = "print the completion for bash, zsh or fish"},
    {.id = FlagId::kVersion,
     .name = "version",
     .family = kOurs,
     .group = kAbout,
     .kind = kSwitch,
     .mode = Mode::kVersion,
     .has_variable = false,
     .by_default = "false",
     .help = "print the version"},
    {.id = FlagId::kHelp,
     .name = "help",
     .letter = 'h',
     .family = kTorchrun,
     .group = kAbout,
     .kind = kSwitch,
     .mode = Mode::kHelp,
     .has_variable = false,
     .by_default = "false",
     .help = "print this text"},
}};

consteval bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
    if (i > 0 && kTable[i].group < kTable[i - 1].group) return false;
  }
  return true;
}
static_assert(in_order(), "the table must follow FlagId, and groups must stand together");
static_assert(std::ranges::none_of(kTable, [](const Flag& flag) { return flag.family == Family{}; }),
              "each row says whose flag it is");

}  // namespace

std::span<const Flag> flag_table() { return kTable; }

const Flag& flag_of(FlagId id) { return kTable[static_cast<std::size_t>(id)]; }

bool stands_alone(Mode mode) { return mode >= Mode::kReport && mode <= Mode::kStoreOnly; }

std::string_view group_title(FlagGroup group) {
  switch (group) {
    case kJobSize: return "Job size";
    case kRendezvous: return "How nodes meet";
    case kWorkers: return "Workers and their command";
    case kRestart: return "Restart and stop";
    case kOutput: return "Output and logs";
    case kNodeCheck: return "Node check (dlrover-run)";
    case kCompatibility: return "Taken for compatibility";
    case kAbout: return "About elastic-run";
  }
  ELASTIC_CHECK(false);
}

std::string long_spelling(const Flag& flag) { return "--" + std::string(flag.name); }

std::string underscore_spelling(const Flag& flag) { return "--" + dest_of(flag); }

std::string dest_of(const Flag& flag) {
  std::string dest(flag.name);
  std::replace(dest.begin(), dest.end(), '-', '_');
  return dest;
}

std::string variable_of(const Flag& flag) {
  if (!flag.has_variable) return {};
  std::string name(kVariablePrefix);
  for (const char c : flag.name) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return name;
}

std::vector<std::string> words_of(const Flag& flag) {
  return flag.words.empty() ? std::vector<std::string>() : split(flag.words, '|');
}

bool takes_value(const Flag& flag) { return flag.kind != FlagKind::kSwitch && flag.kind != FlagKind::kOptionalChoice; }

}  // namespace elastic::cli
