#pragma once

namespace elastic::coordinator {

// How many restarts a job may still spend. The count belongs to the job, not to a node.
class RestartBudget {
 public:
  // `limit` restarts, 0 or more.
  explicit RestartBudget(int limit) : limit_(limit) {}

  // Spends one restart. False, and nothing spent, if none is left.
  bool spend();

  // What was spent before this was made.
  void set_used(int used) { used_ = used; }

  int used() const { return used_; }
  int limit() const { return limit_; }

 private:
  int limit_;
  int used_ = 0;
};

}  // namespace elastic::coordinator
