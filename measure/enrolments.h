// Who has which device, and who had it when: the enrolments that a lease book knows. Hidden behind
// measure/lease_book.h. Not thread-safe.
//
// One enrolment of a device is live. It ends by another worker's for the same device (superseded),
// by leaving, or by silence. Those that were superseded or left are remembered for a while, so that
// results they still hold can be judged: what a worker measured while the device was its own
// counts, whenever it comes.
#ifndef TILEWRIGHT_MEASURE_ENROLMENTS_H_
#define TILEWRIGHT_MEASURE_ENROLMENTS_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "measure/lease_book.h"
#include "measure/measure.pb.h"

namespace tilewright {

class Enrolments {
 public:
  struct Entry {
    LeaseBook::Enrolment enrolment;
    std::string nonce;  // of the worker process
    absl::Time last_seen;
    enum class State { kLive, kSuperseded, kLeft } state = State::kLive;
    // Whose turn it was last: a run and the batches it gave in a row.
    std::string last_run;
    int batches_of_last_run = 0;
  };
  struct Enrolled {
    std::string id;
    std::optional<std::string> superseded;  // the id of the live enrolment that this one ended
  };

  // The enrolment there is if the same worker process enrols the same device again, else a new one,
  // with an id of `new_id`.
  Enrolled Enrol(const v1::EnrolRequest& request, absl::Time now,
                 const std::function<std::string()>& new_id);
  // It is remembered until too many later ones of its device have ended.
  void Leave(const std::string& id);
  // Ends without being remembered.
  void Forget(const std::string& id) { entries_.erase(id); }

  // Null: unknown.
  Entry* Find(const std::string& id);
  const Entry* Find(const std::string& id) const;
  // As LeaseBook::CheckLive.
  absl::Status CheckLive(const std::string& id) const;
  // Was the device another worker's at `measured`? Absent: now. True if the enrolment is unknown.
  bool WasSuperseded(const std::string& id, std::optional<absl::Time> measured) const;

  std::vector<LeaseBook::Enrolment> Live() const;
  // Ids of live ones that were last seen at `last` or before.
  std::vector<std::string> SilentSince(absl::Time last) const;
  // When the live one that has been silent longest was seen. InfiniteFuture: none is live.
  absl::Time EarliestSeen() const;

 private:
  // Who had a device from when on.
  struct Owner {
    absl::Time since;
    std::string nonce;
  };

  void Remember(const std::string& device_uuid, const std::string& id);

  std::map<std::string, Entry> entries_;                             // by id
  absl::flat_hash_map<std::string, std::vector<Owner>> owners_;      // by device UUID
  absl::flat_hash_map<std::string, std::deque<std::string>> ended_;  // ids, by device UUID
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_ENROLMENTS_H_
