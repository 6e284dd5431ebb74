#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace elastic::store {

// The addresses that may connect to a worker store.
class Admission {
 public:
  // Admits all addresses.
  Admission() = default;
  // Admits these numeric addresses, in any notation, and loopback addresses.
  explicit Admission(const std::vector<std::string>& addresses);

  // An empty address, which is that of a peer who has disconnected already, is admitted.
  bool admits(std::string_view address) const;

 private:
  std::optional<std::unordered_set<std::string>> addresses_;  // plain_address()
};

}  // namespace elastic::store
