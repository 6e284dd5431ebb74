#include "cli/help.h"

#include "cli/flag_prose.h"
#include "cli/flag_table.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// The day on which the page was last edited. The day of the build would make each build's bytes differ.
constexpr std::string_view kDate = "2026-11-23";

constexpr std::string_view kHead = R"(.SH NAME
elastic\-run \- start, watch and restart the workers of a distributed training
job
.SH SYNOPSIS
.B elastic\-run
.RI [ option ]...
.I script
.RI [ argument ]...
.br
.B elastic\-run
.RI [ option ]...
.B \-m
.I module
.RI [ argument ]...
.SH DESCRIPTION
.B elastic\-run
starts the worker processes of a PyTorch training job on this node, watches
them, and restarts all of them when one fails.
Environment variables tell each worker its rank and where to meet the others.
It is one static program that needs no Python itself, and it takes the command
lines of
.BR torchrun (1)
and
.BR dlrover\-run (1)
as they are.
.PP
Each worker runs
.I script
with the Python interpreter of the environment that it is installed in, or that
is active (see
.BR PYTHON_EXEC
below), with
.B \-m
a Python module, or with
.B \-\-no\-python
the program
.I script
itself.
.PP
Options stand before the script.
Everything after it goes to the script unchanged, even what looks like an
option of
.BR elastic\-run .
An option may be written
.BI \-\-option= value
or
.B \-\-option
.IR value ,
with underscores in place of the dashes in its name, and shortened to any
beginning that fits only one option.
A beginning is looked up among torchrun's options first, then among those of
dlrover\-run, then among those that only
.B elastic\-run
has.
A value that begins with a dash must be written with the equals sign, unless it
is a negative number.
A first
.B \-\-
ends the options.
If an option is given twice, the last one counts.
.PP
A wrong command line starts nothing: it ends with status 2 and a message that
names what was given, why
it is wrong, and what to write instead.
.SH OPTIONS
The value in brackets is the default.
)";

constexpr std::string_view kTail = R"(.SH ENVIRONMENT
.SS Defaults of options
Most options can be set by a variable whose name is
.B PET_
and the name of the option in capitals with underscores:
.B PET_NPROC_PER_NODE=4
stands for
.BR \-\-nproc\-per\-node=4 ,
.B PET_STANDALONE=1
for
.BR \-\-standalone .
The command line takes precedence over the variable.
A switch is off where the variable is 0 and on where it is another number.
There is no variable for
@WITHOUT_VARIABLE@.
.SS Read by elastic-run itself
.TP
.B PYTHON_EXEC
The Python interpreter of the workers, or a command that starts one, such as
.BR "apptainer exec image python" .
Without it, workers get the interpreter of the virtual or conda environment
whose
.I bin
holds
.BR elastic\-run ,
or else
.B python3
or
.B python
on
.BR PATH .
A
.B VIRTUAL_ENV
or
.B CONDA_PREFIX
whose
.I bin
is not the first of these on
.B PATH
is ignored with a warning.
.TP
.B TORCH_ELASTIC_SHUTDOWN_TIMEOUT
The default of
.BR \-\-shutdown\-timeout .
.TP
.BR CUDA_VISIBLE_DEVICES ", " ROCR_VISIBLE_DEVICES ", " HIP_VISIBLE_DEVICES ", " ZE_AFFINITY_MASK
Which GPUs
.B \-\-nproc\-per\-node=gpu
and
.B xpu
count.
.TP
.B HCCL_IF_BASE_PORT
Takes the place of
.BR \-\-training\-port .
.TP
.B NODE_NUM
The number of nodes for
.BR \-\-auto\-config .
.TP
.BR NODE_RANK ", " WORKER_RANK
The rank that this node claims.
.TP
.B POD_IP
The default of
.BR \-\-local\-addr .
.TP
.B HOST_PORTS
Ports for the workers' store, separated by commas.
.TP
.B OMP_NUM_THREADS
Workers inherit it.
Where it is not set and the node has more than one worker, workers get 1, and a
warning says so.
.TP
.B LOGLEVEL
The default of
.BR \-\-log\-level :
DEBUG, INFO, WARNING, ERROR or CRITICAL.
Any other word causes a warning.
.TP
.B TERM
Where it is
.I dumb
or empty, no status line is drawn.
.TP
.B TMPDIR
Where the log directory is made if
.B \-\-log\-dir
is not given.
.SS Set for the workers
.BR RANK ,
.BR LOCAL_RANK ,
.BR WORLD_SIZE ,
.BR LOCAL_WORLD_SIZE ,
.BR GROUP_RANK ,
.BR GROUP_WORLD_SIZE ,
.BR ROLE_RANK ,
.BR ROLE_WORLD_SIZE ,
.BR ROLE_NAME ,
.BR MASTER_ADDR ,
.BR MASTER_PORT ,
.BR TORCHELASTIC_RESTART_COUNT ,
.BR TORCHELASTIC_MAX_RESTARTS ,
.BR TORCHELASTIC_RUN_ID ,
.BR TORCHELASTIC_USE_AGENT_STORE ,
.BR TORCHELASTIC_ERROR_FILE ,
.B TORCH_NCCL_ASYNC_ERROR_HANDLING
and
.BR TORCHELASTIC_SIGNALS_TO_HANDLE ,
with torchrun's meaning.
All other variables are inherited.
.SH FILES
.TP
.IR DIR / ID _xxxxxxxx/attempt_ N / LOCAL_RANK /
The files of one worker:
.I DIR
is the value of
.BR \-\-log\-dir ,
.I ID
that of
.BR \-\-rdzv\-id ,
.I N
the number of restarts before.
.I error.json
in it is written by a worker whose main function bears PyTorch's
.I record
and fails.
.SH EXIT STATUS
.TP
.B 0
All workers succeeded, or what was asked for in place of a job was done.
.TP
.B 1
The job failed: a worker failed and no restart was left, or a signal ended the
job.
.TP
.B 2
The command line, or a variable that stands for an option, is wrong.
Nothing was started.
.TP
.B 93
The job failed, and would fail again: see
.BR \-\-crash\-loop .
.SH EXAMPLES
Train with one worker on each GPU of this node:
.PP
.RS
.EX
elastic\-run \-\-standalone \-\-nproc\-per\-node=gpu train.py \-\-epochs 10
.EE
.RE
.PP
Four workers, and up to three restarts of all when one of them fails:
.PP
.RS
.EX
elastic\-run \-\-nproc\-per\-node=4 \-\-max\-restarts=3 \-m package.train
.EE
.RE
.PP
Workers that are not Python programs:
.PP
.RS
.EX
elastic\-run \-\-no\-python \-\-nproc\-per\-node=2 ./worker \-\-verbose
.EE
.RE
.PP
Print what would be started, with every value and where it came from:
.PP
.RS
.EX
elastic\-run \-\-dry\-run \-\-nproc\-per\-node=8 train.py
.EE
.RE
.PP
Complete the options in bash:
.PP
.RS
.EX
source <(elastic\-run \-\-print\-completion bash)
.EE
.RE
.SH SEE ALSO
.BR python3 (1),
.BR signal (7)
.PP
The directory
.I docs
of the source:
.IR command\-line.md ,
.IR launcher\-log.md ,
.I guarantees.md
and
.IR limits.md .
)";

