#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// When a node has an import server, and whether its next round may start warm (docs/warm-workers.md): workers forked
// from interpreters that have imported already. Decides only; times are milliseconds of any one clock.
namespace elastic::warm {

enum class Mode : std::uint8_t { kOff, kAuto, kOn };

struct WarmSettings {
  Mode mode = Mode::kOff;
  // How long a round must have run before its workers are copied. A warm round that ends sooner makes the node cold.
  std::int64_t after_ms = 30'000;
  std::string never = {};   // why the workers of this command line cannot be warm; empty: they can
  std::string wanted = {};  // modules that the user wants preloaded, with commas between
};

class WarmRules {
 public:
  explicit WarmRules(WarmSettings settings) : settings_(std::move(settings)) {}

  // Workers have been started. `restarts_left`: of the job.
  void round_began(bool is_warm, int restarts_left, std::int64_t now_ms);
  // None of them is left. `has_failed`: a worker of this node has failed by itself.
  void round_ended(bool has_failed, std::int64_t now_ms);

  enum class Step : std::uint8_t { kNothing, kStartServer, kPark };
  // What is to be done now; it counts as done. When to ask again is next_ms().
  Step next_step(std::int64_t now_ms);
  std::optional<std::int64_t> next_ms() const;

  // The server can fork workers; it says so once. It has ended, or must not be used: `for_good` for a reason that
  // another one would have, too.
  void server_is_ready() { server_ = Server::kReady; }
  void server_has_gone(const std::string& why, bool for_good);
  // Workers wait no more, since they were used, or have ended.
  void workers_have_gone() { are_parked_ = false; }

  // Why a round cannot start warm; empty: it can. `parked`, `wanted`: how many workers wait, and have ranks.
  std::string why_cold(int parked, int wanted) const;
  // What becomes of the next round's workers, as far as is known now.
  struct Outlook {
    enum class State : std::uint8_t { kOff, kPreparing, kReady, kCold };
    State state = State::kOff;
    std::string why = {};  // kPreparing and kCold: what they lack, as a clause
  };
  Outlook outlook(int parked, int wanted) const;
  // That is to be told the user: where he has asked for warm workers, and each reason once. Not told while everything
  // takes its course.
  bool is_to_tell(const std::string& why);
  // The environment is not as the server found it, or the modules are not; the server is of no use any more.
  void must_begin_again();

  // Workers may ever be warm.
  bool may_be_warm() const { return settings_.mode != Mode::kOff && cold_.empty() && settings_.never.empty(); }
  const WarmSettings& settings() const { return settings_; }

 private:
  enum class Server : std::uint8_t { kNone, kStarting, kReady };

  // A server that is killed is started again, but not for ever.
  static constexpr int kMostServers = 5;
  // A round's first seconds belong to its workers.
  static constexpr std::int64_t kParkAfterMs = 10'000;

  WarmSettings settings_;
  std::string cold_;  // why the job stays cold; empty: it does not
  std::string told_;
  Server server_ = Server::kNone;
  int servers_ = 0;
  bool are_parked_ = false;
  std::string server_went_;  // why the last one did
  int rounds_ = 0;
  bool is_warm_ = false;                  // the present round
  std::optional<std::int64_t> began_ms_;  // the present round; nothing: there is none
  bool may_restart_ = false;
};

// How this launch's workers can be warm, and how they are started (docs/warm-workers.md).
struct WarmLaunch {
  WarmSettings rules;
  std::vector<std::string> options = {};  // the workers' command line up to the script: the Python and its options
  bool is_module = false;                 // python -m
  std::string target = {};                // script or module
};

}  // namespace elastic::warm
