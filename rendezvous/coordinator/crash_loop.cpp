#include "rendezvous/coordinator/crash_loop.h"

#include "src/base/text.h"

namespace elastic::coordinator {
namespace {

const char* name_of(protocol::Crash::Kind kind) {
  switch (kind) {
    case protocol::Crash::Kind::kImport: return "import error";
    case protocol::Crash::Kind::kSyntax: return "syntax error";
    case protocol::Crash::Kind::kMissingFile: return "missing-file error";
  }
  return "error";
}

}  // namespace

std::optional<int> CrashLoop::failed(const std::optional<protocol::Crash>& crash, int attempt) {
  std::optional<int> before;
  if (crash && last_ && last_->crash == *crash) before = last_->number;
  last_.reset();
  if (crash) last_ = Attempt{attempt, *crash};
  return before;
}

std::string text_of_crash_loop(protocol::Crash::Kind kind, int first, int second) {
  return format(
      "the failure is deterministic: attempts {} and {} failed with the same {}, so the job is not restarted "
      "(--crash-loop=restart restarts it anyway)",
      first, second, name_of(kind));
}

}  // namespace elastic::coordinator
