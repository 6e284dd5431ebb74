#pragma once

namespace elastic::output {

// The streams of --redirects and --tee, as bits.
inline constexpr unsigned kStdoutBit = 1;
inline constexpr unsigned kStderrBit = 2;

// What the flags say about the output of one local rank.
struct OutputFlags {
  unsigned redirects = 0;       // --redirects: bits
  unsigned tee = 0;             // --tee: bits
  bool shown = true;            // --local-ranks-filter lets the rank through
  bool filters_stdout = false;  // --duplicate-stdout-filters is given
  bool filters_stderr = false;  // --duplicate-stderr-filters is given
  bool log_dir = true;          // false: --log-dir=/dev/null
  bool stderr_tail = true;      // --stderr-tail=auto; false: never
  bool rotated = false;         // --log-max-bytes is given
};

// What our own stdout and stderr are.
struct OurStreams {
  enum class Kind : unsigned char { kClosed, kTerminal, kOther };
  Kind out = Kind::kOther;
  Kind err = Kind::kOther;
  // stdout and stderr are the same open file (kcmp), or the same terminal.
  bool same = false;
  bool can_make_terminals = true;  // /dev/ptmx can be opened
};

// What a worker gets for one of its streams.
struct StreamPlan {
  enum class Kind : unsigned char {
    kInherit,  // our own descriptor
    kFile,     // its log file, opened for writing; never where that is rotated
    kPipe,     // a pipe that the launcher reads
    kPty,      // a pseudo-terminal that the launcher reads and passes on byte by byte
    kNull,     // /dev/null
  };
  Kind kind = Kind::kInherit;
  // Where the launcher passes on what it reads; all false unless kPipe or kPty.
  bool to_console = false;
  bool to_file = false;
  bool to_filtered = false;  // matching lines go to the file of all ranks
  bool keeps_tail = false;
  bool has_prefix = false;  // its lines get one, on the console and in the filtered file

  bool operator==(const StreamPlan&) const = default;
};

// Where the last lines of stderr for the failure report come from.
enum class TailSource : unsigned char {
  kNone,         // --stderr-tail=never
  kKept,         // the launcher keeps them (keeps_tail)
  kFile,         // the end of the log file
  kUnavailable,  // stderr is a terminal and no pseudo-terminal can be made: the report says so
};

struct RankStreams {
  StreamPlan out;
  StreamPlan err;
  // One pipe or pseudo-terminal serves both streams, so that lines stay in order; `out` equals `err`.
  bool shared = false;
  TailSource tail = TailSource::kNone;
};

// Plans the streams of one worker by torchrun's contract (--tee implies --redirects; --log-dir=/dev/null switches
// redirects, tee and the ranks filter off; a rank that is not shown is written to its files only; only what is tee'd
// to the console is filtered) and by ours: stderr for the console passes through the launcher, which
// keeps its end.
RankStreams plan_streams(const OutputFlags& flags, const OurStreams& ours);

}  // namespace elastic::output
