#include "rendezvous/store/admission.h"

#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::store {

Admission::Admission(const std::vector<std::string>& addresses, Whose whose)
    : whose_(whose), addresses_(std::in_place) {
  for (const std::string& address : addresses) addresses_->insert(plain_address(address));
}

bool Admission::admits(std::string_view address) const {
  return !addresses_ || address.empty() || is_loopback(address) || addresses_->contains(plain_address(address));
}

std::string Admission::why_not() const {
  return format(
      "{} has this address; if it belongs to the job all the same (behind address translation, say), give "
      "--rdzv-conf=store_admits=all",
      whose_ == Whose::kHost ? "no interface of this host" : "no node of this round");
}

}  // namespace elastic::store
