// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_TEST_VECTORS_H
#define LINKWEIR_TEST_VECTORS_H

#include <map>
#include <string>

namespace linkweir_test
{

/// How a vector went.
struct Outcome
{
    std::string error;  //!< empty: every answer was as the vector says
    std::string reason; //!< why a disc cannot make its operations; empty: the disc made them
    unsigned long answers{0}; //!< of the disc that were compared
};

/// Replays a vector through a queue disc under simulated time.
Outcome ReplayThroughDisc(const std::string& file);

/// Replays a vector through the policy that is compiled into the module, with core/tests/replay.c; false: an answer differs.
bool ReplayThroughCore(const std::string& file);

/// The same of the text of a vector, such as a disc records it.
bool ReplayTextThroughCore(const std::string& text);

} // namespace linkweir_test

#endif /* LINKWEIR_TEST_VECTORS_H */
