#include "rendezvous/locate/claimant.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/term.h"

using namespace elastic::locate;
using elastic::protocol::term_after;

namespace {

constexpr std::uint32_t kRandom = 0x1234;
const Claim kOthers{"10.0.0.6", 4711, "a2", 3, 5'000};

// Node 10.0.0.5, whose coordinator listens at port 4000 whenever it is to.
struct Node {
  explicit Node(bool may_host = true)
      : claimant(
            {.place = "file /f", .agent = "a1", .random = kRandom, .loss_timeout_ms = 5'000, .may_host = may_host}) {}

  // The effects in words: those that matter.
  std::vector<std::string> told(Claimant::Effects effects) {
    std::vector<std::string> words;
    for (const Claimant::Effect& effect : effects) {
      if (const auto* open = std::get_if<Claimant::Open>(&effect)) {
        opened_with = open->term;
        for (std::string& word : told(claimant.opened("10.0.0.5", 4000, now_ms))) words.push_back(std::move(word));
      }
      if (const auto* write = std::get_if<Claimant::Write>(&effect)) wanted = write->desired, words.push_back("write");
      if (const auto* renew = std::get_if<Claimant::Renew>(&effect)) wanted = renew->desired, words.push_back("renew");
      if (const auto* back = std::get_if<Claimant::TakeBack>(&effect))
        wanted = back->expected, words.push_back("remove");
      if (const auto* act = std::get_if<Claimant::ActUntil>(&effect)) authority = act->authority;
      if (const auto* at = std::get_if<Claimant::RenewAt>(&effect)) renew_at_ms = at->at_ms;
      if (std::holds_alternative<Claimant::StopRenewing>(effect)) words.push_back("stop renewing");
      if (std::holds_alternative<Claimant::Hosts>(effect)) words.push_back("hosts");
      if (std::holds_alternative<Claimant::Close>(effect)) words.push_back("close");
      if (const auto* depose = std::get_if<Claimant::Depose>(&effect)) words.push_back("depose: " + depose->why);
      if (const auto* found = std::get_if<Claimant::Found>(&effect))
        words.push_back(found->is_own ? "found own" : "found " + claim_endpoint(found->claim));
      if (const auto* none = std::get_if<Claimant::NotFound>(&effect)) words.push_back("none: " + none->failure.reason);
      if (std::holds_alternative<Claimant::Withdrawn>(effect)) words.push_back("withdrawn");
    }
    return words;
  }
  // Looks for the coordinator where this is the text of the claim.
  std::vector<std::string> find(const RegisterAnswer& text, bool belongs = false) {
    (void)claimant.find(belongs);
    return told(claimant.read(text, now_ms));
  }
  // Claims the place, at this time.
  void host(std::int64_t at_ms = 0) {
    now_ms = at_ms;
    REQUIRE(find("") == Words{"write"});
    REQUIRE(told(claimant.written(wanted, now_ms + 50)) == Words{"hosts", "found own"});
  }
  using Words = std::vector<std::string>;

  Claimant claimant;
  std::int64_t now_ms = 0;
  std::string wanted;  // the text of the last write
  elastic::protocol::Term opened_with = 0;
  Authority authority = Authority::none();
  std::int64_t renew_at_ms = 0;
};
using Words = Node::Words;
const RegisterAnswer kSilence = std::unexpected(RegisterFailure{"it does not answer", false});

}  // namespace

TEST_CASE("who finds no claim writes its own, hosts the coordinator, and renews the claim") {
  Node node;
  node.host(1'000);
  CHECK(node.authority == Authority::until(1'000 + 2'970));
  CHECK(node.renew_at_ms == 2'000);
  node.now_ms = 2'000;
  CHECK(node.told(node.claimant.renewal_is_due(2'000)) == Words{"renew"});
  CHECK(node.told(node.claimant.renewed(node.wanted, 2'100)).empty());
  CHECK(node.authority == Authority::until(2'000 + 2'970));
  CHECK(node.find(node.wanted) == Words{"found own"});
}

TEST_CASE("where another node was first it leads there, and a coordinator that no node knows of is closed") {
  Node node;
  CHECK(node.find("") == Words{"write"});
  CHECK(node.told(node.claimant.written(claim_text(kOthers), 50)) == Words{"close", "found 10.0.0.6:4711"});
  CHECK_FALSE(node.claimant.holds());
  CHECK(node.find(claim_text(kOthers)) == Words{"close", "found 10.0.0.6:4711"});
}

TEST_CASE("a claim is taken over when it was not renewed for as long as it is good, and never with is_host=0") {
  Node node;
  Node guest(false);
  for (Node* each : {&node, &guest}) {
    CHECK(each->find(claim_text(kOthers)).back() == "found 10.0.0.6:4711");
    each->claimant.tried(Tried::kRefused);
    each->now_ms = 3'129;
    CHECK(each->find(claim_text(kOthers)).front().starts_with("none: 10.0.0.6:4711 holds the claim"));
    each->now_ms = 3'130;
  }
  CHECK(node.find(claim_text(kOthers)) == Words{"write"});
  CHECK(guest.find(claim_text(kOthers)).front().starts_with("none: 10.0.0.6:4711 holds the claim"));
}

TEST_CASE("a claim that takes another's place has a term above that of the other one, and keeps it") {
  Claim dead = kOthers;
  dead.term = term_after(1, 5);
  Node node;
  node.find(claim_text(dead));
  node.now_ms = 3'130;
  CHECK(node.find(claim_text(dead)) == Words{"write"});
  CHECK(node.opened_with == term_after(dead.term, kRandom));
  CHECK(read_claim(node.wanted).value().term == node.opened_with);
  CHECK(node.told(node.claimant.written(node.wanted, 3'140)) == Words{"hosts", "found own"});
  CHECK(node.told(node.claimant.renewal_is_due(4'130)) == Words{"renew"});
  CHECK(read_claim(node.wanted).value().term == node.opened_with);
}

TEST_CASE("who finds no claim begins with term 1; a coordinator that is open with another term is closed before") {
  Node node;
  node.host();
  CHECK(node.opened_with == 1);
  Node late;
  late.find(claim_text(kOthers));
  late.now_ms = 3'130;
  CHECK(late.find(claim_text(kOthers)) == Words{"write"});
  CHECK(late.told(late.claimant.written(kSilence, 3'200)) == Words{"none: it does not answer"});
  // The same claim is still there: the coordinator that is open will do.
  CHECK(late.find(claim_text(kOthers)) == Words{"write"});
  CHECK(late.told(late.claimant.written(kSilence, 3'200)) == Words{"none: it does not answer"});
  CHECK(late.find("") == Words{"close", "write"});
  CHECK(late.opened_with == 1);
}

TEST_CASE("who finds another node's claim in the place of its own hosts the coordinator no more") {
  Node node;
  node.host();
  SUBCASE("by reading") {
    CHECK(node.find(claim_text(kOthers), true) ==
          Words{"stop renewing", "depose: 10.0.0.6:4711 has taken over its claim", "close", "found 10.0.0.6:4711"});
  }
  SUBCASE("by a renewal") {
    node.told(node.claimant.renewal_is_due(1'000));
    CHECK(node.told(node.claimant.renewed(claim_text(kOthers), 1'050)) ==
          Words{"stop renewing", "depose: 10.0.0.6:4711 has taken over its claim"});
  }
  CHECK_FALSE(node.claimant.holds());
}

TEST_CASE("without an answer of the place a node of a job goes on with the coordinator that it knows") {
  Node node;
  CHECK(node.find(kSilence) == Words{"none: it does not answer"});
  node.find(claim_text(kOthers));
  node.claimant.tried(Tried::kAnswered);
  CHECK(node.find(kSilence, true) == Words{"found 10.0.0.6:4711"});
  CHECK(node.find(kSilence, false) == Words{"none: it does not answer"});
  Node host;
  host.host();
  CHECK(host.find(kSilence) == Words{"found own"});
}

TEST_CASE(
    "a claim whose writing was not answered is held when it is read, and gives no right to act before others' end") {
  Node node;
  CHECK(node.find("") == Words{"write"});
  CHECK(node.told(node.claimant.written(kSilence, 2'500)) == Words{"none: it does not answer"});
  node.now_ms = 2'600;
  CHECK(node.find(node.wanted) == Words{"hosts", "found own"});
  CHECK_FALSE(node.authority.holds(2'600));
  node.told(node.claimant.renewal_is_due(2'620));
  node.told(node.claimant.renewed(node.wanted, 2'640));
  CHECK_FALSE(node.authority.holds(2'640));
  node.told(node.claimant.renewal_is_due(5'800));
  node.told(node.claimant.renewed(node.wanted, 5'820));
  CHECK(node.authority.holds(5'820));
}

TEST_CASE("a claim is taken back at the end, once more where a renewal was under way") {
  Node node;
  CHECK(node.told(node.claimant.withdraw()) == Words{"withdrawn"});
  node.host();
  const std::string first = node.wanted;
  node.told(node.claimant.renewal_is_due(1'000));
  const std::string renewed = node.wanted;
  CHECK(node.authority.holds(1'000));
  CHECK(node.told(node.claimant.withdraw()) == Words{"stop renewing", "remove"});
  CHECK_FALSE(node.authority.holds(1'000));
  CHECK(node.wanted == first);
  CHECK(node.told(node.claimant.taken_back(renewed)) == Words{"remove"});
  CHECK(node.wanted == renewed);
  CHECK(node.told(node.claimant.taken_back("")) == Words{"withdrawn"});
}
