#include "src/status/lead.h"

#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::status {

Lead lead_of(const Whereabouts& is, std::string_view job, bool has_others) {
  if (is.kind == Whereabouts::Kind::kHere) return Lead::kServe;
  const bool is_about_it = job.empty() ? !has_others : job == is.job;
  if (!is_about_it) return Lead::kServe;
  return is.kind == Whereabouts::Kind::kElsewhere ? Lead::kRedirect : Lead::kNotYet;
}

std::string address_for(const Whereabouts& is, const Caller& caller) {
  const std::string address = without_mapping(is.address);
  if (is_loopback(caller.from)) return is.is_on_this_host ? kLoopback : address;
  return is_loopback(address) && !caller.at.empty() ? caller.at : address;
}

std::string place_for(const Whereabouts& is, const Caller& caller) {
  return with_port(address_for(is, caller), is.port);
}

std::string url_of(std::string_view place, std::string_view target) { return format("http://{}{}", place, target); }

std::string not_yet(const Whereabouts& is) {
  return format("job {} has no coordinator that this node knows of: it looks for one; ask again in a second",
                printable(is.job));
}

}  // namespace elastic::status
