#include "health/evidence/ras_client.h"

#include <doctest/doctest.h>

#include <string>

#include "health/evidence/ras_report.h"

using namespace elastic;
using namespace elastic::evidence;

namespace {

std::string said(Result<std::string> sent) { return sent ? *sent : "failed: " + sent.error().reason; }

// A client that has been asked for the format.
RasClient at_format() {
  RasClient client(5);
  CHECK(client.start() == "CLIENT PROTOCOL 2\n");
  CHECK(said(client.feed("SERVER PROTOCOL 2\n")) == "TIMEOUT 5\n");
  CHECK(said(client.feed("OK\n")) == "SET FORMAT json\n");
  return client;
}
RasClient at_report() {
  RasClient client = at_format();
  CHECK(said(client.feed("OK\n")) == "VERBOSE STATUS\n");
  return client;
}

}  // namespace

TEST_CASE("RAS is asked line by line, and its report ends with the connection") {
  RasClient client = at_report();
  CHECK(said(client.feed("{\"communicators\": ")).empty());
  CHECK(said(client.feed("[]}\n")).empty());
  CHECK(said(client.closed()) == "{\"communicators\": []}\n");
}

TEST_CASE("answers may come in pieces, together, and with carriage returns") {
  RasClient client(5);
  CHECK(said(client.feed("SERVER PRO")).empty());
  CHECK(said(client.feed("TOCOL 2\r")).empty());
  CHECK(said(client.feed("\nok\r\nOK\r\nNCCL version")) == "TIMEOUT 5\nSET FORMAT json\nVERBOSE STATUS\n");
  CHECK(said(client.closed()) == "NCCL version");
}

TEST_CASE("an NCCL before 2.28.7 refuses JSON, and its report is text") {
  RasClient client = at_format();
  CHECK(said(client.feed("ERROR: Unknown command SET FORMAT json\n")) == "VERBOSE STATUS\n");
  CHECK(said(client.feed("NCCL version 2.27.3\n")).empty());
  CHECK(said(client.closed()) == "NCCL version 2.27.3\n");
  RasClient without_timeout(5);
  CHECK(said(without_timeout.feed("SERVER PROTOCOL 2\nERROR: Invalid timeout value 5\n")) ==
        "TIMEOUT 5\nSET FORMAT json\n");
}

TEST_CASE("what is no RAS, or refuses its report, is given up at once, with its own words") {
  RasClient stranger(5);
  const auto failed = stranger.feed("HTTP/1.1 400 Bad Request\r\n");
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text() ==
        "cannot ask NCCL's RAS: what answers is no RAS: HTTP/1.1 400 Bad Request; look which program "
        "listens at NCCL_RAS_ADDR");
  RasClient confused = at_format();
  CHECK(said(confused.feed("WELCOME\n")) == "failed: it answered WELCOME");
  RasClient refused = at_report();
  CHECK(said(refused.feed("ERROR: Unknown command")).empty());
  CHECK(said(refused.feed(" VERBOSE STATUS\n")) == "failed: it answered ERROR: Unknown command VERBOSE STATUS");
}

TEST_CASE("a connection that closes early, or is late, says where it stood") {
  CHECK(said(RasClient(5).closed()) == "failed: it closed the connection before it was asked for a report");
  CHECK(said(at_format().closed()) == "failed: it closed the connection before it was asked for a report");
  CHECK(said(at_report().closed()) == "failed: it closed the connection instead of a report");
  CHECK(RasClient(5).late().reason == "it did not answer in time");
  CHECK(at_report().late().reason == "its report did not come in time");
  RasClient client = at_report();
  (void)client.feed("{");
  CHECK(client.late().reason == "its report was not complete in time");
}

TEST_CASE("an answer or a report above the bounds is given up") {
  RasClient client(5);
  CHECK(said(client.feed(std::string(kRasLineBytes, 'x'))).empty());
  CHECK(said(client.feed("x")) == "failed: its answer is too long for RAS");
  RasClient flood = at_report();
  const std::string piece(kRasBytes / 4, 'x');
  for (int i = 0; i < 4; ++i) CHECK(said(flood.feed(piece)).empty());
  CHECK(said(flood.feed("x")) == "failed: its report has more than 64 MiB");
}
