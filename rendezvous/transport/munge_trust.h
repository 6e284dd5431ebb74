#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/munge.h"
#include "src/net/side_thread.h"

namespace elastic::transport {

// What this node knows by munge: whether munged answers on this host, our user id, and the job's secret once it is
// known. A thread of its own asks munged, which may never answer.
class MungeTrust {
 public:
  MungeTrust(net::Loop& loop, const MungeSettings& settings, bool hosts);

  // Calls back when it is known whether munged answers on this host: at once if it is known already, and after
  // limits::kMungeSilenceMs at the latest.
  void find_out(std::function<void()> known);
  bool answers() const { return uid_.has_value(); }
  const std::string& why_not() const { return why_not_; }
  // This process's user id as munged sees it. In a container it may differ from getuid(2).
  uid_t uid() const { return *uid_; }

  // Call back in a later turn of the loop, or never. To be called only if munged answers.
  void encode(std::string payload, std::function<void(Result<std::string>)> done);
  void decode(std::string credential, std::function<void(Result<net::munge::Decoded>)> done);

  // The job's secret; not set while it is unknown, empty if the job has none.
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
