#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/host_test_support.h"
#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// A host with a Python and a script, on which command lines are tried.
struct Trial {
  Trial() {
    host.program("/usr/bin/python3");
    host.file("train.py");
    host.directory("/tmp");
  }

  Result<LaunchPlan> plan(std::vector<std::string> arguments) const {
    const auto flags =
        parse_command_line(arguments, [&](const std::string& name) { return elastic::lookup(environment, name); });
    if (!flags) return std::unexpected(flags.error());
    return make_launch_plan(*flags, environment, host);
  }
  LaunchPlan good(std::vector<std::string> arguments) const {
    auto made = plan(std::move(arguments));
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().text()));
    return *made;
  }
  std::string error(std::vector<std::string> arguments) const {
    const auto made = plan(std::move(arguments));
    REQUIRE(!made.has_value());
    CHECK(!made.error().reason.empty());
    CHECK(!made.error().remedy.empty());
    return made.error().text();
  }

  FakeHost host;
  Environment environment{"PATH=/usr/local/bin:/usr/bin"};
};

}  // namespace elastic::cli
