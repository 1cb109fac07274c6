// SPDX-License-Identifier: GPL-2.0-only
//
// What differs between releases of ns-3: the durations and types of tests are scoped since 3.42.
#ifndef LINKWEIR_TEST_DIFFERENCES_H
#define LINKWEIR_TEST_DIFFERENCES_H

#include "ns3/test.h"

namespace linkweir_test
{

template <typename T, typename = void>
struct Durations
{
    static constexpr auto QUICK = T::QUICK;
};

template <typename T>
struct Durations<T, std::void_t<typename T::Duration>>
{
    static constexpr auto QUICK = T::Duration::QUICK;
};

template <typename T, typename = void>
struct Types
{
    static constexpr auto UNIT = T::UNIT;
};

template <typename T>
struct Types<T, std::void_t<decltype(T::Type::UNIT)>>
{
    static constexpr auto UNIT = T::Type::UNIT;
};

} // namespace linkweir_test

#endif /* LINKWEIR_TEST_DIFFERENCES_H */
