#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The one table of flags. The parser, --help, the manual page, docs/command-line.md and the
// completions all come from it.
namespace elastic::cli {

// One name per flag, in the order of the table (and of --help).
enum class FlagId : unsigned char {
  // Job size
  kNnodes,
  kNprocPerNode,
  kAutoConfig,
  kNodeUnit,
  // How nodes meet
  kStandalone,
  kRdzvBackend,
  kRdzvEndpoint,
  kRdzvId,
  kRdzvConf,
  kNodeRank,
  kMasterAddr,
  kMasterPort,
  kLocalAddr,
  kCoordinatorOnly,
  kStoreOnly,
  kPort,
  // Workers and their command
  kModule,
  kNoPython,
  kRunPath,
  kRole,
  kWrap,
  kWarmWorkers,
  kWarmImport,
  kWarmAfter,
  kProgressPattern,
  kProgressFrom,
  kProgressSections,
  kVirtualLocalRank,
  kNumaBinding,
  kNumaAffinity,
  kMembindPolicy,
  // Restart and stop
  kMaxRestarts,
  kCrashLoop,
  kHang,
  kHangTimeout,
  kHangFirstTimeout,
  kShutdownTimeout,
  kSignalsToHandle,
  kForwardSignals,
  kStuckWorker,
  kLeaveBackground,
  kPropagateExitCode,
  // Output and logs
  kLogDir,
  kRedirects,
  kTee,
  kLogLinePrefixTemplate,
  kLocalRanksFilter,
  kDuplicateStdoutFilters,
  kDuplicateStderrFilters,
  kLogMaxBytes,
  kStderrTail,
  kLogLevel,
  kLogFormat,
  kEvents,
  kOnEvent,
  kOnEventKinds,
  kReport,
  kHtml,
  kRecord,
  kReplay,
  kHttpPort,
  kStatusOpen,
  kStatus,
  kWatch,
  kDrain,
  kStop,
  kStatusKey,
  kStacks,
  // Node check
  kNetworkCheck,
  kCheckPolicy,
  kExcludeStraggler,
  kCommPerfTest,
  kPrecheck,
  kNcclLib,
  kProbePath,
  kCheckOnly,
  kNodeGroup,
  kHealthHook,
  kCheckProbe,
  kHealthReport,
  kSegmentHealthDir,
  // Taken for compatibility
  kMonitorInterval,
  kStartMethod,
  kEventLogHandler,
  kLogsSpecs,
  kAccelerator,
  kTrainingPort,
  kAutoTunning,
  kSaveAtBreakpoint,
  kUcpDeviceType,
  // About
  kDryRun,
  kPrintCompletion,
  kVersion,
  kHelp,
};
inline constexpr std::size_t kFlagCount = static_cast<std::size_t>(FlagId::kHelp) + 1;

// Whose flag it is. A prefix of a flag is looked up family by family in this order.
enum class Family : unsigned char { kTorchrun = 1, kDlrover, kOurs };

// What a command line asks for: a job, or something in its place. Where flags of several modes are given, the last one
// of this list is meant.
enum class Mode : unsigned char {
  kJob,
  kCheckOnly,  // a job whose workers never start
  kReport,
  kStatusKey,
  kStatus,
  kDrain,
  kStop,
  kStacks,
  kReplay,
  kCoordinatorOnly,
  kStoreOnly,
  // The rest of the command line and the environment are not looked at:
  kPrintCompletion,
  kVersion,
  kHelp,
};
// Whether the mode starts no job and therefore refuses the flags of one: kReport to kStoreOnly.
bool stands_alone(Mode mode);

// A set of modes.
class Modes {
 public:
  constexpr Modes() = default;
  constexpr Modes(std::initializer_list<Mode> modes) {
    for (const Mode mode : modes) bits_ |= bit(mode);
  }
  constexpr bool has(Mode mode) const { return (bits_ & bit(mode)) != 0; }

 private:
  static constexpr unsigned bit(Mode mode) { return 1U << static_cast<unsigned>(mode); }
  unsigned bits_ = 0;
};

enum class FlagKind : unsigned char {
  kSwitch,          // no value; its variable is an integer, 0 is off
  kInteger,         // as Python's int()
  kNumber,          // as Python's float()
  kText,            // any bytes
  kChoice,          // one of `words`
  kTextList,        // parts between commas, ",," is a comma in a part
  kOptionalChoice,  // one of `words`, only by "="; the first one where no value is given
};

// What the flag does today.
enum class FlagState : unsigned char {
  kWorks,
  kAccepted,  // is accepted; elastic-run needs no such setting
  kUnmet,     // is accepted; one line at the start says by `why` what is not done
  kRefused,   // is an error, for the reason in `why`
};

enum class FlagGroup : unsigned char {
  kJobSize,
  kRendezvous,
  kWorkers,
  kRestart,
  kOutput,
  kNodeCheck,
  kCompatibility,
  kAbout,
};

// Another flag, without which a flag on the command line has no meaning, and what is said where it is missing.
struct Need {
  FlagId flag;
  std::string_view why;
  std::string_view remedy;
};

struct Flag {
  FlagId id = FlagId::kHelp;
  std::string_view name = {};           // with dashes: "nproc-per-node"; all other spellings derive from it
  char letter = 0;                      // 'r' for -r, 0 for none
  Family family = {};                   // no default: each row says it
  FlagGroup group = FlagGroup::kAbout;  // follows from its place in the table
  FlagKind kind = FlagKind::kText;
  FlagState state = FlagState::kWorks;
  bool repeats = false;    // each one adds a line to the value
  Mode mode = Mode::kJob;  // what the flag asks for
  Modes beside = {};       // modes that stand alone and yet take this flag; they exclude others
  std::optional<Need> needs = {};
  std::optional<std::int64_t> least = {};  // bounds of a kInteger
  std::optional<std::int64_t> most = {};
  std::optional<std::int64_t> above = {};           // bound of a kNumber, itself excluded
  bool has_variable = true;                         // PET_<DEST> is read
  std::optional<std::string_view> by_default = {};  // the value as text; none: unset; of a kSwitch "false"
  std::string_view metavar = {};                    // "N|MIN:MAX"; empty where none is needed
  std::string_view words = {};                      // "spawn|fork": all choices of a kChoice, words
                                                    // that are known for other kinds
  std::string_view help = {};                       // for --help: a phrase
  std::string_view more = {};                       // for manual and docs: whole sentences
  std::string_view why = {};                        // of a kRefused, kUnmet
};

// All flags, in the order of FlagId. Static storage.
std::span<const Flag> flag_table();
const Flag& flag_of(FlagId id);

inline constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

// "Job size", ...
std::string_view group_title(FlagGroup group);

// "--nproc-per-node"
std::string long_spelling(const Flag& flag);
// "--nproc_per_node"; the same as long_spelling where the name is one word.
std::string underscore_spelling(const Flag& flag);
// "nproc_per_node", argparse's name of the value.
std::string dest_of(const Flag& flag);
inline constexpr std::string_view kVariablePrefix = "PET_";
// "PET_NPROC_PER_NODE", empty where no variable is read.
std::string variable_of(const Flag& flag);
// The parts of `words`.
std::vector<std::string> words_of(const Flag& flag);
// Whether the flag takes the next argument where it has no "=".
bool takes_value(const Flag& flag);

}  // namespace elastic::cli
