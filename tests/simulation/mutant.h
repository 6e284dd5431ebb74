#pragma once

// Which mistake of tests/mistakes.py is on in simulate_mutants. No other program has any.
namespace elastic::mutant {

inline char active = 0;  // its letter; 0: none
inline bool is(char which) { return active == which; }

}  // namespace elastic::mutant
