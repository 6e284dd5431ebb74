#include "cli/help.h"

#include "cli/flag_table.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr std::string_view kOurs = "elastic-run";
constexpr std::size_t kWidth = 79;
constexpr std::size_t kTextColumn = 31;

constexpr std::string_view kHead =
    R"(Usage: elastic-run [OPTION]... SCRIPT [ARGUMENT]...
       elastic-run [OPTION]... -m MODULE [ARGUMENT]...

Starts the workers of a PyTorch training job, watches them, and restarts them
when one fails. Takes the command lines of torchrun and dlrover-run as they are.
@IN_PLACE@
Put options before SCRIPT; everything after it goes to the script unchanged.
An option may be shortened to any unambiguous beginning, and _ may stand for -
in its name. Nearly every option has a variable: PET_NNODES=2 is --nnodes=2.
)";

constexpr std::string_view kTail = R"(
Examples
  elastic-run --standalone --nproc-per-node=gpu train.py --epochs 10
  elastic-run --nproc-per-node=4 --max-restarts=3 -m package.train
  elastic-run --no-python --nproc-per-node=2 ./worker --verbose
  elastic-run --dry-run --nproc-per-node=8 train.py

Exit status
  0  the job succeeded
  1  the job failed
  2  the command line or a PET_ variable is wrong; nothing was started
  93 the job failed, and would fail again

More: man @OURS@, and docs/command-line.md in the source.
)";

// Whether elastic-run was started by the name of another launcher.
bool in_place() { return program_name() != kOurs; }

std::string left_column(const Flag& flag) {
  std::string left = flag.letter == 0 ? "      " : format("  -{}, ", flag.letter);
  left += long_spelling(flag);
  if (flag.kind == FlagKind::kOptionalChoice) return left + format("[={}]", flag.words);
  return takes_value(flag) ? left + format("={}", flag.metavar) : left;
}

std::string right_column(const Flag& flag) {
  std::string right(flag.help);
  const bool tells_default =
      takes_value(flag) && flag.state != FlagState::kAccepted && flag.by_default && !flag.by_default->empty();
  return tells_default ? right + format(" [{}]", *flag.by_default) : right;
}

std::string entry(const Flag& flag) {
  std::string left = left_column(flag);
  const std::string margin(kTextColumn, ' ');
  if (left.size() + 2 > kTextColumn) {
    left += "\n" + margin;
  } else {
    left.resize(kTextColumn, ' ');
  }
  const std::string right = wrap(right_column(flag), kWidth - kTextColumn, 0);
  return left + replace_all(right, "\n", "\n" + margin) + "\n";
}

}  // namespace

std::string help_text() {
  std::string text(kHead);
  const Flag* before = nullptr;
  for (const Flag& flag : flag_table()) {
    if (before == nullptr || before->group != flag.group) {
      text += format("\n{}\n", group_title(flag.group));
    }
    text += entry(flag);
    before = &flag;
  }
  text = in_our_name(text + std::string(kTail));
  // The manual page and the program itself keep their own name.
  text = replace_all(std::move(text), "@OURS@", kOurs);
  return replace_all(
      std::move(text), "@IN_PLACE@",
      in_place() ? format("Started as {}, this is {} {}.\n", program_name(), kOurs, ELASTIC_RUN_VERSION) : "");
}

std::string version_text() {
  const std::string version = format("{} {}", kOurs, ELASTIC_RUN_VERSION);
  return in_place() ? format("{} ({})\n", program_name(), version) : version + "\n";
}

}  // namespace elastic::cli
