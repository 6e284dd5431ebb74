#include "cli/flag_table.h"

#include <algorithm>
#include <array>

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
constexpr Modes kEveryMode{Mode::kReport, Mode::kStatusKey, Mode::kStatus,          Mode::kDrain,    Mode::kStop,
                           Mode::kStacks, Mode::kReplay,    Mode::kCoordinatorOnly, Mode::kStoreOnly};

// Texts are shared with every output format: no markup in them, only what a person reads.
constexpr std::array<Flag, kFlagCount> kRows{{
    // --- Job size
    {.id = FlagId::kNnodes,
     .name = "nnodes",
     .family = kTorchrun,
     .by_default = "1:1",
     .metavar = "N|MIN:MAX",
     .help = "number of nodes, or its range",
     .more = "With a number, the job has exactly that many nodes. With a range, it starts once MIN nodes are there and "
             "no others have joined in time, with at most MAX nodes. Give the same value on all nodes."},
    {.id = FlagId::kNprocPerNode,
     .name = "nproc-per-node",
     .family = kTorchrun,
     .by_default = "1",
     .metavar = "N",
     .words = "auto|cpu|gpu|xpu",
     .help = "workers on this node: N, auto, cpu, gpu or xpu",
     .more =
         "cpu is the number of CPUs that elastic-run may use: those of its CPU mask, but no more whole "
         "CPUs than the limits of its cgroups (a container's) allow, and at least 1. gpu is the number of NVIDIA "
         "GPUs that CUDA_VISIBLE_DEVICES leaves visible, or on a host without any that of AMD's GPUs that ROCm "
         "shows with ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES. xpu is the number of Intel's GPUs with "
         "ZE_AFFINITY_MASK. They are counted without loading a library; docs/environment.md has the rules. auto is "
         "gpu where there are such GPUs that are not in processors, the number of Intel's discrete ones where there "
         "are these, and cpu on any other node."},
    {.id = FlagId::kAutoConfig,
     .name = "auto-config",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "nodes and workers from NODE_NUM and the GPUs",
     .more = "It works as in dlrover-run: NODE_NUM in the environment is the number of nodes, the number of GPUs "
             "(where there are any) is --nproc-per-node, and from 4 nodes on --network-check is on."},
    {.id = FlagId::kNodeUnit,
     .name = "node-unit",
     .family = kDlrover,
     .kind = kInteger,
     .least = 1,
     .most = kMaxNodes,
     .by_default = "1",
     .metavar = "N",
     .help = "use a multiple of N nodes"},

    // --- How nodes meet
    {.id = FlagId::kStandalone,
     .name = "standalone",
     .family = kTorchrun,
     .kind = kSwitch,
     .help = "one node, on free ports of 127.0.0.1",
     .more = "It overrides --rdzv-backend, --rdzv-endpoint and --rdzv-id; the id is random. A command line that names "
             "neither several nodes nor an endpoint nor a port is standalone, too."},
    {.id = FlagId::kRdzvBackend,
     .name = "rdzv-backend",
     .family = kTorchrun,
     .beside = {Mode::kCoordinatorOnly},
     .by_default = "static",
     .metavar = "NAME",
     .words = "static|c10d",
     .help = "rendezvous backend: static or c10d",
     .more = "With static, --node-rank, --master-addr and --master-port give the rank of each node and the address of "
             "node 0. With c10d, nodes find each other at --rdzv-endpoint, and the node that owns that address hosts "
             "the coordinator; dlrover-master is another name for c10d. etcd and Python plug-ins are errors: "
             "elastic-run has no client for etcd, and without Python it cannot load a plug-in."},
    {.id = FlagId::kRdzvEndpoint,
     .name = "rdzv-endpoint",
     .family = kTorchrun,
     .beside = {Mode::kCoordinatorOnly},
     .by_default = "",
     .metavar = "HOST[,HOST...][:PORT]",
     .help = "rendezvous endpoint",
     .more =
         "The first host begins the job. Further hosts are asked, too, by nodes that look for it later: any node of "
         "the job leads to its coordinator. Without it, static uses --master-addr and --master-port, as does c10d if "
         "--master-addr is given; else c10d uses localhost and prints where node 0 listens and what to type on the "
         "other "
         "nodes. The port of c10d is 29400 unless it is given. Put an IPv6 address in brackets: [::1]:29400."},
    {.id = FlagId::kRdzvId,
     .name = "rdzv-id",
     .family = kTorchrun,
     .beside = {Mode::kStatus, Mode::kDrain, Mode::kStop, Mode::kStacks, Mode::kCoordinatorOnly},
     .by_default = "none",
     .metavar = "ID",
     .help = "id of the job",
     .more = "Workers see it as TORCHELASTIC_RUN_ID. The name of the run's log directory begins with it."},
    {.id = FlagId::kRdzvConf,
     .name = "rdzv-conf",
     .family = kTorchrun,
     .beside = {Mode::kStatusKey, Mode::kStatus, Mode::kDrain, Mode::kStop, Mode::kStacks, Mode::kCoordinatorOnly},
     .by_default = "",
     .metavar = "KEY=VALUE,...",
     .help = "further settings, such as join_timeout=600",
     .more = "The values of known keys are checked. Unknown keys are ignored, as in torchrun."},
    {.id = FlagId::kNodeRank,
     .name = "node-rank",
     .family = kTorchrun,
     .kind = kInteger,
     .least = 0,
     .most = kMaxNodes - 1,
     .by_default = "0",
     .metavar = "N",
     .help = "rank of this node",
     .more = "With static, each node needs a rank of its own. With c10d, ranks above 0 are honoured, as are those of "
             "NODE_RANK and WORKER_RANK; 0 means: assign one."},
    {.id = FlagId::kMasterAddr,
     .name = "master-addr",
     .family = kTorchrun,
     .by_default = "127.0.0.1",
     .metavar = "HOST",
     .help = "address of node 0, with static",
     .more = "With c10d and without --rdzv-endpoint, it is the endpoint, together with --master-port."},
    {.id = FlagId::kMasterPort,
     .name = "master-port",
     .family = kTorchrun,
     .kind = kInteger,
     .least = 0,
     .most = kMaxPort,
     .metavar = "PORT",
     .help = "port of node 0, with static; 29500 if not given",
     .more =
         "On one node it selects static: the port then stays the same across restarts. 0 on one node is a free port, "
         "as without this option; several nodes must know the port in advance."},
    {.id = FlagId::kLocalAddr,
     .name = "local-addr",
     .family = kTorchrun,
     .metavar = "HOST",
     .help = "address by which other nodes reach this one",
     .more = "Workers get it as MASTER_ADDR when this node has rank 0. Without it, MASTER_ADDR is the local address of "
             "the node's connection to the coordinator, or 127.0.0.1 in a job of one node. It has no effect on the "
             "workers of a static job."},
    {.id = FlagId::kCoordinatorOnly,
     .name = "coordinator-only",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kCoordinatorOnly,
     .has_variable = false,
     .help = "run only the coordinator, at --rdzv-endpoint",
     .more = "It serves any number of jobs, away from the nodes that train. SIGTERM or SIGINT ends it with status 0. "
             "If it is started again within the lease (3 s), training is not interrupted."},
    {.id = FlagId::kStoreOnly,
     .name = "store-only",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kStoreOnly,
     .has_variable = false,
     .help = "run only a worker store, on --port",
     .more = "The store speaks the protocol of PyTorch's TCPStore, on all addresses. It is for tests, and for jobs "
             "that are started by other means. SIGTERM or SIGINT ends it with status 0."},
    {.id = FlagId::kPort,
     .name = "port",
     .family = kOurs,
     .kind = kInteger,
     .beside = {Mode::kStoreOnly},
     .needs = {{FlagId::kStoreOnly, "it is the port of --store-only", "use --master-port for the workers' store"}},
     .least = 0,
     .most = kMaxPort,
     .has_variable = false,
     .by_default = "29500",
     .metavar = "N",
     .help = "port of --store-only; 0 picks a free one",
     .more = "The port is printed to stderr."},

    // --- Workers and their command
    {.id = FlagId::kModule,
     .name = "module",
     .letter = 'm',
     .family = kTorchrun,
     .kind = kSwitch,
     .help = "run SCRIPT as a Python module, like python -m"},
    {.id = FlagId::kNoPython,
     .name = "no-python",
     .family = kTorchrun,
     .kind = kSwitch,
     .help = "run SCRIPT itself, without Python"},
    {.id = FlagId::kRunPath,
     .name = "run-path",
     .family = kTorchrun,
     .kind = kSwitch,
     .help = "run SCRIPT with Python's runpy.run_path",
     .more = "The script runs under PyTorch's @record, so any exception leaves an error file. A worker whose script "
             "has succeeded stays until all workers of the node are done or one has failed. It wins over --no-python "
             "and --module."},
    {.id = FlagId::kRole,
     .name = "role",
     .family = kTorchrun,
     .by_default = "default",
     .metavar = "NAME",
     .help = "role of the workers",
     .more = "Workers see it as ROLE_NAME."},
    {.id = FlagId::kWrap,
     .name = "wrap",
     .family = kOurs,
     .repeats = true,
     .metavar = "RANKS:COMMAND",
     .help = "run the workers of these ranks under COMMAND",
     .more = "For profilers and debuggers: with --wrap='0:nsys profile -o report-%r', nsys starts the worker of rank "
             "0. RANKS are global ranks and ranges separated by commas (0,8-15), or all. COMMAND is split into words "
             "as in a shell; the only expansions are %r (rank), %l (local rank), %n (node rank), %a "
             "(restarts so far), %j (job id) and %%. If the option is given several times, the first one that names a "
             "rank applies to it. The worker is then COMMAND and all that it starts, and its exit status is that of "
             "COMMAND. PET_WRAP holds one rule per line."},
    {.id = FlagId::kWarmWorkers,
     .name = "warm-workers",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "off",
     .metavar = "WHEN",
     .words = "off|auto|on",
     .help = "after a restart, start workers that have imported their modules already",
     .more =
         "One process per node imports what the script imports, with the workers' own Python, and forks workers that "
         "wait for their ranks. A restart then takes a second less for each second of imports. Workers are what "
         "`python SCRIPT` is; docs/warm-workers.md lists what may differ. Where they could not be, fresh "
         "interpreters are started: silently with auto, with a warning with on."},
    {.id = FlagId::kWarmImport,
     .name = "warm-import",
     .family = kOurs,
     .by_default = "",
     .metavar = "MODULES",
     .help = "modules, with commas between, that warm workers have imported besides",
     .more = "They may be the user's own, which are imported once for all restarts: changes to their files are not "
             "seen."},
    {.id = FlagId::kWarmAfter,
     .name = "warm-after",
     .family = kOurs,
     .kind = kNumber,
     .by_default = "30",
     .metavar = "SECONDS",
     .help = "how long the first round has run before modules are imported for the next",
     .more = "A round of warm workers that fails sooner makes the node start fresh interpreters from then on."},
    {.id = FlagId::kProgressPattern,
     .name = "progress-pattern",
     .family = kOurs,
     .metavar = "RE",
     .help = "lines that match RE say which step a worker has reached",
     .more = "RE is an expression in RE2's syntax with one group, which is the step: 'batch (\\d+) of'. Without it "
             "elastic-run knows the lines of common frameworks, bars of tqdm, and any line that recurs with a rising "
             "number. It reads what passes through it (--tee, --redirects, stderr) and regular files that workers "
             "write; docs/progress.md says more. Steps are shown by --status and in the metrics."},
    {.id = FlagId::kProgressFrom,
     .name = "progress-from",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "none",
     .metavar = "WHAT",
     .words = "none|dlrover|nvrx",
     .help = "let scripts report steps as they do to another launcher",
     .more =
         "With dlrover workers get RUNTIME_METRICS_PATH, the name of a file of their own in a directory of the job, "
         "to which DLRover's trainers write their steps. With nvrx they get FT_RANK_MONITOR_IPC_SOCKET and "
         "FT_LAUNCHER_IPC_SOCKET, sockets in that directory at which NVRx's client (nvidia-resiliency-ext) finds its "
         "monitor and its launcher. A variable of such a name that is set already is kept, and nothing is read. All "
         "workers have ELASTIC_RUN_PROGRESS in any case."},
    {.id = FlagId::kProgressSections,
     .name = "progress-sections",
     .family = kOurs,
     .by_default = "setup,step,checkpointing",
     .metavar = "NAMES",
     .help = "with --progress-from=nvrx: the sections that scripts open, with commas between",
     .more =
         "They are the names that ft_launcher takes from --ft-rank-section-timeouts, and may have limits as there: "
         "setup:600,step:30s,checkpointing:5m. While the rank that has been silent the longest is in a section "
         "with a limit, that takes the place of --hang-timeout; the first node's limits hold for all. NVRx's client "
         "learns its own limits for all sections at once, so that each has to occur."},
    {.id = FlagId::kVirtualLocalRank,
     .name = "virtual-local-rank",
     .family = kTorchrun,
     .kind = kSwitch,
     .help = "show each worker one GPU, as LOCAL_RANK=0",
     .more = "Each worker gets one entry of CUDA_VISIBLE_DEVICES (or of HIP_VISIBLE_DEVICES, where that is set). On a "
             "host without NVIDIA's GPUs it also gets one of HIP_VISIBLE_DEVICES for those of AMD, of ZE_AFFINITY_MASK "
             "for those of Intel, or of ASCEND_RT_VISIBLE_DEVICES for NPUs; docs/environment.md has the rules."},
    {.id = FlagId::kNumaBinding,
     .name = "numa-binding",
     .family = kTorchrun,
     .kind = kChoice,
     .has_variable = false,
     .metavar = "MODE",
     .words = "node|socket|exclusive|core-complex",
     .help = "bind workers to CPUs near their GPU: node, socket, exclusive, core-complex",
     .more =
         "A worker runs on the CPUs of its GPU's NUMA node, or of all NUMA nodes of that socket; on its share of the "
         "node's physical cores, which the GPUs of that node divide among them; or on one group of the node's CPUs "
         "that share a cache of the highest level. Without a GPU the workers are spread over the NUMA nodes. CPUs "
         "that elastic-run itself may not use are not given. numactl is not needed."},
    {.id = FlagId::kNumaAffinity,
     .name = "numa-affinity",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "bind workers to the CPUs and the memory of their GPU's NUMA node",
     .more = "With --numa-binding, that chooses the CPUs."},
    {.id = FlagId::kMembindPolicy,
     .name = "membind-policy",
     .family = kDlrover,
     .by_default = "preferred",
     .metavar = "POLICY",
     .words = "bind|preferred",
     .help = "memory policy for --numa-affinity",
     .more =
         "With preferred, memory comes from the GPU's NUMA node as long as it has some; with bind, only from the NUMA "
         "nodes of the worker's CPUs. With any other word only the CPUs are bound."},

    // --- Restart and stop
    {.id = FlagId::kMaxRestarts,
     .name = "max-restarts",
     .family = kTorchrun,
     .kind = kInteger,
     .least = 0,
     .most = limits::kMaxRestarts,
     .by_default = "0",
     .metavar = "N",
     .help = "restarts of all workers before the job fails"},
    {.id = FlagId::kCrashLoop,
     .name = "crash-loop",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "stop",
     .metavar = "WHAT",
     .words = "stop|restart",
     .help = "after the same import, syntax or missing-file error twice: stop or restart",
     .more = "With stop, the job ends with exit status 93, whatever restarts are left, when two attempts in a row "
             "first fail with the same exception (type, text, file and line): a further one would, too. The "
             "exceptions are ImportError, ModuleNotFoundError, SyntaxError, IndentationError, TabError and "
             "FileNotFoundError; a script that Python cannot open counts as well. With restart, all of --max-restarts "
             "is used, as in torchrun. The first node's value holds for all."},
    {.id = FlagId::kHang,
     .name = "hang",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "report",
     .metavar = "WHAT",
     .words = "off|report|restart",
     .help = "what to do with a job that makes no progress: nothing, tell why, or restart it",
     .more =
         "With report, a job whose ranks have shown steps, and show none for --hang-timeout, is taken for one that "
         "hangs: all nodes read what their ranks do, without stopping or signalling them, and the rank or node at "
         "fault is told on the screen, in hang.json, in failure.json and as an event. docs/hangs.md says how it is "
         "found. With restart the same is told, and then the round ends, as it does for a worker that has failed, "
         "without the node at fault: at once where its hardware is, else the second time, or if another node stands "
         "by. It takes a time that is given, or one that was learned from 16 steps, and workers get a few variables "
         "more. The first node's value holds for all, and so do its times."},
    {.id = FlagId::kHangTimeout,
     .name = "hang-timeout",
     .family = kOurs,
     .metavar = "TIME",
     .help = "for how long a job may show no step",
     .more = "Seconds, or 90s, 5m, 1h. Without it the time is learned: five times the longest that the job has taken "
             "from one step to the next, from 1 to 30 minutes, for each phase that the script names."},
    {.id = FlagId::kHangFirstTimeout,
     .name = "hang-first-timeout",
     .family = kOurs,
     .metavar = "TIME",
     .help = "for how long a round may show no first step",
     .more = "Seconds, or 90s, 5m, 1h. Without it the time before the first step of a round has no limit, since "
             "compilation and loading may take any time."},
    {.id = FlagId::kShutdownTimeout,
     .name = "shutdown-timeout",
     .family = kTorchrun,
     .kind = kInteger,
     .least = 0,
     .most = limits::kMaxTimeoutSeconds,
     .metavar = "SECONDS",
     .help = "time from SIGTERM to SIGKILL; 30 if not given",
     .more = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT sets another default. The time applies to every stop, including one that "
             "a failed worker causes."},
    {.id = FlagId::kSignalsToHandle,
     .name = "signals-to-handle",
     .family = kTorchrun,
     .by_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .metavar = "LIST",
     .help = "signals that end the job gracefully",
     .more =
         "SIGKILL and SIGSTOP cannot be handled, and elastic-run itself needs SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, "
         "SIGTTOU, SIGWINCH and SIGPIPE: these are errors. An unknown name is skipped with a warning. A signal "
         "that was ignored when elastic-run started (nohup) stays ignored. A worker that handles the signal gets it "
         "before its helpers, unless it is SIGINT. A second SIGINT or SIGTERM, at least a second after the first, "
         "kills all workers at once."},
    {.id = FlagId::kForwardSignals,
     .name = "forward-signals",
     .family = kOurs,
     .metavar = "LIST",
     .help = "signals to pass on to the workers",
     .more = "For example USR1,USR2: the process group of every worker gets the signal, and the job goes on. A worker "
             "that handles the signal gets it alone, and its group when it has ended. A signal cannot also be in "
             "--signals-to-handle."},
    {.id = FlagId::kStuckWorker,
     .name = "stuck-worker",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "fail",
     .metavar = "WHAT",
     .words = "fail|ignore",
     .help = "when a worker survives SIGKILL: fail or ignore",
     .more = "A process in uninterruptible sleep (state D) or in a frozen cgroup survives even SIGKILL. "
             "elastic-run names it one second after SIGKILL and gives up on it after stuck_timeout seconds (a key of "
             "--rdzv-conf, 5 if not given). Then the job fails or, with ignore, goes on without it. Where "
             "--hang=restart ends a round of several nodes for a hang, it costs its node; with ignore only if the job "
             "has enough nodes without it."},
    {.id = FlagId::kLeaveBackground,
     .name = "leave-background",
     .family = kOurs,
     .kind = kSwitch,
     .help = "on success, keep workers' background processes",
     .more = "What workers leave behind (`nohup upload &`) then lives on, as with torchrun. Without this option it is "
             "ended and named in a warning. A job that fails, restarts or is stopped always ends everything. Workers "
             "then write to elastic-run's own stderr, as with --stderr-tail=never, unless --stderr-tail is given: a "
             "pipe would lose its reader when elastic-run ends."},
    {.id = FlagId::kPropagateExitCode,
     .name = "propagate-exit-code",
     .family = kOurs,
     .kind = kSwitch,
     .help = "exit with the first failure's code instead of 1",
     .more =
         "If a signal killed that worker or stopped the job, it is 128 plus the number of the signal. But if the "
         "workers of a job that is stopped all end by themselves with one code other than 0, such as 85, it is that "
         "one. It is 69 on a node that the check has left out, or that is out for a hang."},

    // --- Output and logs
    {.id = FlagId::kLogDir,
     .name = "log-dir",
     .family = kTorchrun,
     .metavar = "DIR",
     .help = "directory for logs and error files",
     .more = "Each run makes a directory of its own in DIR. Without this option it is made in the directory for "
             "temporary files. With /dev/null there are no files at all."},
    {.id = FlagId::kRedirects,
     .name = "redirects",
     .letter = 'r',
     .family = kTorchrun,
     .by_default = "0",
     .metavar = "MAP",
     .help = "redirect to log files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:2",
     .more = "The files are stdout.log and stderr.log in the directory of each attempt and local rank. Local ranks "
             "that are not in the list are not redirected."},
    {.id = FlagId::kTee,
     .name = "tee",
     .letter = 't',
     .family = kTorchrun,
     .by_default = "0",
     .metavar = "MAP",
     .help = "like --redirects, and to the console as well",
     .more = "The console gets whole lines, each with a prefix that names its rank."},
    {.id = FlagId::kLogLinePrefixTemplate,
     .name = "log-line-prefix-template",
     .family = kTorchrun,
     .by_default = "",
     .metavar = "TEXT",
     .help = "prefix of each --tee line on the console",
     .more = "The macros are ${role_name}, ${local_rank}, ${rank} and ${hostname}. An empty TEXT means no prefix."},
    {.id = FlagId::kLocalRanksFilter,
     .name = "local-ranks-filter",
     .family = kTorchrun,
     .by_default = "",
     .metavar = "LIST",
     .help = "local ranks that write to the console",
     .more = "The --tee output of other local ranks goes to their files only; what they would write to the console is "
             "dropped."},
    {.id = FlagId::kDuplicateStdoutFilters,
     .name = "duplicate-stdout-filters",
     .family = kTorchrun,
     .kind = kTextList,
     .metavar = "LIST",
     .help = "copy stdout lines with these texts to a file",
     .more = "The file is filtered_stdout.log of the attempt; the lines are those of ranks with --tee. Texts are "
             "separated by commas; two commas are a comma within a text."},
    {.id = FlagId::kDuplicateStderrFilters,
     .name = "duplicate-stderr-filters",
     .family = kTorchrun,
     .kind = kTextList,
     .metavar = "LIST",
     .help = "the same for stderr"},
    {.id = FlagId::kLogMaxBytes,
     .name = "log-max-bytes",
     .family = kOurs,
     .by_default = "0",
     .metavar = "SIZE",
     .help = "rotate workers' log files: 100M, 1G; 0 never",
     .more = "A file that would grow beyond SIZE is renamed to stdout.log.1 and replaces the previous one, so that it "
             "costs at most twice SIZE. The same holds for stderr.log and the filtered files. Files are cut between "
             "lines; only a line of more than 64 KiB or SIZE may be split. K, M, G and T (or KiB and so on) are powers "
             "of 1024; KB, MB, GB and TB are powers of 1000. Redirected output then passes through elastic-run, as "
             "--tee output does."},
    {.id = FlagId::kStderrTail,
     .name = "stderr-tail",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "auto",
     .metavar = "WHEN",
     .words = "auto|never",
     .help = "keep the end of stderr for the failure report",
     .more = "With auto, each worker's stderr passes through elastic-run (by a pseudo-terminal where it is a "
             "terminal), which keeps the last 64 KiB. With never, the worker writes to elastic-run's own stderr."},
    {.id = FlagId::kLogLevel,
     .name = "log-level",
     .family = kOurs,
     .beside = kEveryMode,
     .metavar = "LEVEL",
     .words = "debug|info|warning|error|critical",
     .help = "elastic-run's own messages on stderr, at this level and above; warning if not given",
     .more = "The level is a name in upper or lower case, or a number as in Python's logging. LOGLEVEL in the "
             "environment, which torchrun reads as well, sets another default."},
    {.id = FlagId::kLogFormat,
     .name = "log-format",
     .family = kOurs,
     .kind = kChoice,
     .beside = kEveryMode,
     .by_default = "text",
     .metavar = "FORMAT",
     .words = "text|json",
     .help = "elastic-run's own messages: text, or one JSON object per line",
     .more = "The failure report stays text."},
    {.id = FlagId::kEvents,
     .name = "events",
     .family = kOurs,
     .metavar = "FILE",
     .help = "append this node's events to FILE, one JSON object per line",
     .more = "All events are written, whatever the log level; docs/observing.md lists them with their fields. Each "
             "line is one write, so several nodes may share a file if the file system appends whole writes. If the "
             "file fails or does not answer, only events are lost."},
    {.id = FlagId::kOnEvent,
     .name = "on-event",
     .family = kOurs,
     .metavar = "CMD",
     .help = "run CMD when a node is lost, unfit or kept out, and when the job ends",
     .more = "The command is run with /bin/sh -c, once per event in the job, on the node that hosts the coordinator; "
             "so give the option on all nodes. It gets the event's line of JSON, as in --events, on stdin, and the "
             "environment of the workers. At most 4 commands run at once and 64 wait; one that takes more than 30 s is "
             "killed. A command never changes the job."},
    {.id = FlagId::kOnEventKinds,
     .name = "on-event-kinds",
     .family = kOurs,
     .needs = {{FlagId::kOnEvent, "it says for which events --on-event is run", "give --on-event=CMD, too"}},
     .by_default = "node_lost,node_unfit,node_kept_out,job_ends",
     .metavar = "KINDS",
     .help = "the events that run --on-event",
     .more = "Any of the four, separated by commas. docs/observing.md says when each occurs."},
    {.id = FlagId::kReport,
     .name = "report",
     .family = kOurs,
     .mode = Mode::kReport,
     .has_variable = false,
     .metavar = "DIR",
     .help = "print the failure report of an earlier run",
     .more = "It is read from failure.json in DIR, the log directory of a run, or from the directories right below "
             "DIR. Directories of other nodes of the job may follow; their reports are merged, first cause first. No "
             "job is started."},
    {.id = FlagId::kHtml,
     .name = "html",
     .family = kOurs,
     .beside = {Mode::kReport},
     .needs = {{FlagId::kReport, "it is for the page that --report makes", "name a run's directory with --report"}},
     .has_variable = false,
     .metavar = "FILE",
     .help = "write the --report to FILE, as HTML",
     .more = "The page needs no scripts and no network. - is stdout."},
    {.id = FlagId::kRecord,
     .name = "record",
     .family = kOurs,
     .has_variable = false,
     .metavar = "FILE",
     .help = "record the coordinator's input for --replay",
     .more =
         "FILE is created or emptied, and written as the job runs. If it does not answer, only the recording is lost."},
    {.id = FlagId::kReplay,
     .name = "replay",
     .family = kOurs,
     .mode = Mode::kReplay,
     .has_variable = false,
     .metavar = "FILE",
     .help = "print a recorded job's decisions and reasons",
     .more =
         "FILE is a recording by --record; - is stdin. For each event it prints a line of JSON: what the coordinator "
         "decided, the messages it sent to which nodes, and the state of the job afterwards. No job is started."},
    {.id = FlagId::kHttpPort,
     .name = "http-port",
     .family = kOurs,
     .kind = kInteger,
     .least = 0,
     .most = kMaxPort,
     .metavar = "PORT",
     .help = "serve this node's status and metrics by HTTP",
     .more = "It serves /healthz, /readyz, /status (JSON) and /metrics (Prometheus) on all addresses; 0 picks a free "
             "port and prints it. Host names and texts are shown to clients that send the job's status key or, if the "
             "job has no token, to clients on the same host; all others see counts and states. The coordinator's port "
             "serves the same, with all that the coordinator knows of its jobs."},
    {.id = FlagId::kStatusOpen,
     .name = "status-open",
     .family = kOurs,
     .kind = kSwitch,
     .beside = {Mode::kCoordinatorOnly},
     .help = "show host names and texts to every status client",
     .more = "It applies to the coordinator's port and to --http-port: host names, addresses, process ids, and why "
             "workers failed. Without it, only this host, or clients with the job's status key, see them; all others "
             "see counts and states."},
    {.id = FlagId::kStatus,
     .name = "status",
     .family = kOurs,
     .mode = Mode::kStatus,
     .beside = {Mode::kDrain, Mode::kStop},
     .has_variable = false,
     .metavar = "HOST[:PORT]",
     .help = "print the nodes and the state of a job",
     .more = "HOST:PORT is the job's --rdzv-endpoint or a node's --http-port; the port is 29400 unless it is given. "
             "With --rdzv-id only that job is printed, with --log-format=json the document of /status. With the job's "
             "token, from ELASTIC_RUN_TOKEN or --rdzv-conf=token_file=FILE, host names and texts are shown on other "
             "hosts, too; what is sent is a key made of the token. No job is started."},
    {.id = FlagId::kWatch,
     .name = "watch",
     .family = kOurs,
     .kind = kSwitch,
     .beside = {Mode::kStatus},
     .needs = {{FlagId::kStatus, "it is for the page that --status prints", "name an endpoint with --status"}},
     .has_variable = false,
     .help = "repeat --status every 2 s, until Ctrl-C",
     .more = "On a terminal the page is redrawn; elsewhere there is one line each time."},
    {.id = FlagId::kDrain,
     .name = "drain",
     .family = kOurs,
     .mode = Mode::kDrain,
     .needs = {{FlagId::kStatus, "nothing says where the job is", "name its endpoint with --status=HOST:PORT"}},
     .has_variable = false,
     .metavar = "NODE",
     .help = "order a node of the --status job to leave",
     .more =
         "NODE is the node's rank, name or address, as --status prints them. The node's workers get SIGTERM and the "
         "time of --shutdown-timeout to end, its elastic-run ends, and the other nodes go on in a new round, which "
         "--max-restarts does not count: as if that elastic-run had received SIGTERM. It needs the job's token; in "
         "a job without one it is accepted on the coordinator's host alone. No job is started."},
    {.id = FlagId::kStop,
     .name = "stop",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kStop,
     .needs = {{FlagId::kStatus, "nothing says where the job is", "name its endpoint with --status=HOST:PORT"}},
     .has_variable = false,
     .help = "order the --status job to stop",
     .more = "The workers of all nodes get SIGTERM and the time of --shutdown-timeout to end, and the job ends as "
             "stopped. The same rules as for --drain say who may order it. No job is started."},
    {.id = FlagId::kStatusKey,
     .name = "status-key",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kStatusKey,
     .has_variable = false,
     .help = "print the status key, which shows names and texts",
     .more = "Prometheus and curl send it as Authorization: Bearer KEY. It is made of the job's token, from "
             "ELASTIC_RUN_TOKEN or --rdzv-conf=token_file=FILE, and gives access to the status only."},
    {.id = FlagId::kStacks,
     .name = "stacks",
     .family = kOurs,
     .mode = Mode::kStacks,
     .has_variable = false,
     .metavar = "WHERE",
     .help = "print the Python stacks of all workers",
     .more =
         "WHERE is the PID of an elastic-run on this host, whose workers are meant, or of a Python process. Or it is "
         "HOST:PORT, the endpoint of a job or any of its nodes, for the workers of all nodes; that needs the job's "
         "token, and in a job without one the coordinator's host. Workers with equal stacks are one group, and the "
         "rarest stack is the first. No process is stopped: a worker that is stopped, that holds the GIL or that waits "
         "for a device is read as well. Python 3.11 to 3.14 are known. With --log-format=json a JSON document is "
         "printed. No job is started."},

    // --- Node check
    {.id = FlagId::kNetworkCheck,
     .name = "network-check",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "check nodes and their links before workers start",
     .more = "Each node checks itself, then is tested in pairs with others over TCP, in up to three stages. A faulty "
             "node ends "
             "with exit status 1 and the reason; the others train. The first node's value holds for all. MOCK_ERR_RANK "
             "(a local rank) makes a node's check fail, to try out what happens then. NETWORK_CHECK_TIMEOUT is the "
             "number of seconds that one test may take (30)."},
    {.id = FlagId::kCheckPolicy,
     .name = "check-policy",
     .family = kOurs,
     .kind = kChoice,
     .by_default = "suspect",
     .metavar = "WHEN",
     .words = "suspect|first|always",
     .help = "when a node is checked again: suspect, first, always",
     .more = "With first, a node is checked before its first round and after it was lost. With suspect, also when its "
             "worker was the first to fail. With always, all nodes are checked before each round, as in dlrover-run."},
    {.id = FlagId::kExcludeStraggler,
     .name = "exclude-straggler",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "exclude slow nodes, too",
     .more = "A node that the check finds more than twice as slow as the median ends with exit status 1. Without this "
             "option it trains, and one line says that it is slow."},
    {.id = FlagId::kCommPerfTest,
     .name = "comm-perf-test",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "with --network-check: measure an all-gather of all nodes",
     .more = "After the pairs, all fit nodes form a ring and pass blocks of 2 MiB over TCP. One line gives the "
             "bandwidth; no node is excluded for it. Without --network-check it is ignored."},
    {.id = FlagId::kPrecheck,
     .name = "precheck",
     .family = kDlrover,
     .kind = kChoice,
     .by_default = "0",
     .metavar = "N",
     .words = "0|1|2",
     .help = "1: --network-check; 2: with --comm-perf-test"},

    {.id = FlagId::kNcclLib,
     .name = "nccl-lib",
     .family = kOurs,
     .metavar = "FILE",
     .help = "with --network-check: the libnccl.so.2 to test",
     .more = "It is used where GPUs are tested. By default it is the library that the job's Python would load, or else "
             "the one that the dynamic loader finds. health.json names the one that was used."},
    {.id = FlagId::kProbePath,
     .name = "probe-path",
     .family = kOurs,
     .metavar = "FILE",
     .help = "with --network-check: the GPU test program",
     .more = "It replaces the program that is built into elastic-run, on nodes with GPUs. docs/gpu-probe.md describes "
             "its protocol."},
    {.id = FlagId::kCheckOnly,
     .name = "check-only",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kCheckOnly,
     .help = "check nodes and links only; start no workers",
     .more = "This is the acceptance test of a cluster: the exit status is 0 on all nodes if every node and link is "
             "fit, and 1 if one is not. No script is needed; if one is named, it is not started."},
    {.id = FlagId::kNodeGroup,
     .name = "node-group",
     .family = kOurs,
     .by_default = "",
     .metavar = "NAME",
     .help = "this node's rack, for the check",
     .more =
         "Nodes of one rack meet each other first, then nodes of other racks. Links between racks are compared with "
         "each other only. The default is the value of scheduling/rack-id in the environment, DLRover's variable."},

    {.id = FlagId::kHealthHook,
     .name = "health-hook",
     .family = kOurs,
     .metavar = "CMD",
     .help = "with --network-check: your check of this host",
     .more =
         "The command is run with /bin/sh -c, once per check, with the workers' environment. It writes its "
         "findings to stdout as one line of JSON, the last of which counts: {\"severity\": \"note\", \"warning\" or "
         "\"fatal\", \"what\": \"...\"}, or a list of these as \"findings\". A non-zero exit status without such a "
         "line "
         "is fatal, and so is a run of more than 30 s."},
    {.id = FlagId::kCheckProbe,
     .name = "check-probe",
     .family = kOurs,
     .metavar = "CMD",
     .help = "with --network-check: your own test of pairs",
     .more = "The command is run with /bin/sh -c, once for each worker of both nodes, with the environment of such a "
             "worker. Each one that succeeds writes {\"time\": SECONDS} to /tmp/dlrover/network_check/LOCAL_RANK.txt, "
             "as DLRover's probes do. NETWORK_CHECK_TIMEOUT is the number of seconds that it may take (180). Give it "
             "on all nodes."},
    {.id = FlagId::kHealthReport,
     .name = "health-report",
     .family = kOurs,
     .metavar = "FILE",
     .help = "write the check's results to FILE, as HTML",
     .more = "The node that hosts the coordinator writes it, anew after each check of the job."},
    {.id = FlagId::kSegmentHealthDir,
     .name = "segment-health-dir",
     .family = kOurs,
     .metavar = "DIR",
     .help = "leave when the scheduler's file says so",
     .more =
         "The file is DIR/segment_health_check.JOB.TASK, as NVRx names it, with SLURM_ARRAY_JOB_ID and "
         "SLURM_ARRAY_TASK_ID, or with SLURM_JOB_ID twice. While it is there and not empty, this node runs in no other "
         "round, and leaves the job as if it had received SIGTERM; workers that run are left alone. A file that "
         "is missing, empty or out of reach changes nothing. DIR is absolute, and the same for all nodes. "
         "examples/slurm/drain_poller.sh writes such files for nodes that are drained."},

    // --- Taken for compatibility
    {.id = FlagId::kMonitorInterval,
     .name = "monitor-interval",
     .family = kTorchrun,
     .kind = kNumber,
     .state = kAccepted,
     .above = 0,
     .by_default = "0.1",
     .metavar = "SECONDS",
     .help = "not needed: exits are noticed at once",
     .more = "In torchrun it is the time between two looks at the workers."},
    {.id = FlagId::kStartMethod,
     .name = "start-method",
     .family = kTorchrun,
     .kind = kChoice,
     .state = kAccepted,
     .by_default = "spawn",
     .metavar = "METHOD",
     .words = "spawn|fork|forkserver",
     .help = "not needed: every worker is a new process",
     .more = "That holds for --run-path, too."},
    {.id = FlagId::kEventLogHandler,
     .name = "event-log-handler",
     .family = kTorchrun,
     .by_default = "null",
     .metavar = "NAME",
     .words = "null|console|dynamic_rendezvous",
     .help = "console: print torchelastic's events to stderr; null, dynamic_rendezvous: do not",
     .more = "As in torchrun, a LOGLEVEL above INFO silences them. docs/observing.md says what differs. Other handlers "
             "are errors: they are Python plug-ins, which elastic-run cannot load without Python."},
    {.id = FlagId::kLogsSpecs,
     .name = "logs-specs",
     .family = kTorchrun,
     .state = kRefused,
     .has_variable = false,
     .metavar = "NAME",
     .help = "an error: Python plug-ins cannot be loaded",
     .why = "it names a plug-in in Python, which a program without Python cannot load"},
    {.id = FlagId::kAccelerator,
     .name = "accelerator",
     .family = kDlrover,
     .kind = kChoice,
     .by_default = "nvidia.com/gpu",
     .metavar = "KIND",
     .words = "nvidia.com/gpu|cpu|ascend-npu|mthreads.com/gpu|metax-tech.com/gpu",
     .help = "with --network-check: test GPUs only with nvidia.com/gpu",
     .more =
         "NVIDIA's GPUs are tested where there are any. With cpu, which dlrover-run does not have, no GPU is tested; "
         "with ascend-npu, mthreads.com/gpu or metax-tech.com/gpu, one line says that such devices are not tested."},
    {.id = FlagId::kTrainingPort,
     .name = "training-port",
     .family = kDlrover,
     .kind = kInteger,
     .least = 0,
     .most = kMaxPort,
     .by_default = "60000",
     .metavar = "PORT",
     .help = "first port of HCCL, with ascend-npu",
     .more = "With --accelerator=ascend-npu workers get HCCL_IF_BASE_PORT: the first of 16 TCP ports in a row that are "
             "free on all nodes of the round, from PORT on. They agree on it for each round anew. HCCL_IF_BASE_PORT of "
             "elastic-run itself takes the place of PORT. Where no such ports are free, one warning says so, and "
             "HCCL_IF_BASE_PORT is PORT. With 0 workers are told nothing."},
    {.id = FlagId::kAutoTunning,
     .name = "auto-tunning",
     .family = kDlrover,
     .kind = kSwitch,
     .help = "tune the data loader while training",
     .more =
         "Workers get DLRover's variables DLROVER_PARAL_CONFIG_PATH and RUNTIME_METRICS_PATH. Where a loader says its "
         "num_workers or its batch_size in the file of the first, and steps are seen, larger values are tried, one "
         "at a time, and kept if that makes the job faster. In a job of several nodes one of them decides for all, "
         "and each needs the flag. docs/auto-tunning.md."},
    {.id = FlagId::kSaveAtBreakpoint,
     .name = "save-at-breakpoint",
     .family = kDlrover,
     .kind = kSwitch,
     .state = kUnmet,
     .help = "a warning: checkpoints in memory are not saved",
     .more =
         "dlrover-run saves at a failure what DLRover's checkpoint engine has in memory only. elastic-run does not: "
         "what the script itself has written to storage is there after a restart.",
     .why =
         "checkpoints that are only in memory are not saved when a worker fails; let the script write to storage what "
         "must not be lost"},
    {.id = FlagId::kUcpDeviceType,
     .name = "ucp-device-type",
     .family = kDlrover,
     .state = kAccepted,
     .by_default = "cpu",
     .metavar = "TYPE",
     .help = "not needed: no checkpoint is converted",
     .more = "In DLRover it names the device for the conversion of universal checkpoints, which its master asks for; "
             "dlrover-run itself does not use it."},

    // --- About
    {.id = FlagId::kDryRun,
     .name = "dry-run",
     .family = kOurs,
     .kind = kOptionalChoice,
     .has_variable = false,
     .words = "text|json",
     .help = "print what would be started; start nothing",
     .more = "It prints the launch plan: every value and where it came from, and the command and the environment of "
             "each worker. --dry-run=json is for programs."},
    {.id = FlagId::kPrintCompletion,
     .name = "print-completion",
     .family = kTorchrun,
     .kind = kChoice,
     .mode = Mode::kPrintCompletion,
     .has_variable = false,
     .metavar = "SHELL",
     .words = "bash|zsh|fish",
     .help = "print shell completions: bash, zsh or fish"},
    {.id = FlagId::kVersion,
     .name = "version",
     .family = kOurs,
     .kind = kSwitch,
     .mode = Mode::kVersion,
     .has_variable = false,
     .help = "print the version"},
    {.id = FlagId::kHelp,
     .name = "help",
     .letter = 'h',
     .family = kTorchrun,
     .kind = kSwitch,
     .mode = Mode::kHelp,
     .has_variable = false,
     .help = "print this help"},
}};

