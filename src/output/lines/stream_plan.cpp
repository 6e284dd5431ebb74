#include "src/output/lines/stream_plan.h"

namespace elastic::output {
namespace {

using Kind = StreamPlan::Kind;

// Plans a stream that goes to its log file, and with --tee to the console.
StreamPlan plan_logged(bool on_console, bool filtered, bool rotated, bool tail) {
  const bool shown = on_console || filtered;
  // Only the file gets this stream: the worker writes it itself, at the speed of the disk.
  if (!shown && !rotated) return {.kind = Kind::kFile};
  return {.kind = Kind::kPipe,
          .to_console = on_console,
          .to_file = true,
          .to_filtered = filtered,
          .keeps_tail = tail,
          .has_prefix = shown};
}

// Plans stderr where it is not logged.
StreamPlan plan_stderr(bool on_console, bool tail, const OurStreams& ours) {
  const bool terminal = on_console && ours.err == OurStreams::Kind::kTerminal;
  if (!tail || (terminal && !ours.can_make_terminals)) {
    return {.kind = on_console ? Kind::kInherit : Kind::kNull};
  }
  // The end of stderr tells why the worker failed, also where the console does not show it.
  return {.kind = terminal ? Kind::kPty : Kind::kPipe, .to_console = on_console, .keeps_tail = true};
}

TailSource tail_source(const StreamPlan& err, bool wanted) {
  if (!wanted) return TailSource::kNone;
  if (err.keeps_tail) return TailSource::kKept;
  return err.kind == Kind::kFile ? TailSource::kFile : TailSource::kUnavailable;
}

}  // namespace

RankStreams plan_streams(const OutputFlags& flags, const OurStreams& ours) {
  const unsigned logged = flags.log_dir ? flags.redirects | flags.tee : 0;
  const bool shown = flags.shown || !flags.log_dir;
  const bool out_on_console = shown && ours.out != OurStreams::Kind::kClosed;
  const bool err_on_console = shown && ours.err != OurStreams::Kind::kClosed;

  RankStreams plan;
  if (logged & kStdoutBit) {
    const bool tee = (flags.tee & kStdoutBit) != 0;
    plan.out = plan_logged(tee && out_on_console, tee && shown && flags.filters_stdout, flags.rotated, false);
  } else {
    plan.out = {.kind = out_on_console ? Kind::kInherit : Kind::kNull};
  }
  if (logged & kStderrBit) {
    const bool tee = (flags.tee & kStderrBit) != 0;
    plan.err =
        plan_logged(tee && err_on_console, tee && shown && flags.filters_stderr, flags.rotated, flags.stderr_tail);
  } else {
    plan.err = plan_stderr(err_on_console, flags.stderr_tail, ours);
    // Where both streams go to the same place, their lines must stay in the order in which they were written.
    plan.shared = ours.same && plan.out.kind == Kind::kInherit && plan.err.to_console;
    if (plan.shared) plan.out = plan.err;
  }
  plan.tail = tail_source(plan.err, flags.stderr_tail);
  return plan;
}

}  // namespace elastic::output
