#pragma once

namespace elastic::warm {

// What runs the text that is its first argument, and leaves no name in __main__.
inline constexpr const char* kBoot =
    "exec(compile(__import__('sys').argv[1],'<elastic-run>','exec'),{'__name__':'_elastic_run_warm'})";

// The import server (server.py).
extern const char* const kServerText;

}  // namespace elastic::warm
