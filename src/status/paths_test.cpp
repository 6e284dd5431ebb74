#include "src/status/paths.h"

#include <doctest/doctest.h>

using namespace elastic::status;

TEST_CASE("four paths are served, whole and in small letters") {
  CHECK(page_at("/healthz") == Page::kHealth);
  CHECK(page_at("/readyz") == Page::kReady);
  CHECK(page_at("/status") == Page::kStatus);
  CHECK(page_at("/metrics") == Page::kMetrics);
  for (const char* other : {"/", "/status/", "/Status", "/metricsx", "status", ""}) CHECK(!page_at(other));
}

TEST_CASE("only the whole token opens, by the scheme Bearer in any case") {
  CHECK(has_token("Bearer s3cret", "s3cret"));
  CHECK(has_token("bEARER   s3cret ", "s3cret"));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Bearer s3crett3cret",
                            "Bearer s3crets3cret", "Basic s3cret", "s3cret", "Bearer S3cret"}) {
    CAPTURE(wrong);
    CHECK(!has_token(wrong, "s3cret"));
  }
  CHECK(!has_token("Bearer ", ""));  // a job without one
}

TEST_CASE("a node is ready only while its workers run, and says what it waits for") {
  Node node{.activity = NodeActivity::kWaiting, .waits_for = "waiting for nodes: 1 of 2 are here"};
  CHECK(!readiness(node).ready);
  CHECK(readiness(node).line == "waiting: waiting for nodes: 1 of 2 are here");
  node = {.activity = NodeActivity::kRunning, .round = 3};
  CHECK(readiness(node).ready);
  CHECK(readiness(node).line == "the workers of round 3 run");
  for (const NodeActivity other : {NodeActivity::kStandby, NodeActivity::kPreparing, NodeActivity::kChecking,
                                   NodeActivity::kSucceeded, NodeActivity::kStopping, NodeActivity::kEnded}) {
    CHECK(!readiness(Node{.activity = other}).ready);
  }
  CHECK(readiness(std::nullopt).ready);
}
