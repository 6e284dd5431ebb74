#include "health/progress/object_pickle.h"

#include <doctest/doctest.h>

#include <string>

#include "health/progress/nvrx_test_support.h"

using namespace elastic;
using namespace elastic::progress;
using namespace elastic::progress::test;
using Kind = ObjectPickle::Kind;

namespace {

std::string reason(const std::string& pickle) {
  const auto read = ObjectPickle::read(pickle);
  return read ? "" : read.error().reason;
}

}  // namespace

TEST_CASE("an object is its class, its arguments and its attributes, and none of them is made") {
  const auto read = ObjectPickle::read(kInit);
  REQUIRE(read.has_value());
  CHECK(read->root().class_name() == "nvidia_resiliency_ext.fault_tolerance.data InitMsg");
  const auto info = read->root().attribute("rank_info");
  REQUIRE(info.has_value());
  CHECK(info->class_name() == "nvidia_resiliency_ext.fault_tolerance.data RankInfo");
  CHECK(info->attribute("global_rank")->as_text() == "3");
  CHECK(info->attribute("pid")->as_integer() == 4711);
  CHECK(!info->attribute("port").has_value());
  CHECK(info->arguments()->items() == 0);
}

TEST_CASE("a call in a pickle is a name and arguments: nothing runs") {
  const auto read =
      ObjectPickle::read(bytes("\x80\x02"
                               "cposix\nsystem\nX\004\000\000\000true\x85R."));
  REQUIRE(read.has_value());
  CHECK(read->root().kind() == Kind::kObject);
  CHECK(read->root().class_name() == "posix system");
  CHECK(read->root().arguments()->item(0)->as_text() == "true");
}

TEST_CASE("numbers of every width, sets, and bytes are read") {
  CHECK(ObjectPickle::read(bytes("\x80\x04J\xfe\xff\xff\xff."))->root().as_integer() == -2);
  CHECK(ObjectPickle::read(bytes("\x80\x04\x8a\x01\x80."))->root().as_integer() == -128);
  CHECK(ObjectPickle::read(bytes("\x80\x04\x8a\x00."))->root().as_integer() == 0);
  CHECK(ObjectPickle::read(bytes("\x80\x05\x8f(K\x01K\x02\x90."))->root().items() == 2);
  CHECK(ObjectPickle::read(bytes("\x80\x03"
                                 "C\x02"
                                 "ok."))
            ->root()
            .kind() == Kind::kBytes);
}

TEST_CASE("a value that holds itself is read") {
  const auto read = ObjectPickle::read(bytes("\x80\x04]\x94h\000a."));
  REQUIRE(read.has_value());
  CHECK(read->root().item(0)->item(0)->items() == 1);
}

TEST_CASE("a message is refused with the reason where it is cut, goes on, or does not fit together") {
  for (std::size_t size = 0; size < kTimeouts.size(); ++size) CHECK(reason(kTimeouts.substr(0, size)) != "");
  CHECK(reason("").starts_with("it ends before its end"));
  CHECK(reason("GET / HTTP/1.1").starts_with("it is no pickle"));
  CHECK(reason(bytes("\x80\x06N.")).starts_with("it is no pickle"));
  CHECK(reason(bytes("\x80\x04N.N")) == "it goes on behind its end");
  CHECK(reason(bytes("\x80\x04NN.")).starts_with("STOP comes before"));
  CHECK(reason(bytes("\x80\x04.")).starts_with("STOP comes before"));
  CHECK(reason(bytes("\x80\x04P1\n.")) == "the opcode PERSID, which no message has, is refused (at byte 2)");
  CHECK(reason(bytes("\x80\x04h\005.")).starts_with("a value is recalled"));
  CHECK(reason(bytes("\x80\x04NR.")).starts_with("an opcode has too few values"));
  CHECK(reason(bytes("\x80\x04NNR.")).starts_with("an object has no class"));
  CHECK(reason(bytes("\x80\x04N(Ne.")).starts_with("values have no container"));
  CHECK(reason(bytes("\x80\x04}(Nu.")).starts_with("values have no container"));
  CHECK(reason(bytes("\x80\x04N}b.")).starts_with("a state has no object"));
  CHECK(reason(bytes("\x80\x04t.")).starts_with("an opcode has no mark"));
  CHECK(reason(bytes("\x80\x04X\xff\xff\xff\xff.")).starts_with("it ends before its end"));
  CHECK(reason(bytes("\x80\x04\x8a\x09"
                     "123456789."))
            .starts_with("a number has more than"));
}
