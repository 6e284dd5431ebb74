#include "cli/run/recording_file.h"

#include "cli/run/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::run {

RecordingFile::RecordingFile(const std::string& path)
    : path_(path), file_(path, {.waiting_bytes = limits::kRecordingWaitingBytes}) {}

Result<std::unique_ptr<RecordingFile>> RecordingFile::open(const std::string& path) {
  std::unique_ptr<RecordingFile> made(new RecordingFile(path));
  switch (made->file_.open()) {
    case output::SideFile::Opened::kOpen: break;
    case output::SideFile::Opened::kHangs: made->give_up("it does not answer"); break;
    case output::SideFile::Opened::kFailed:
      return fail_errno(format("--record={}", printable(path)), made->file_.error(), "name a file that can be written");
  }
  return made;
}

void RecordingFile::give_up(const std::string& reason) {
  if (given_up_) return;
  given_up_ = true;
  log::warning("no_recording", format("--record={}: {}; going on without the recording", printable(path_), reason));
}

void RecordingFile::append(std::string_view lines) {
  if (given_up_) return;
  if (const int error = file_.error(); error != 0) return give_up(errno_text(error));
  if (!file_.append(lines)) {
    give_up(format("it is too slow, {} bytes wait to be written", limits::kRecordingWaitingBytes));
  }
}

bool RecordingFile::finish() {
  if (given_up_) return !file_.hangs();
  if (!file_.finish()) {
    give_up("it does not answer");
    return false;
  }
  if (file_.error() != 0) give_up(errno_text(file_.error()));
  return true;
}

}  // namespace elastic::run
