#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace elastic::store {

// The addresses that may connect to a worker store.
class Admission {
 public:
  enum class Whose : std::uint8_t { kRound, kHost };

  // Admits all addresses.
  Admission() = default;
  // Admits these numeric addresses, in any notation, and loopback addresses. `whose`: they are those of the round's
  // nodes, or of this host alone.
  explicit Admission(const std::vector<std::string>& addresses, Whose whose = Whose::kRound);

  // An empty address, which is that of a peer that has disconnected already, is admitted.
  bool admits(std::string_view address) const;
  // Why an address is not admitted, as a clause, and what to do if it should be.
  std::string why_not() const;

 private:
  Whose whose_ = Whose::kRound;
  std::optional<std::unordered_set<std::string>> addresses_;  // plain_address()
};

}  // namespace elastic::store
