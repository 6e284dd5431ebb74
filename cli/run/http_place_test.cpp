#include "cli/run/http_place.h"

#include <doctest/doctest.h>

using namespace elastic::run;

TEST_CASE("a place is read as it is written, and nothing else is one") {
  for (const HttpPlace& place : {HttpPlace{"10.0.0.2", 29400}, HttpPlace{"::1", 1}, HttpPlace{"host0", 65535}}) {
    CHECK(place_of(place.text()) == place);
  }
  for (const char* text : {"", "host0", "host0:", ":29400", "host0:0", "host0:65536", "host0:29400x", "::1:29400",
                           "[host0]:29400", "[]:29400", "[::1]"}) {
    CAPTURE(text);
    CHECK(!place_of(text));
  }
}

TEST_CASE("a redirect names a place by a URL with a port") {
  CHECK(place_of_url("http://10.0.0.2:40123/status?job=a:1") == HttpPlace{"10.0.0.2", 40123});
  CHECK(place_of_url("http://[fd00::2]:40123/metrics") == HttpPlace{"fd00::2", 40123});
  for (const char* url : {"", "/status", "https://10.0.0.2:40123/", "http://10.0.0.2/status", "ftp://10.0.0.2:1/"}) {
    CAPTURE(url);
    CHECK(!place_of_url(url));
  }
}
