#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/base/result.h"

namespace elastic::cli {

// The value of --rdzv-conf, "KEY=VALUE,KEY=VALUE". The value of each known key is of that key's type.
class RdzvConf {
 public:
  std::vector<std::pair<std::string, std::string>>
      entries;                            // in the order given; a key stands once, its last value counts
  std::vector<std::string> unknown_keys;  // they are ignored, as torchrun ignores them

  // The value of a key; null if it is not given.
  const std::string* find(std::string_view key) const;
  // The value of a known key of that type; nothing if the key is not given.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // may be infinite (pend_timeout)
  std::optional<bool> boolean(std::string_view key) const;
};

// Reads the value with the syntax of PyTorch's _parse_rendezvous_config. `input` is the value as the user knows it, for
// the message. Fails on a pair without a key or a value, on a key that a flag sets (min_nodes: --nnodes), and on a
// value that is not of its key's type.
Result<RdzvConf> check_rdzv_conf(std::string_view value, std::string_view input);

// The value of the key scale_up.
struct ScaleUpWish {
  protocol::JobRules::ScaleUp mode = protocol::JobRules::ScaleUp::kAfter;
  std::optional<std::int64_t> after_ms;  // of kAfter, where a time is given
};
// Reads "now", "after", "after=SECONDS", "on-restart" and "never"; nothing for any other text.
std::optional<ScaleUpWish> parse_scale_up(std::string_view text);

}  // namespace elastic::cli
