#include "rendezvous/coordinator/waiting_news.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic;
using coordinator::News;
using coordinator::WaitingNews;

namespace {

News for_nodes(int here) { return {.here = here, .least = 2, .most = 4, .since_ms = 0, .names_gone = true}; }

}  // namespace

TEST_CASE("news of a wait are held back for a second, and are told once") {
  WaitingNews news;
  CHECK(news.news_due(for_nodes(1), 1, 1, 5000).look_again_ms == 6000);
  CHECK(news.news_due(for_nodes(1), 1, 1, 5999).look_again_ms == 6000);
  const auto due = news.news_due(for_nodes(1), 1, 1, 6000);
  REQUIRE(due.message);
  CHECK(due.message->here == 1);
  CHECK(due.message->least == 2);
  CHECK(due.message->most == 4);
  CHECK(due.message->for_ms == 6000);
  CHECK(!due.message->left_ms);
  CHECK(due.from_arrival == 0);
  const auto again = news.news_due(for_nodes(1), 1, 1, 7000);
  CHECK(!again.message);
  CHECK(!again.look_again_ms);
}

TEST_CASE("further changes within the second do not hold the news back longer, and the last state is told") {
  WaitingNews news;
  CHECK(news.news_due(for_nodes(1), 1, 1, 0).look_again_ms == 1000);
  CHECK(news.news_due(for_nodes(2), 2, 2, 900).look_again_ms == 1000);
  CHECK(news.news_due(for_nodes(3), 3, 3, 1000).message->here == 3);
}

TEST_CASE("what was told already goes to newcomers only") {
  WaitingNews news;
  const News standby{.what = "standing by"};
  news.news_due(standby, 2, 5, 0);
  CHECK(news.news_due(standby, 2, 5, 1000).from_arrival == 0);
  CHECK(news.news_due(standby, 3, 6, 2000).look_again_ms == 3000);
  const auto due = news.news_due(standby, 3, 6, 3000);
  REQUIRE(due.message);
  CHECK(due.from_arrival == 5);
}

TEST_CASE("nothing is told while no node waits, and a change that was held back begins its second anew") {
  WaitingNews news;
  CHECK(news.news_due(for_nodes(1), 1, 1, 0).look_again_ms == 1000);
  CHECK(!news.news_due(for_nodes(1), 0, 1, 500).look_again_ms);
  CHECK(news.news_due(for_nodes(1), 1, 1, 1000).look_again_ms == 2000);
  news.drop_change();
  CHECK(news.news_due(for_nodes(1), 1, 1, 2000).look_again_ms == 3000);
}

TEST_CASE("the message names nodes that have gone and not come back, and says how long ago the last one went") {
  WaitingNews news;
  news.has_gone(1, "node 1 was lost", 100);
  news.has_gone(2, "node 2 was lost", 200);
  news.has_gone(3, "node 3 was lost", 300);
  news.is_back(3);
  news.news_due(for_nodes(1), 1, 1, 400);
  const auto due = news.news_due(for_nodes(1), 1, 1, 1400);
  REQUIRE(due.message);
  CHECK(due.message->because == "node 1 was lost; node 2 was lost");
  CHECK(due.message->because_ms == 1200);
}

TEST_CASE("a node that goes twice is named once, by the last time") {
  WaitingNews news;
  news.has_gone(1, "node 1 was lost", 100);
  news.has_gone(1, "node 1 was lost again", 200);
  news.news_due(for_nodes(1), 1, 1, 200);
  CHECK(news.news_due(for_nodes(1), 1, 1, 1200).message->because == "node 1 was lost again");
}

TEST_CASE("of many nodes that have gone, the first eight are remembered") {
  WaitingNews news;
  for (int node = 0; node < 100; ++node) {
    news.has_gone(static_cast<protocol::AgentId>(node), "node " + std::to_string(node), node);
  }
  news.news_due(for_nodes(1), 1, 1, 1000);
  CHECK(news.news_due(for_nodes(1), 1, 1, 2000).message->because == "node 0; node 1; node 2; and 5 more");
}

TEST_CASE("news that do not name nodes say nothing of those that have gone") {
  WaitingNews news;
  news.has_gone(1, "node 1 was lost", 100);
  news.news_due({.what = "standing by"}, 1, 1, 200);
  CHECK(news.news_due({.what = "standing by"}, 1, 1, 1200).message->because.empty());
}

TEST_CASE("after a round has formed, the same news are told anew to all") {
  WaitingNews news;
  const News standby{.what = "standing by"};
  news.news_due(standby, 1, 1, 0);
  REQUIRE(news.news_due(standby, 1, 1, 1000).message);
  news.round_has_formed();
  CHECK(news.news_due(standby, 1, 1, 2000).look_again_ms == 3000);
  const auto due = news.news_due(standby, 1, 1, 3000);
  REQUIRE(due.message);
  CHECK(due.from_arrival == 0);
}

TEST_CASE("after a round has formed, nobody is missed any more") {
  WaitingNews news;
  news.has_gone(1, "node 1 was lost", 0);
  news.round_has_formed();
  news.news_due(for_nodes(1), 1, 1, 0);
  CHECK(news.news_due(for_nodes(1), 1, 1, 1000).message->because.empty());
}
