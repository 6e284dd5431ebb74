#include "src/base/html.h"

#include <doctest/doctest.h>

#include "src/base/html_test_support.h"

using namespace elastic;

TEST_CASE("a text keeps its place on a page: no element, no attribute, no control character comes out of it") {
  CHECK(html_text("</title><b onload=\"x\">'&\x1b[2J\x07\xff") ==
        "&lt;/title&gt;&lt;b onload=&quot;x&quot;&gt;&#39;&amp;\\x07\\xff");
}

TEST_CASE("a page that is begun and ended is whole, and forbids what it would have to fetch") {
  const std::string page = html_beginning("a &amp; b", "p { color: red; }\n") + std::string(html_end());
  CHECK(page.contains("<title>a &amp; b</title>"));
  CHECK(page.contains("p { color: red; }\n</style>"));
  CHECK(page.contains("default-src 'none'"));
  CHECK(balanced(page));
  CHECK(foreign_part(page).empty());
}
