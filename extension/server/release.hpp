// extension/server/release.hpp - which release this session's library is of

#pragma once

namespace gputext {

/// The version and a digest of the sources, as gputextd says it of itself in its hello: equal if
/// both were built from the same sources.
const char* module_release();

/// The version alone, as the control file has it.
const char* module_version();

/// To be called when the library is loaded: remembers which file that is.
void remember_module_file();

/// Whether another file has come into its place since: the session goes on with the old one.
bool module_is_replaced();

}  // namespace gputext
