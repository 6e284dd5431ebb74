#pragma once

namespace elastic {

// Several lambdas as one function for std::visit, an overload per alternative: the compiler says which one
// is missing.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace elastic
