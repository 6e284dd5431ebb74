#pragma once

// What nearly every source includes, parsed once for all of them (CMake's target_precompile_headers): a quarter of a
// typical file's compilation. A source still includes what it uses: tests/structure/test_includes.py finds what this
// header would hide.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
