// SPDX-License-Identifier: GPL-2.0-only
// Runs the suite without ns-3's source tree: linkweir-test --test-name=linkweir --verbose
#include "ns3/test.h"

int
main(int argc, char* argv[])
{
    return ns3::TestRunner::Run(argc, argv);
}
