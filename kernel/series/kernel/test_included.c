
#if IS_ENABLED(CONFIG_NET_SCH_PSS_KUNIT_TEST)
#include "sch_pss_test.c"
#endif
