#pragma once

// Mistakes that the simulator must find (tests/simulation). A letter names one; docs/testing.md says which. In every
// other build there are none.
namespace elastic::mutant {

#ifdef ELASTIC_RUN_MUTANTS
inline char active = 0;
inline bool is(char which) { return active == which; }
#else
constexpr bool is(char) { return false; }
#endif

}  // namespace elastic::mutant
