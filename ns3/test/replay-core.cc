// SPDX-License-Identifier: GPL-2.0-only
// The replay of the core's own tests, on the policies that are compiled into the module.
#include "vectors.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#define main linkweir_replay_main
extern "C"
{
#include "replay.c"
}
#undef main

namespace linkweir_test
{

bool
ReplayThroughCore(const std::string& file)
{
    static vector state;
    return replay_file(file.c_str(), &state);
}

bool
ReplayTextThroughCore(const std::string& text)
{
    const auto file = std::filesystem::temp_directory_path() / ("linkweir-" + std::to_string(::getpid()) + ".vec");
    std::ofstream(file) << text;
    const bool good = ReplayThroughCore(file.string());
    std::filesystem::remove(file);
    return good;
}

} // namespace linkweir_test
