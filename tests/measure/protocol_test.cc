#include "measure/protocol.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

const std::string kId(16, 'i');

v1::ReturnRequest Valid() {
  v1::ReturnRequest request;
  request.set_enrolment_id(kId);
  request.set_run_id(kId);
  request.mutable_session()->set_session_id(kId);
  request.mutable_session()->add_anchor_seconds(1e-3);
  v1::TrialResult* trial = request.add_trials();
  trial->set_trial_id(std::string(16, 't'));
  trial->set_session_id(kId);
  trial->set_schedule("v{a=1}");
  trial->set_seconds(1e-3);
  trial->set_anchor_seconds(2e-3);
  trial->add_samples_seconds(1e-3);
  return request;
}

std::string Fault(const v1::ReturnRequest& request) {
  const absl::Status status = CheckRequest(request);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Protocol, AcceptsThisVersionAndTheOneBefore) {
  EXPECT_EQ(*NegotiateProtocol(3, 3), 3u);
  EXPECT_EQ(*NegotiateProtocol(3, 2), 2u);
  EXPECT_EQ(*NegotiateProtocol(1, 1), 1u);
}

TEST(Protocol, RefusesOtherVersionsNamingBoth) {
  for (uint32_t theirs : {0u, 1u, 4u}) {
    const absl::Status status = NegotiateProtocol(3, theirs).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("speaks 3 and 2"));
  }
  EXPECT_FALSE(NegotiateProtocol(1, 0).ok());
}

TEST(Protocol, AcceptsAValidReturn) { EXPECT_EQ(Fault(Valid()), ""); }

TEST(Protocol, NamesTheFieldThatIsWrong) {
  v1::ReturnRequest request = Valid();
  request.set_enrolment_id("short");
  EXPECT_THAT(Fault(request), HasSubstr("enrolment_id: 5 bytes"));
  request = Valid();
  request.mutable_trials(0)->set_trial_id("");
  EXPECT_THAT(Fault(request), HasSubstr("trials[0].trial_id"));
  request = Valid();
  request.mutable_trials(0)->clear_schedule();
  EXPECT_THAT(Fault(request), HasSubstr("trials[0].schedule: is missing"));
  request = Valid();
  request.mutable_trials(0)->set_session_id(std::string(16, 'x'));
  EXPECT_THAT(Fault(request), HasSubstr("trials[0].session_id: is not the session"));
  request = Valid();
  request.mutable_trials(0)->set_schedule(std::string(20000, 'x'));
  EXPECT_THAT(Fault(request), HasSubstr("trials[0].schedule: 20000 bytes"));
}

TEST(Protocol, RefusesTimesThatAreNotFiniteAndPositive) {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    v1::ReturnRequest request = Valid();
    request.mutable_trials(0)->set_seconds(bad);
    EXPECT_THAT(Fault(request), HasSubstr("trials[0].seconds"));
    request = Valid();
    request.mutable_trials(0)->add_samples_seconds(bad);
    EXPECT_THAT(Fault(request), HasSubstr("trials[0].samples_seconds"));
    request = Valid();
    request.mutable_session()->add_anchor_seconds(bad);
    EXPECT_THAT(Fault(request), HasSubstr("session.anchor_seconds"));
  }
}

TEST(Protocol, AResultIsATimeOrAFailureOrATwin) {
  v1::ReturnRequest request = Valid();
  v1::TrialResult* trial = request.mutable_trials(0);
  trial->mutable_failure()->set_kind("wrong output");
  EXPECT_THAT(Fault(request), HasSubstr("a failure has no time"));
  trial->clear_seconds();
  EXPECT_EQ(Fault(request), "");
  trial->mutable_failure()->set_kind("bad luck");
  EXPECT_THAT(Fault(request), HasSubstr("trials[0].failure.kind"));
  trial->clear_failure();
  trial->set_same_as(trial->trial_id());
  EXPECT_THAT(Fault(request), HasSubstr("not its own twin"));
  trial->set_same_as(kId);
  EXPECT_EQ(Fault(request), "");
}

