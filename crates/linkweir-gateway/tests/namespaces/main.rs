// SPDX-License-Identifier: BSD-3-Clause
//! Real gateways with real devices and sockets, in network namespaces of their own.
//!
//! ```text
//!   here: lw0 10.77.0.1 ── gateway ── out 192.0.2.1 ═══ out 192.0.2.2 ── gateway ── lw0 10.77.0.2 :there
//! ```
//!
//! Nothing is timed: tests assert counts, orders and upper bounds. All waits end after [`PATIENCE`].
//!
//! Where namespaces cannot be made, the tests that need them are reported as ignored, with what is missing. Cargo's own
//! harness has no tests that decide this at run time; hence the list below.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Arguments, Trial};

mod below;
mod carry;
mod emulated;
mod flood;
mod interop;
mod life;
mod observe;
mod page;
mod place;
mod resume;
mod sealed;
mod shared;

/// Longest time to wait for anything.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Tests that make no namespace.
const ANYWHERE: [&str; 2] = [
    "life::cleartext_must_be_asked_for_twice",
    "observe::up_dry_run_reports_what_it_would_set_up",
];

/// Tests that need another program, and its Debian package.
const PROGRAMS: [(&str, &str, &str); 6] = [
    (
        "interop::an_unmodified_peer_is_reached",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop::an_unmodified_peer_with_the_wrong_key_gets_nothing",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop::iperf3_runs_both_ways",
        "wireguard-go",
        "wireguard-go",
    ),
    ("interop::iperf3_runs_both_ways", "iperf3", "iperf3"),
    ("observe::metrics_pass_promtool", "promtool", "prometheus"),
    (
        "page::it_shows_live_figures_and_asks_no_other_host",
        "chromium",
        "chromium",
    ),
];

/// Every test by its module; one that is left out is an unused function, which the lints refuse.
macro_rules! trials {
    ($($module:ident { $($test:ident,)* })*) => {
        [$($((concat!(stringify!($module), "::", stringify!($test)), $module::$test as fn()),)*)*]
    };
}

/// All tests.
const TESTS: &[(&str, fn())] = &trials! {
    below {
        packets_queue_under_the_policy_when_the_interface_is_full,
        datagrams_dropped_by_the_interface_are_sent_again,
        super_packets_pass_a_slow_interface,
        datagrams_the_interface_always_drops_are_given_up,
        a_dropped_datagram_is_retried_once_a_millisecond,
        programs_are_started_while_the_interface_has_no_room,
        an_idle_interface_is_not_measured_as_slow,
        unsent_datagrams_of_a_removed_peer_are_dropped,
        reports_come_from_behind_a_full_interface,
        icmp_errors_are_read_and_discarded,
    }
    carry {
        both_versions_of_ip_go_both_ways,
        the_tunnel_itself_may_be_ipv6,
        the_urgent_class_goes_first_and_each_class_keeps_its_order,
        backlogged_classes_share_by_their_quanta,
        a_reserved_rate_is_kept,
        no_more_leaves_than_the_capacity,
        fragments_follow_their_first,
        tcp_uses_segments_that_fit,
        super_packets_carry_the_same_bytes,
        datagrams_sent_together_come_one_by_one,
        packets_wait_in_the_device_while_the_gateway_is_stalled,
        code_points_and_congestion_are_seen_outside_and_inside,
        reports_need_both_ends,
        no_marks_are_sent_in_an_outage,
        forged_messages_from_hosts_are_dropped,
    }
    emulated {
        packets_cross_in_order_and_no_sooner_than_the_delay,
        drops_and_losses_are_counted,
        a_tunnel_runs_over_an_emulated_link,
        feedback_follows_an_emulated_link,
    }
    flood {
        forged_handshakes_cost_little_and_keep_nobody_out,
    }
    interop {
        an_unmodified_peer_is_reached,
        an_unmodified_peer_with_the_wrong_key_gets_nothing,
        iperf3_runs_both_ways,
    }
    life {
        cleartext_must_be_asked_for_twice,
        a_stop_removes_the_device_its_routes_and_the_control_socket,
        waiting_packets_may_leave_before_the_stop,
        a_second_stop_is_immediate,
        it_sleeps_while_there_is_nothing_to_do,
        privileges_are_given_up,
        rubbish_is_counted_and_harms_nobody,
        outages_of_anything_end,
        its_unit_gives_it_the_capabilities_it_needs,
        a_service_manager_is_notified,
        the_end_of_the_device_is_an_error_that_says_so,
        a_reload_loses_no_packet_and_changes_rate_and_rules,
        a_reload_the_policy_refuses_changes_nothing,
        peers_come_and_go_with_a_reload,
        a_reload_takes_over_what_peers_may_send_from,
        programs_follow_their_peers,
        memory_is_bounded_whatever_arrives,
        a_program_reports_the_capacity,
    }
    observe {
        the_control_socket_answers_right_and_wrong_questions,
        metrics_are_served_by_a_process_of_their_own,
        up_dry_run_reports_what_it_would_set_up,
        show_watch_repeats_the_figures,
        metrics_pass_promtool,
    }
    page {
        it_is_for_this_host_alone,
        it_shows_live_figures_and_asks_no_other_host,
    }
    resume {
        whichever_end_starts_first,
        after_either_end_was_killed,
        after_a_kill_of_an_end_without_configured_endpoint,
        after_a_device_below_or_above_was_down,
        after_an_outage_of_the_link,
        among_rubbish,
        a_reload_under_load_loses_nothing,
        a_reload_keeps_the_credit,
        a_reload_under_load_keeps_the_credit,
    }
    sealed {
        packets_come_through_both_ways_whoever_speaks_first,
        packets_wait_in_their_class_for_a_session,
        a_killed_end_comes_back,
        a_peer_that_moves_is_found_again,
        the_wrong_key_gets_nothing,
        rubbish_costs_little_and_harms_nobody,
        a_cookie_moves_no_peer,
        where_a_peer_was_by_another_version_of_ip_is_forgotten,
        a_reload_takes_over_keys_of_peers,
    }
    shared {
        peers_of_a_hub_share_one_link_by_their_air_time,
        a_faster_channel_is_free_at_once,
    }
};

fn main() {
    let arguments = Arguments::from_args();
    let skipped = skipped();
    for why in skipped.values().collect::<BTreeSet<_>>() {
        eprintln!("skipped: {why}");
    }
    let trials = TESTS
        .iter()
        .map(|(name, test)| {
            Trial::test(*name, || {
                test();
                Ok(())
            })
            .with_ignored_flag(skipped.contains_key(name))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The tests that cannot run here, and why.
fn skipped() -> BTreeMap<&'static str, String> {
    let missing = place::missing();
    let no_shaper = missing.is_empty() && !below::has_shaper();
    let why = |name: &str| -> Option<String> {
        if !missing.is_empty() && !ANYWHERE.contains(&name) {
            return Some(format!(
                "gateways in network namespaces; missing: {}",
                missing.join(", ")
            ));
        }
        if no_shaper && name.starts_with("below::") {
            return Some(format!("{name}; missing: the queueing discipline tbf"));
        }
        let lacking = PROGRAMS
            .iter()
            .find(|(test, program, _)| *test == name && !place::installed(program));
        lacking.map(|(test, program, package)| {
            format!("{test}; missing: {program} of the package {package}")
        })
    };
    TESTS
        .iter()
        .filter_map(|(name, _)| Some((*name, why(name)?)))
        .collect()
}
