#include "health/progress/nvrx_message.h"

#include <doctest/doctest.h>

#include <string>

#include "health/progress/nvrx_test_support.h"
#include "health/progress/object_pickle.h"

using namespace elastic;
using namespace elastic::progress;
using namespace elastic::progress::test;
using nvrx::Section;

namespace {

bool is(const std::string& pickle, const nvrx::Message& message) {
  const auto read = nvrx::read_message(pickle);
  return read && *read == message;
}

std::string reason(const std::string& pickle) {
  const auto read = nvrx::read_message(pickle);
  return read ? "" : read.error().reason;
}

ObjectPickle answer(const std::string& framed_pickle) {
  REQUIRE(nvrx::length_of(framed_pickle) == framed_pickle.size() - nvrx::kLengthBytes);
  auto read = ObjectPickle::read(std::string_view(framed_pickle).substr(nvrx::kLengthBytes));
  REQUIRE(read.has_value());
  return std::move(*read);
}

}  // namespace

TEST_CASE("all that NVRx's client says to a monitor is understood") {
  CHECK(is(kAuthkey, nvrx::Authkey{}));
  CHECK(is(kInit, nvrx::Init{}));
  CHECK(is(kHeartbeat, nvrx::Heartbeat{}));
  CHECK(is(kOpenStep, Section{Section::Action::kOpen, "step", {}}));
  CHECK(is(kCloseStep, Section{Section::Action::kClose, "step", {}}));
  CHECK(is(kCloseAll, Section{Section::Action::kCloseAll, "", {}}));
  CHECK(is(kOpenStep118, Section{Section::Action::kOpen, "step", 118}));
  CHECK(is(kTimeouts, nvrx::Timeouts{}));
}

TEST_CASE("an action is understood as every version of Python pickles an enum") {
  const Section opens{Section::Action::kOpen, "step", {}};
  CHECK(is(with_action(kOpenStep, bytes("\214\010builtins\214\007getattr\223h\000\214\015SectionAction\223\214\004OPEN"
                                        "\206R")),
           opens));
  CHECK(is(with_action(kOpenStep, bytes("h\000\214\022SectionAction.OPEN\223")), opens));
  CHECK(is(with_action(kOpenStep, bytes("cnvidia_resiliency_ext.fault_tolerance.data\nSectionAction\nK\001\205R")),
           opens));
  CHECK(reason(with_action(kOpenStep, "N")) == "a SectionMsg has no action that is known");
  CHECK(reason(with_action(kOpenStep, "K\001")) == "a SectionMsg has no action that is known");
  CHECK(reason(with_action(kOpenStep, bytes("h\000\214\022AnotherAction.OPEN\223"))) ==
        "a SectionMsg has no action that is known");
  CHECK(reason(with_action(kOpenStep, bytes("h\000\214\015SectionAction\223K\007\205R"))) ==
        "a SectionMsg has no action that is known");
}

TEST_CASE("a message of another module, or that is none, is refused by its name") {
  CHECK(reason(bytes("\x80\x02"
                     "cos\nHeartbeatMsg\n)\x81.")) == "it is no message to a monitor: os HeartbeatMsg");
  CHECK(reason(bytes("\x80\x02"
                     "cnvidia_resiliency_ext.fault_tolerance.data2\nInitMsg\n)\x81.")) ==
        "it is no message to a monitor: nvidia_resiliency_ext.fault_tolerance.data2 InitMsg");
  CHECK(reason(bytes("\x80\x04N.")) == "it is no message to a monitor: ");
  CHECK(reason(kExclude).starts_with("it is no message to a monitor"));
}

TEST_CASE("what a rank asks of its launcher is understood") {
  const auto request = nvrx::read_request(kExclude);
  REQUIRE(request.has_value());
  CHECK(*request == nvrx::Request{nvrx::Request::Action::kExcludeThisNode, "bad GPU", "3"});
  CHECK(!nvrx::read_request(kHeartbeat).has_value());
  CHECK(!nvrx::read_request(bytes("\x80\x04K\001K\002\206.")).has_value());
}

TEST_CASE("answers are pickles that NVRx's client reads") {
  CHECK(answer(nvrx::ok()).root().class_name() == "nvidia_resiliency_ext.fault_tolerance.data OkMsg");
  const ObjectPickle failed = answer(nvrx::error("why"));
  CHECK(failed.root().class_name() == "nvidia_resiliency_ext.fault_tolerance.data ErrorMsg");
  CHECK(failed.root().attribute("cause")->as_text() == "why");
  const ObjectPickle begun = answer(nvrx::ok_with_settings({"setup", "step"}));
  const auto settings = begun.root().attribute("cfg");
  REQUIRE(settings.has_value());
  CHECK(settings->class_name() == "nvidia_resiliency_ext.fault_tolerance.config FaultToleranceConfig");
  CHECK(settings->attribute("rank_heartbeat_timeout")->kind() == ObjectPickle::Kind::kNone);
  CHECK(settings->attribute("rank_section_timeouts")->kind() == ObjectPickle::Kind::kDict);
  CHECK(nvrx::accepted() == bytes("\000\000\000\007\x80\x03"
                                  "C\x02"
                                  "ok."));
  CHECK(answer(nvrx::declined("no")).root().as_text() == "no");
}
