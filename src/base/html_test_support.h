#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elastic {

// Counts how often a text contains another.
inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Checks that elements are closed in the right order; HTML's empty elements need no end.
inline bool balanced(std::string_view page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at + 1)) {
    const bool closing = page[at + 1] == '/';
    const std::size_t begin = at + (closing ? 2 : 1);
    const std::string name(page.substr(begin, page.find_first_of(" >\n", begin) - begin));
    if (name == "!DOCTYPE" || name == "meta" || name == "br") continue;
    if (!closing) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

// Returns the parts of a page that a browser would execute, or fetch from elsewhere; empty if there are none.
inline std::string foreign_part(std::string_view page) {
  for (const char* part :
       {"<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "http:", "https:"}) {
    if (page.contains(part)) return part;
  }
  return {};
}

}  // namespace elastic
