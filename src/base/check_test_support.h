#pragma once

#include <stdexcept>
#include <string>

namespace elastic {

// A failed ELASTIC_CHECK throws this in a program of unit tests (tests/unit_main.cpp), where a test breaks an invariant
// on purpose. In elastic-run it ends the process.
struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;  // the expression that did not hold
};

// The expression of the check that fails in `action`; empty if none does.
template <class Action>
std::string failed_check(const Action& action) {
  try {
    action();
  } catch (const CheckFailed& failed) {
    return failed.what();
  }
  return {};
}

}  // namespace elastic
