#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace elastic::coordinator {

// How many losses of nodes a job bears. Times are milliseconds.
struct LossRules {
  int per_node = 3;  // within the window: keep the node out; 0 or less: no number does
  std::int64_t window_ms = 600'000;
  std::int64_t keep_out_ms = 300'000;  // the first time; twice as long each further time
  int per_job = 0;                     // more than so many end the job; 0 or less: no number does
};

// The rules with per_job 0 replaced by its default, ten times the most nodes of a round.
LossRules with_default_bound(LossRules rules, int max_nodes);

// Counts the nodes that a job loses, so that nothing can flap for ever: a node that is lost too often is kept out
// for a while, and a job that loses too many ends. Nodes are known by the name of their host, so that a
// replacement on another is a node of its own. Times are milliseconds of one clock that does not jump.
class LossBudget {
 public:
  explicit LossBudget(LossRules rules);

  // The node was lost. Returns until when it is kept out, if it is now.
  std::optional<std::int64_t> lose(const std::string& node, std::int64_t now_ms);

  // A node was lost whose name is not known: lose() in two steps, the second when it is known.
  void lose_unknown();
  std::optional<std::int64_t> blame(const std::string& node, std::int64_t now_ms);

  // Until when the node is kept out, if it is at this time.
  std::optional<std::int64_t> kept_out_until(const std::string& node, std::int64_t now_ms) const;

  // Hosts that are kept out at this time.
  std::size_t kept_out(std::int64_t now_ms) const;

  // More nodes have been lost than the job may lose.
  bool spent() const { return rules_.per_job > 0 && losses_ > rules_.per_job; }

  // Of all nodes, since the job began.
  int losses() const { return losses_; }
  // As agents have reported them to a coordinator that has lost its memory.
  void set_losses(int losses) { losses_ = losses; }

  // Names that are remembered now: limits::kLossNodes at most.
  std::size_t remembered() const { return nodes_.size(); }

 private:
  struct Node {
    std::vector<std::int64_t> lost_ms;  // within the window, since it was last kept out
    std::int64_t keep_out_ms = 0;       // how long it was kept out the last time
    std::int64_t until_ms = 0;          // when that ends
    std::int64_t last_ms = 0;           // when it was last lost
  };
  bool is_of_no_account(const Node& node, std::int64_t now_ms) const;
  void make_room(std::int64_t now_ms);

  LossRules rules_;
  int losses_ = 0;
  std::map<std::string, Node> nodes_;
};

}  // namespace elastic::coordinator
