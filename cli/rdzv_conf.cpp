#include "cli/rdzv_conf.h"

#include <algorithm>
#include <array>
#include <limits>

#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr std::string_view kRemedy = "write KEY=VALUE,KEY=VALUE, such as join_timeout=600,read_timeout=60";
constexpr std::string_view kRemedyForTcpStore =
    "leave it out, and name one of the nodes with --rdzv-endpoint=HOST:PORT, or write store_type=file, and with "
    "--rdzv-endpoint the path of a file that all nodes share";

enum class KeyType {
  kSeconds,
  kSecondsOrNone,
  kCount,
  kInteger,
  kNodes,
  kFraction,
  kPatience,
  kBoolean,
  kStoreType,
  kAdmitted,
  kScaleUp,
  kSlurmAuth,
  kFailover,
  kOnLeave,
  kEvidence,
  kText
};

struct Key {
  std::string_view name;
  KeyType type;
};

// torchrun's keys come first, then those that only dlrover-run has.
constexpr std::array kKeys = {
    Key{"timeout", KeyType::kSeconds},
    Key{"join_timeout", KeyType::kSeconds},
    Key{"last_call_timeout", KeyType::kSeconds},
    Key{"close_timeout", KeyType::kSeconds},
    Key{"heartbeat_timeout", KeyType::kSeconds},
    Key{"read_timeout", KeyType::kSeconds},
    Key{"keep_alive_interval", KeyType::kCount},
    Key{"keep_alive_max_attempt", KeyType::kCount},
    Key{"cas_backoff_max_seconds", KeyType::kFraction},
    Key{"is_host", KeyType::kBoolean},
    Key{"store_type", KeyType::kStoreType},
    Key{"rank", KeyType::kCount},  // overwritten by --node-rank, as torchrun does
    Key{"lastcall_timeout", KeyType::kSeconds},
    Key{"pend_timeout", KeyType::kPatience},
    Key{"node_unit", KeyType::kNodes},
    // The keys that only elastic-run has.
    Key{"stuck_timeout", KeyType::kSeconds},  // see --stuck-worker
    Key{"loss_timeout", KeyType::kSeconds},
    Key{"rejoin_timeout", KeyType::kSeconds},
    Key{"exit_barrier", KeyType::kSecondsOrNone},
    Key{"replacement_grace", KeyType::kSecondsOrNone},
    Key{"scale_up", KeyType::kScaleUp},
    Key{"node_losses", KeyType::kInteger},
    Key{"loss_window", KeyType::kSeconds},
    Key{"keep_out", KeyType::kSeconds},
    Key{"job_losses", KeyType::kInteger},
    Key{"hang_restarts", KeyType::kCount},
    Key{"store_port", KeyType::kCount},
    Key{"store_admits", KeyType::kAdmitted},
    Key{"coordinator_port", KeyType::kCount},
    Key{"token_file", KeyType::kText},
    Key{"slurm_auth", KeyType::kSlurmAuth},
    Key{"failover", KeyType::kFailover},
    Key{"failover_evidence", KeyType::kEvidence},
    Key{"on_leave", KeyType::kOnLeave},
    Key{"munge_socket", KeyType::kText},
};

// Keys that torchrun sets from its flags; naming one is an error there too.
struct Reserved {
  std::string_view name;
  std::string_view flag;
};
constexpr std::array kReserved = {
    Reserved{"backend", "--rdzv-backend"}, Reserved{"endpoint", "--rdzv-endpoint"},
    Reserved{"run_id", "--rdzv-id"},       Reserved{"min_nodes", "--nnodes"},
    Reserved{"max_nodes", "--nnodes"},     Reserved{"local_addr", "--local-addr"},
};

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = lower(text);
  for (const std::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "f", "no", "n"}) {
    if (word == no) return false;
  }
  return {};
}

// A number that may be infinite, in the words of Python's float().
std::optional<double> parse_number(std::string_view text) {
  std::string word = lower(trim(text));
  if (word.starts_with('+')) word.erase(0, 1);
  if (word == "inf" || word == "infinity") return std::numeric_limits<double>::infinity();
  return parse_float(text);
}

bool is_whole_number(std::string_view value, std::int64_t least, std::int64_t most) {
  const auto number = parse_int(value);
  return number && *number >= least && *number <= most;
}

