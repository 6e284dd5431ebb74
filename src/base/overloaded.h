#pragma once

namespace elastic {

// Combines several lambdas into one function for std::visit, with an overload per alternative. The compiler reports an
// alternative that is missing.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace elastic
