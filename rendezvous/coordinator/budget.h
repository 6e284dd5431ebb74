#pragma once

namespace elastic::coordinator {

// The restarts that --max-restarts allows. They are counted for the whole job, not for each node.
class RestartBudget {
 public:
  // `limit` is --max-restarts: 0 or more.
  explicit RestartBudget(int limit) : limit_(limit) {}

  // Spends one restart. Returns false, and spends nothing, if none is left.
  bool spend();

  // Sets the restarts that an earlier coordinator has spent.
  void set_used(int used) { used_ = used; }

  int used() const { return used_; }
  int limit() const { return limit_; }

 private:
  int limit_;
  int used_ = 0;
};

}  // namespace elastic::coordinator
