#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/transport/meeting_settings.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/munge.h"
#include "src/net/side_thread.h"

namespace elastic::transport {

// What this node knows by munge: whether munged answers here, who we are to it, and the job's secret once it is known.
// munged may never answer: it is asked by a thread of its own.
class MungeTrust {
 public:
  MungeTrust(net::Loop& loop, const MungeSettings& settings, bool hosts);

  // Calls back when it is known whether munged answers here, at once if it is: limits::kMungeSilenceMs at the latest.
  void find_out(std::function<void()> known);
  bool answers() const { return uid_.has_value(); }
  const std::string& why_not() const { return why_not_; }
  // As munged sees it, which in a container may be another than we see.
  uid_t uid() const { return *uid_; }

  // In a later turn of the loop, perhaps never; only where munged answers.
  void encode(std::string payload, std::function<void(Result<std::string>)> done);
  void decode(std::string credential, std::function<void(Result<net::munge::Decoded>)> done);

  // The job's: none while it is not known; empty: the job has none.
  const std::optional<std::string>& secret() const { return secret_; }
  void settle(std::string secret) { secret_ = std::move(secret); }
  const MungeSettings& settings() const { return settings_; }

 private:
  void found(Result<uid_t> uid);

  const MungeSettings& settings_;
  bool hosts_;
  bool asked_ = false;
  bool known_ = false;
  std::optional<uid_t> uid_;
  std::string why_not_;
  std::optional<std::string> secret_;
  std::vector<std::function<void()>> waiting_;
  net::Timer silence_;
  net::SideThread thread_;
  net::ReadWatch done_watch_;
};

}  // namespace elastic::transport
