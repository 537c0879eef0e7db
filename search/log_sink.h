// The CommitSink over the tuning log.
#ifndef TILEWRIGHT_SEARCH_LOG_SINK_H_
#define TILEWRIGHT_SEARCH_LOG_SINK_H_

#include <memory>
#include <string>

#include "db/database.h"
#include "measure/measure.pb.h"
#include "search/commit_sink.h"

namespace tilewright {

// `log` is a writer; from now on it belongs to the coordinator's thread.
std::unique_ptr<CommitSink> NewLogSink(std::unique_ptr<Database> log);

// A 16-byte string of the wire as an Id, and back. Precondition: 16 bytes (the coordinator checks
// what comes from outside).
Id IdFromBytes(const std::string& bytes);
std::string BytesFromId(const Id& id);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_LOG_SINK_H_
