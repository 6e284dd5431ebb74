#include "rendezvous/agent/early_stop.h"

namespace elastic::agent {

void EarlyStop::round_began(bool may_restart, bool is_over) {
  may_restart_ = may_restart;
  is_over_ = is_over_ || is_over;
  suspect_.reset();
  is_spared_ = false;
  has_failed_ = false;
}

bool EarlyStop::written(int local_rank, bool has_company) {
  if (!is_on_ || is_over_ || !may_restart_ || !has_company || suspect_) return false;
  suspect_ = local_rank;
  is_spared_ = true;
  return true;
}

bool EarlyStop::is_explained_by_death_of(int local_rank) {
  if (!is_spared_ || suspect_ == local_rank) return false;
  suspect_.reset();
  is_spared_ = false;
  return true;
}

bool EarlyStop::failed(int local_rank) {
  if (spared() != local_rank) return false;
  has_failed_ = true;
  return true;
}

}  // namespace elastic::agent
