// extension/hnsw/handler.hpp - puts gputext's build into pgvector's access method hnsw
//
// The server asks an access method's handler for its functions when a session first opens an index
// of it. Where the library is loaded, the answer of pgvector's hnswhandler has gputext's ambuild in
// the place of pgvector's own, which that calls unless gputext.build_hnsw is on. So whatever builds
// an index comes here: CREATE INDEX and REINDEX, also CONCURRENTLY and of partitions, VACUUM FULL,
// CLUSTER, ALTER TABLE.

#pragma once

namespace gputext::hnsw {

/// Called once, when the library is loaded.
void take_part_in_builds();

}  // namespace gputext::hnsw