TEST(Protocol, FinalsMayHaveDroppedSamples) {
  v1::ReturnRequest request = Valid();
  v1::FinalsResult* finals = request.add_finals();
  finals->set_trial_id(kId);
  v1::FinalsResult::Entrant* entrant = finals->add_entrants();
  entrant->set_schedule("v{}");
  entrant->add_round_seconds(std::nan(""));
  EXPECT_EQ(Fault(request), "");
  entrant->add_round_seconds(-1);
  EXPECT_THAT(Fault(request), HasSubstr("finals[0].entrants[0].round_seconds"));
}

TEST(Protocol, RefusesLeasesOfNothingOrTooMuch) {
  v1::LeaseRequest request;
  request.set_enrolment_id(kId);
  EXPECT_THAT(std::string(CheckRequest(request).message()), HasSubstr("max_items: 0"));
  request.set_max_items(100000);
  EXPECT_FALSE(CheckRequest(request).ok());
  request.set_max_items(8);
  EXPECT_TRUE(CheckRequest(request).ok());
}

TEST(Protocol, PlaintextStaysOnThisMachine) {
  for (const char* good :
       {"unix:/tmp/a.sock", "localhost:1", "127.0.0.1:0", "127.3.2.1:65535", "[::1]:80"}) {
    EXPECT_TRUE(CheckPlaintextAddress(good).ok()) << good;
  }
  for (const char* bad : {"unix:", "10.0.0.1:80", "example.org:80", "127.0.0.1",
                          "127.0.0.1.evil.org:80", "127.0.0.1:70000", "0.0.0.0:80", ""}) {
    EXPECT_FALSE(CheckPlaintextAddress(bad).ok()) << bad;
  }
  EXPECT_THAT(std::string(CheckPlaintextAddress("10.0.0.1:80").message()), HasSubstr("need TLS"));
}

TEST(Protocol, CleansTextsOfCompilers) {
  EXPECT_EQ(CleanText("grüße", 100), "grüße");
  EXPECT_EQ(CleanText("a\xff"
                      "b\xc3",
                      100),
            "a?b?");
  EXPECT_EQ(CleanText("\xed\xa0\x80", 100), "???");  // a lone surrogate
  const std::string cut = CleanText(std::string(1000, 'x'), 100);
  EXPECT_LE(cut.size(), 100u);
  EXPECT_THAT(cut, HasSubstr("more bytes"));
}

TEST(Protocol, IdsAreSixteenRandomBytes) {
  EXPECT_EQ(NewRandomId().size(), 16u);
  EXPECT_NE(NewRandomId(), NewRandomId());
  EXPECT_EQ(IdToHex("\x01\xab"), "01ab");
}

// The service and every message that it reaches, as protobuf prints them.
std::string DescribeProtocol() {
  const google::protobuf::ServiceDescriptor* service =
      v1::EnrolRequest::descriptor()->file()->FindServiceByName("Coordinator");
  std::map<std::string, std::string> messages;
  std::function<void(const google::protobuf::Descriptor*)> reach =
      [&](const google::protobuf::Descriptor* message) {
        while (message->containing_type() != nullptr) message = message->containing_type();
        if (!messages.emplace(message->name(), message->DebugString()).second) return;
        std::function<void(const google::protobuf::Descriptor*)> fields =
            [&](const google::protobuf::Descriptor* owner) {
              for (int i = 0; i < owner->field_count(); ++i) {
                if (owner->field(i)->message_type() != nullptr) {
                  reach(owner->field(i)->message_type());
                }
              }
              for (int i = 0; i < owner->nested_type_count(); ++i) fields(owner->nested_type(i));
            };
        fields(message);
      };
  for (int i = 0; i < service->method_count(); ++i) {
    reach(service->method(i)->input_type());
    reach(service->method(i)->output_type());
  }
  std::string text =
      absl::StrCat("protocol version ", kProtocolVersion, "\n", service->DebugString());
  for (const auto& [name, message] : messages) text += message;
  return text;
}

// A change here is a change of the wire: docs/formats/protocol.md says what is allowed. To write
// the file anew, run this test with TILEWRIGHT_REWRITE_GOLDEN set.
TEST(Protocol, IsThatOfTheGoldenFile) {
  const std::string path = TILEWRIGHT_GOLDEN "/protocol_v1.txt";
  if (getenv("TILEWRIGHT_REWRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << DescribeProtocol();
  }
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(DescribeProtocol(), golden.str());
}

}  // namespace
}  // namespace tilewright
