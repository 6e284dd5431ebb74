#pragma once

// What nearly every source includes, parsed once for all of them (CMake's target_precompile_headers): a quarter of a
// typical file's compilation. A source still includes what it uses: the sanitizers' and the fuzzers' builds do without
// this header, and do not compile otherwise.
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
