#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace elastic::coordinator {

// How many lost nodes a job tolerates. Times are milliseconds.
struct LossRules {
  int per_node = 3;  // so many losses within the window quarantine the node; 0 or less: never
  std::int64_t window_ms = 600'000;
  std::int64_t quarantine_ms = 300'000;  // the first time; twice as long each further time
  int per_job = 0;                       // more losses than so many end the job; 0 or less: no limit
};

// The rules, with a per_job of 0 replaced by its default: ten times `max_nodes`.
LossRules with_default_bound(LossRules rules, int max_nodes);

// Counts the nodes that a job loses, so that a flapping node cannot restart it endlessly: a node that is lost too often
// is quarantined, and a job that loses too many nodes ends. Nodes are identified by the name of their host, so that a
// replacement on another host is a node of its own. Times are milliseconds of one clock that does not jump.
class LossBudget {
 public:
  explicit LossBudget(LossRules rules);

  // The job has lost a node. charge() is called as soon as its host is known.
  void count_loss();
  // A node of this host was lost. Returns until when the host is quarantined; empty if it is not.
  std::optional<std::int64_t> charge(const std::string& node, std::int64_t now_ms);

  // Until when the host is quarantined; empty if it is not at this time.
  std::optional<std::int64_t> quarantined_until(const std::string& node, std::int64_t now_ms) const;

  // How many hosts are quarantined at this time.
  std::size_t quarantined(std::int64_t now_ms) const;

  // The job has lost more nodes than per_job allows.
  bool spent() const { return rules_.per_job > 0 && losses_ > rules_.per_job; }

  // How many nodes the job has lost since it began.
  int losses() const { return losses_; }
  // Sets the losses that agents report to a coordinator that takes the job over.
  void set_losses(int losses) { losses_ = losses; }

  // What is known of a host that has lost nodes, for a coordinator that takes the job over.
  struct Record {
    std::string node;
    int losses = 0;                  // within the window, and since its last quarantine
    std::int64_t last_ms = 0;        // when it was last lost
    std::int64_t quarantine_ms = 0;  // how long its last quarantine was
    std::int64_t until_ms = 0;       // when that ends; 0: it had none
  };
  // At most `most` hosts: first those that are quarantined the longest, then those that were lost last.
  std::vector<Record> records(std::size_t most, std::int64_t now_ms) const;
  // Takes over a record of another budget. All its losses count as if they had been at last_ms. Times that make no
  // sense are brought within the bounds of the rules.
  void restore(const Record& record, std::int64_t now_ms);

 private:
  struct Node {
    std::vector<std::int64_t> lost_ms;  // its losses within the window, since its last quarantine
    std::int64_t quarantine_ms = 0;     // how long its last quarantine was
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