// What a value of this type should be; empty where the value is right.
std::string_view complaint(KeyType type, const std::string& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  switch (type) {
    case KeyType::kSeconds:
      if (is_whole_number(value, 1, limits::kMaxTimeoutSeconds)) return {};
      return "whole seconds, from 1 to 315360000 (10 years)";
    case KeyType::kSecondsOrNone:
      if (is_whole_number(value, 0, limits::kMaxTimeoutSeconds)) return {};
      return "whole seconds, from 0 to 315360000 (10 years)";
    case KeyType::kInteger: return is_whole_number(value, -kMost, kMost) ? "" : "a whole number";
    case KeyType::kScaleUp: return parse_scale_up(value) ? "" : "now, after=SECONDS, on-restart or never";
    case KeyType::kSlurmAuth: return value == "auto" || value == "munge" || value == "off" ? "" : "auto, munge or off";
    case KeyType::kEvidence: return value == "refusal" || value == "none" ? "" : "refusal or none";
    case KeyType::kOnLeave:
      return value == "handover" || value == "end" || value == "wait" ? "" : "handover, end or wait";
    case KeyType::kFailover: return value == "off" || value == "majority" ? "" : "off or majority";
    case KeyType::kText: return {};
    case KeyType::kCount: return is_whole_number(value, 0, kMost) ? "" : "a whole number from 0 on";
    case KeyType::kNodes: return is_whole_number(value, 1, kMost) ? "" : "a whole number from 1 on";
    case KeyType::kFraction: {
      const auto number = parse_float(value);
      return number && *number >= 0 ? "" : "a number of seconds from 0 on";
    }
    case KeyType::kPatience: {
      const auto number = parse_number(value);
      return number && *number > 0 ? "" : "a number of seconds above 0, or inf";
    }
    case KeyType::kBoolean: return parse_boolean(value) ? "" : "true or false";
    case KeyType::kAdmitted: return value == "nodes" || value == "all" ? "" : "nodes or all";
    case KeyType::kStoreType: return value == "tcp" || value == "file" ? "" : "tcp or file";
  }
  return {};
}

// torchrun's own documentation shows the whole text in quotes within quotes.
std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"')) {
    return trim(text.substr(1, text.size() - 2));
  }
  return text;
}

Status check_entry(RdzvConf& conf, const std::string& key, const std::string& value, std::string_view input) {
  for (const Reserved& reserved : kReserved) {
    if (key != reserved.name) continue;
    return fail(std::string(input), format("{} cannot be set here", key), format("use {}", reserved.flag));
  }
  const auto known = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& each) { return each.name == key; });
  if (known == kKeys.end()) {
    conf.unknown_keys.push_back(key);
    return {};
  }
  const std::string_view expected = complaint(known->type, value);
  if (expected.empty()) return {};
  const bool is_key_of_a_store = known->type == KeyType::kStoreType && value == "tcpstore";
  return fail(std::string(input), format("{} must be {}, not '{}'", key, expected, printable(value)),
              std::string(is_key_of_a_store ? kRemedyForTcpStore : kRemedy));
}

}  // namespace

std::optional<ScaleUpWish> parse_scale_up(std::string_view text) {
  using ScaleUp = protocol::JobRules::ScaleUp;
  if (text == "now") return ScaleUpWish{ScaleUp::kNow, {}};
  if (text == "on-restart") return ScaleUpWish{ScaleUp::kOnRestart, {}};
  if (text == "never") return ScaleUpWish{ScaleUp::kNever, {}};
  if (text == "after") return ScaleUpWish{};
  constexpr std::string_view kAfter = "after=";
  if (!text.starts_with(kAfter)) return {};
  const auto seconds = parse_float(text.substr(kAfter.size()));
  if (!seconds || !(*seconds >= 0) || *seconds > static_cast<double>(limits::kMaxTimeoutSeconds)) return {};
  return ScaleUpWish{ScaleUp::kAfter, static_cast<std::int64_t>(*seconds * 1000)};
}

Result<RdzvConf> check_rdzv_conf(std::string_view value, std::string_view input) {
  RdzvConf conf;
  const std::string_view text = without_quotes(trim(value));
  if (text.empty()) return conf;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key(trim(part.substr(0, equals)));
    const std::string item(equals == std::string::npos ? "" : trim(std::string_view(part).substr(equals + 1)));
    if (key.empty()) {
      return fail(std::string(input), format("'{}' names no key", printable(part)), std::string(kRemedy));
    }
    if (item.empty()) {
      return fail(std::string(input), format("{} has no value", printable(key)), std::string(kRemedy));
    }
    if (Status status = check_entry(conf, key, item, input); !status) {
      return std::unexpected(std::move(status.error()));
    }
    std::erase_if(conf.entries, [&](const auto& entry) { return entry.first == key; });
    conf.entries.emplace_back(key, item);
  }
  return conf;
}

const std::string* RdzvConf::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> RdzvConf::integer(std::string_view key) const {
  const std::string* value = find(key);
  return value ? parse_int(*value) : std::nullopt;
}

std::optional<double> RdzvConf::number(std::string_view key) const {
  const std::string* value = find(key);
  return value ? parse_number(*value) : std::nullopt;
}

std::optional<bool> RdzvConf::boolean(std::string_view key) const {
  const std::string* value = find(key);
  return value ? parse_boolean(*value) : std::nullopt;
}

}  // namespace elastic::cli
