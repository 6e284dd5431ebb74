#include "rendezvous/store/admission.h"

#include "src/base/address.h"

namespace elastic::store {

Admission::Admission(const std::vector<std::string>& addresses) : addresses_(std::in_place) {
  for (const std::string& address : addresses) addresses_->insert(plain_address(address));
}

bool Admission::admits(std::string_view address) const {
  return !addresses_ || address.empty() || is_loopback(address) || addresses_->contains(plain_address(address));
}

}  // namespace elastic::store