// The first flag of each group, in the order of FlagGroup.
constexpr std::array kFirstOfGroup = {FlagId::kNnodes,          FlagId::kStandalone, FlagId::kModule,
                                      FlagId::kMaxRestarts,     FlagId::kLogDir,     FlagId::kNetworkCheck,
                                      FlagId::kMonitorInterval, FlagId::kDryRun};

// The rows with their groups; a switch is off by default.
constexpr std::array<Flag, kFlagCount> kTable = [] {
  std::array<Flag, kFlagCount> flags = kRows;
  std::size_t groups = 0;
  for (Flag& flag : flags) {
    if (groups < kFirstOfGroup.size() && flag.id == kFirstOfGroup[groups]) ++groups;
    flag.group = static_cast<FlagGroup>(groups - 1);
    if (flag.kind == kSwitch) flag.by_default = "false";
  }
  return flags;
}();

consteval bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  }
  return kTable.back().group == kAbout;
}
static_assert(in_order(), "the table must follow FlagId, and the flags of kFirstOfGroup stand in its order");
static_assert(std::ranges::none_of(kTable, [](const Flag& flag) { return flag.family == Family{}; }),
              "each row says whose flag it is");

}  // namespace

std::span<const Flag> flag_table() { return kTable; }

const Flag& flag_of(FlagId id) { return kTable[static_cast<std::size_t>(id)]; }

bool stands_alone(Mode mode) { return mode >= Mode::kReport && mode <= Mode::kStoreOnly; }

std::string_view group_title(FlagGroup group) {
  constexpr std::string_view kTitles[] = {"Job size",
                                          "How nodes meet",
                                          "Workers and their command",
                                          "Restart and stop",
                                          "Output and logs",
                                          "Node check (dlrover-run)",
                                          "More options of torchrun and dlrover-run",
                                          "About elastic-run"};
  static_assert(std::size(kTitles) == kFirstOfGroup.size() &&
                kFirstOfGroup.size() == static_cast<std::size_t>(kAbout) + 1);
  return kTitles[static_cast<std::size_t>(group)];
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