// Escapes a paragraph: dashes can be copied and typed, and no line begins with a control character.
std::string roff(std::string_view text) {
  std::string out = replace_all(std::string(text), "\\", "\\e");
  out = replace_all(out, "-", "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string entry(const Flag& flag) {
  std::string text = ".TP\n";
  if (flag.letter != 0) {
    text += bold(format("-{}", flag.letter));
    if (takes_value(flag)) text += " " + italic(flag.metavar);
    text += ", ";
  }
  text += bold(long_spelling(flag));
  if (takes_value(flag)) text += bold("=") + italic(flag.metavar);
  if (flag.kind == FlagKind::kOptionalChoice) text += "[" + bold("=") + italic(flag.words) + "]";
  const std::string by_default = shown_default(flag);
  if (takes_value(flag) && !by_default.empty()) text += " [" + roff(by_default) + "]";
  text += "\n";
  // With each sentence on a line of its own the formatter sets the space between them.
  const std::string sentences = join(sentences_about(flag), " ");
  for (const std::string& line : split(replace_all(sentences, ". ", ".\n"), '\n')) {
    text += wrap(roff(line), 79, 0) + "\n";
  }
  return text;
}

std::string options() {
  std::string text;
  const Flag* before = nullptr;
  for (const Flag& flag : flag_table()) {
    if (before == nullptr || before->group != flag.group) {
      text += format(".SS {}\n", roff(group_title(flag.group)));
    }
    text += entry(flag);
    before = &flag;
  }
  return text;
}

// The flags without a variable: "\fB--a\fR, \fB--b\fR and \fB--c\fR".
std::string flags_without_variable() {
  std::vector<std::string> names;
  for (const Flag& flag : flag_table()) {
    if (!flag.has_variable) names.push_back(bold(long_spelling(flag)));
  }
  const std::string last = names.back();
  names.pop_back();
  return join(names, ",\n") + "\nand " + last;
}

}  // namespace

std::string man_page() {
  const std::string title =
      format(".TH ELASTIC\\-RUN 1 \"{}\" \"elastic\\-run {}\" \"User Commands\"\n", kDate, ELASTIC_RUN_VERSION);
  return ".\\\" Made by scripts/generate-docs from the table of flags. Do not edit.\n" + title + std::string(kHead) +
         options() + replace_all(std::string(kTail), "@WITHOUT_VARIABLE@", flags_without_variable());
}

}  // namespace elastic::cli
