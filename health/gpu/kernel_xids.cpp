#include "health/gpu/kernel_xids.h"

#include "src/process/evidence.h"

namespace elastic::health {
namespace {

constexpr int kCalls = 256;                       // of read_new(): 16,384 events at most
constexpr std::size_t kMostBytes = 1024 * 1024;  // of either part; of more the older half goes

void add_line(std::string& log, const std::string& line) {
  log += line + "\n";
  if (log.size() > kMostBytes) log.erase(0, log.find('\n', kMostBytes / 2) + 1);
}

}  // namespace

XidLog read_xids(const std::string& root, std::int64_t began_us) {
  XidLog found;
  auto log = process::KernelLog::open(root, process::KernelLog::From::kOldest);
  for (int i = 0; log && i < kCalls && !log->is_at_end(); ++i) {
    for (const process::KernelEvent& event : log->read_new()) {
      if (event.kind != process::KernelEvent::Kind::kXid) continue;
      add_line(event.time_us < began_us ? found.earlier : found.recent, event.text);
    }
  }
  return found;
}

}  // namespace elastic::health
