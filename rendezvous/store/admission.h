#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace elastic::store {

// Who may connect to a worker store, by address.
class Admission {
 public:
  // Everybody.
  Admission() = default;
  // These numeric addresses, in whatever form, and this host by its loopback; nobody else.
  explicit Admission(const std::vector<std::string>& addresses);

  // An empty address is that of a peer who is gone already, and no matter.
  bool admits(std::string_view address) const;

 private:
  std::optional<std::unordered_set<std::string>> addresses_;  // plain_address()
};

}  // namespace elastic::store
