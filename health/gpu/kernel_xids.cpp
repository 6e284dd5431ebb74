#include "health/gpu/kernel_xids.h"

#include <utility>

namespace elastic::health {
namespace {

// | what the check reads of the kernel log; Xids of GPUs, before the job and since | {kCalls} times 10,000 records,
// 16,384 events; {kMostBytes} each | the newest are not read; of more the older half is dropped |
constexpr int kCalls = 256;                      // of KernelLog::read_new(), which makes 16,384 events at most
constexpr std::size_t kMostBytes = 1024 * 1024;  // of each part; if a part becomes longer, its older half is dropped

void add_line(std::string& log, const std::string& line) {
  log += line + "\n";
  if (log.size() > kMostBytes) log.erase(0, log.find('\n', kMostBytes / 2) + 1);
}

}  // namespace

XidLog KernelXids::read_new() {
  XidLog found;
  if (!std::exchange(was_opened_, true)) {
    auto opened = process::KernelLog::open(root_, process::KernelLog::From::kOldest);
    if (opened) log_ = std::move(*opened);
  }
  for (int i = 0; log_ && i < kCalls; ++i) {
    for (const process::KernelEvent& event : log_->read_new()) {
      if (event.kind != process::KernelEvent::Kind::kXid) continue;
      add_line(event.time_us < began_us_ ? found.earlier : found.recent, event.text);
    }
    if (log_->is_at_end()) break;
  }
  return found;
}

}  // namespace elastic::health
