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

use interop_paths::long as interop_paths_long;
use libtest_mimic::{Arguments, Trial};
use names::long as names_long;
use slots::long as slots_long;

mod addresses;
mod below;
mod bond;
mod carry;
mod clear;
mod container;
mod emulated;
mod everything;
mod failover;
mod flood;
mod flows;
mod interop;
mod interop_paths;
mod keeper;
mod large;
mod life;
mod log;
mod long;
mod looped;
mod monitoring;
mod names;
mod nat;
mod observe;
mod ordinary;
mod outage;
mod page;
mod place;
mod rate;
mod recorded;
mod resume;
mod sealed;
mod shared;
mod slots;
mod soak;
mod taken;
mod uplink;

/// Longest time to wait for anything.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Tests that make no namespace.
const ANYWHERE: [&str; 3] = [
    "life::cleartext_must_be_asked_for_twice",
    "monitoring::alerts_tell_hosts_apart",
    "observe::up_dry_run_reports_what_it_would_set_up",
];

/// Tests that need another program, and its Debian package.
const PROGRAMS: [(&str, &str, &str); 31] = [
    (
        "clear::a_firewall_refuses_what_rules_no_longer_do",
        "iptables",
        "iptables",
    ),
    (
        "addresses::a_hub_with_all_addresses_behind_a_peer_answers_from_the_address_that_was_asked",
        "iptables",
        "iptables",
    ),
    (
        "clear::restarts_of_systemd_networkd_take_nothing_along",
        "networkctl",
        "systemd",
    ),
    (
        "addresses::events_of_other_programs_do_not_change_the_address_that_a_hub_answers_from",
        "iptables",
        "iptables",
    ),
    (
        "addresses::an_address_that_comes_again_is_sent_from_again",
        "iptables",
        "iptables",
    ),
    (
        "ordinary::a_hub_with_several_addresses_answers_from_the_one_that_was_asked",
        "iptables",
        "iptables",
    ),
    (
        "everything::packets_are_made_to_fit_a_path_that_does_not_say_what_it_carries",
        "iptables",
        "iptables",
    ),
    (
        "interop::an_unmodified_peer_is_reached",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop::an_unmodified_peer_is_served_over_one_of_several_paths",
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
    (
        "nat::mappings_of_both_paths_change_and_nothing_is_lost",
        "iptables",
        "iptables",
    ),
    (
        "interop_paths::probes_do_not_lead_an_unmodified_peer_to_a_path_that_is_not_in_use",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_follows_when_a_carrier_goes_and_comes",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_with_one_address_follows_when_a_carrier_goes_and_comes",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_follows_when_a_path_is_silent_and_comes_back_when_it_says_so",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_follows_when_a_path_is_silent_and_comes_back_when_it_says_so",
        "iptables",
        "iptables",
    ),
    (
        "interop_paths::an_unmodified_peer_follows_when_the_system_refuses_a_path",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_that_moves_is_found_again",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_is_found_where_the_first_path_is_silent_from_the_start",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::an_unmodified_peer_is_found_where_the_first_path_is_silent_from_the_start",
        "iptables",
        "iptables",
    ),
    (
        "interop_paths::a_refused_handshake_leads_to_the_next_path",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths::a_refused_handshake_leads_to_the_next_path",
        "iptables",
        "iptables",
    ),
    (
        "interop_paths_long::an_unmodified_peer_comes_back_to_the_first_path_when_keys_change",
        "wireguard-go",
        "wireguard-go",
    ),
    (
        "interop_paths_long::an_unmodified_peer_comes_back_to_the_first_path_when_keys_change",
        "iptables",
        "iptables",
    ),
    (
        "monitoring::alerts_tell_hosts_apart",
        "promtool",
        "prometheus",
    ),
    (
        "monitoring::each_query_of_the_board_has_an_answer_and_each_alert_is_evaluated",
        "prometheus",
        "prometheus",
    ),
    ("observe::metrics_pass_promtool", "promtool", "prometheus"),
    ("page::it_fits_a_phone", "chromium", "chromium"),
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
    addresses {
        events_of_other_programs_do_not_change_the_address_that_a_hub_answers_from,
        an_address_that_comes_again_is_sent_from_again,
        a_hub_with_all_addresses_behind_a_peer_answers_from_the_address_that_was_asked,
    }
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
    bond {
        packets_that_waited_and_a_whole_read_are_handed_out_together,
        copies_over_both_paths_lose_nothing_when_either_is_cut,
        probes_are_part_of_what_a_path_carries,
        a_lost_carrier_is_noticed_at_once,
        one_flow_is_striped_and_comes_in_order,
        the_expensive_path_is_used_when_the_cheap_one_is_full,
        a_promise_that_cannot_be_kept_is_said,
        paths_change_by_reload_under_load,
        all_paths_go_and_come_by_reload_under_load,
        the_far_end_goes_on_when_all_paths_go,
        full_packets_that_wait_pass_while_the_mtu_changes,
        the_receiving_end_is_reloaded_under_load,
        a_peer_that_was_started_again_agrees_again,
        a_recording_has_what_each_path_sent,
        the_capacity_of_a_path_is_set,
        a_program_reports_the_capacity_of_a_path,
        ends_with_other_numbers_of_classes_use_one_path_at_a_time,
        a_peer_without_paths_is_served_over_one_with_failover,
    }
    carry {
        both_versions_of_ip_go_both_ways,
        the_tunnel_itself_may_be_ipv6,
        the_urgent_class_goes_first_and_each_class_keeps_its_order,
        backlogged_classes_share_by_their_quanta,
        a_reserved_rate_is_kept,
        a_reload_gives_a_class_its_new_rate_at_once,
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
    clear {
        nothing_leaves_in_the_clear_while_a_part_is_missing,
        rules_that_all_go_at_once_come_again,
        a_firewall_refuses_what_rules_no_longer_do,
        restarts_of_systemd_networkd_take_nothing_along,
        gateways_leave_each_others_rules_alone,
        a_foreign_route_is_named_and_ours_is_added_when_it_goes,
        what_another_program_changes_of_the_device_is_restored,
        prefixes_are_refused_while_their_route_is_missing,
        a_reload_may_allow_leaks_and_refuse_them,
        a_foreign_route_in_the_tunnels_table_is_noticed,
        two_programs_do_not_fight_at_full_speed,
        the_watch_sleeps_while_nothing_changes,
        the_end_of_the_keeper_is_said,
    }
    container {
        without_ipv6_it_carries_ipv4_and_later_both,
        a_missing_capability_is_named,
        without_a_list_of_users_it_becomes_nobody_all_the_same,
    }
    emulated {
        packets_cross_in_order_and_no_sooner_than_the_delay,
        drops_and_losses_are_counted,
        a_tunnel_runs_over_an_emulated_link,
        feedback_follows_an_emulated_link,
    }
    everything {
        all_addresses_are_reached_through_the_tunnel_but_not_its_own_datagrams,
        a_reload_makes_and_removes_the_rules_of_a_mark_that_stays,
        packets_are_made_to_fit_a_path_that_does_not_say_what_it_carries,
        a_gateway_keeps_to_its_device_also_when_that_comes_again,
    }
    failover {
        another_way_is_used_within_a_second_and_the_first_again_later,
        a_way_whose_device_goes_and_comes_is_found_again,
    }
    flood {
        forged_handshakes_cost_little_and_keep_nobody_out,
    }
    flows {
        a_flow_that_fills_its_class_neither_keeps_others_out_nor_goes_before_them,
        flows_of_a_class_do_not_change_while_the_gateway_runs,
        l4s_packets_that_waited_for_longer_than_the_step_are_marked,
    }
    interop {
        an_unmodified_peer_is_reached,
        an_unmodified_peer_is_served_over_one_of_several_paths,
        an_unmodified_peer_with_the_wrong_key_gets_nothing,
        iperf3_runs_both_ways,
    }
    interop_paths {
        probes_do_not_lead_an_unmodified_peer_to_a_path_that_is_not_in_use,
        an_unmodified_peer_follows_when_a_carrier_goes_and_comes,
        an_unmodified_peer_with_one_address_follows_when_a_carrier_goes_and_comes,
        an_unmodified_peer_follows_when_the_system_refuses_a_path,
        an_unmodified_peer_follows_when_a_path_is_silent_and_comes_back_when_it_says_so,
        an_unmodified_peer_that_moves_is_found_again,
        an_unmodified_peer_is_found_where_the_first_path_is_silent_from_the_start,
        a_refused_handshake_leads_to_the_next_path,
    }
    interop_paths_long {
        an_unmodified_peer_comes_back_to_the_first_path_when_keys_change,
    }
    keeper {
        a_rule_comes_again_while_routes_are_compared,
        a_reload_waits_for_its_disk_and_rules_do_not,
        the_keeper_ends_with_its_gateway_while_its_disk_hangs,
        a_reload_that_the_system_refuses_leaves_the_rules,
        rules_of_ipv6_come_with_ipv6,
        a_reload_removes_rules_when_the_routes_instead_of_them_are_there,
        what_a_reload_could_not_remove_goes_later,
        a_keeper_that_fails_ends_and_leaves_the_rules,
        a_keeper_that_panics_ends_while_its_log_is_not_read,
        gateways_leave_each_others_refusals_alone,
    }
    life {
        cleartext_must_be_asked_for_twice,
        a_stop_removes_the_device_its_routes_and_the_control_socket,
        waiting_packets_may_leave_before_the_stop,
        a_second_stop_is_immediate,
        it_sleeps_while_there_is_nothing_to_do,
        privileges_are_given_up,
        a_reload_changes_routes,
        rubbish_is_counted_and_harms_nobody,
        outages_of_anything_end,
        its_unit_gives_it_the_capabilities_it_needs,
        a_service_manager_is_notified,
        the_end_of_the_device_is_an_error_that_says_so,
        a_reload_loses_no_packet_and_changes_rate_and_rules,
        a_reload_the_policy_refuses_changes_nothing,
        peers_come_and_go_with_a_reload,
        a_renamed_peer_keeps_its_queue_in_cleartext,
        a_reload_takes_over_what_peers_may_send_from,
        programs_follow_their_peers,
        memory_is_bounded_whatever_arrives,
        a_program_reports_the_capacity,
        a_program_is_started_where_it_was_found,
        programs_end_with_all_they_started,
        the_groups_of_its_user_are_kept,
    }
    log {
        a_log_that_is_not_read_stops_nothing,
        a_journal_that_is_stuck_stops_nothing,
        a_terminal_in_the_background_stops_nothing,
        a_service_manager_that_is_stuck_stops_nothing,
        a_program_that_floods_delays_no_packet,
        what_a_program_prints_does_not_fill_the_log,
    }
    looped {
        datagrams_do_not_go_round_when_the_uplink_is_lost,
        a_name_that_leads_into_the_tunnel_is_said,
        a_peer_that_sends_through_the_tunnel_does_not_move_into_it,
        a_way_that_leads_into_the_tunnel_is_not_used,
    }
    observe {
        the_control_socket_answers_right_and_wrong_questions,
        idle_clients_lock_nobody_out,
        capacities_out_of_range_are_refused,
        it_rests_without_descriptors,
        a_group_may_use_the_control_socket,
        metrics_are_served_by_a_process_of_their_own,
        its_units_serve_figures_without_capabilities,
        up_dry_run_reports_what_it_would_set_up,
        show_watch_repeats_the_figures,
        metrics_pass_promtool,
    }
    long {
        all_rules_that_go_at_once_are_back_soon,
        all_rules_that_go_at_once_are_back_soon_beside_many_routes,
        ten_minutes_of_events_take_nothing_from_voice_and_leak_nothing,
    }
    monitoring {
        alerts_tell_hosts_apart,
        each_query_of_the_board_has_an_answer_and_each_alert_is_evaluated,
    }
    nat {
        mappings_of_both_paths_change_and_nothing_is_lost,
    }
    names {
        silent_name_servers_of_other_peers_delay_no_name,
        the_next_address_of_a_name_is_tried_when_one_does_not_answer,
        who_asks_for_names_has_no_capabilities,
    }
    names_long {
        a_hub_that_moves_while_there_is_a_session_is_found_within_30_s,
    }
    ordinary {
        a_hub_with_several_addresses_answers_from_the_one_that_was_asked,
        a_clock_that_was_behind_at_the_start_locks_nobody_out,
        absent_peers_cost_little,
        an_error_of_the_device_is_counted_and_not_the_end,
        what_happens_to_peers_is_logged_but_not_without_end,
        a_hub_is_found_by_name_also_when_its_address_changes,
        a_device_that_was_down_has_its_addresses_and_routes_again,
    }
    outage {
        voice_after_an_outage_is_fresh_and_no_bulk_overtakes_it,
        a_class_that_a_fade_starves_is_told_and_a_least_share_ends_that,
    }
    page {
        it_is_for_this_host_alone,
        it_shows_live_figures_and_asks_no_other_host,
        it_fits_a_phone,
    }
    rate {
        a_class_follows_a_link_and_has_its_rate_again_after_the_end,
        a_device_that_comes_again_and_reflectors_that_are_silent_are_waited_for,
        reflectors_of_ipv6_answer_too,
        output_that_is_not_read_stops_nothing,
        what_is_missing_is_said_with_its_cure,
        a_class_that_may_not_be_changed_is_named_with_the_cure,
    }
    recorded {
        a_recording_holds_what_the_figures_show,
        a_recording_goes_on_in_another_file_after_a_reload_and_a_restart,
        a_disk_that_is_full_or_missing_costs_no_packet,
        a_file_that_is_removed_is_followed_by_one_that_can_be_read_alone,
        a_limit_of_file_sizes_ends_nothing,
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
        the_indices_of_sessions_are_random,
        a_reload_keeps_a_peer_whose_key_stays,
    }
    shared {
        peers_of_a_hub_share_one_link_by_their_air_time,
        a_faster_channel_is_free_at_once,
    }
    slots {
        boundaries_of_slots_are_learned_and_anticipated,
    }
    slots_long {
        boundaries_every_15_s_are_learned_and_anticipated,
    }
    taken {
        a_device_of_the_same_name_is_left_alone,
        the_control_socket_goes_with_the_gateway,
        a_device_that_is_up_again_was_down_before,
        a_file_in_place_of_the_control_socket_is_left_alone,
        an_address_that_is_gone_is_named_and_used_again,
        a_link_local_endpoint_names_its_device,
        a_thousand_dead_endpoints_wake_it_a_few_times_a_second,
    }
    large {
        packets_pass_while_a_reload_changes_many_routes,
    }
    soak {
        a_minute_of_events_takes_nothing_from_voice_and_leaks_nothing,
    }
};

fn main() {
    let arguments = Arguments::from_args();
    let skipped = skipped();
    for why in skipped.values().collect::<BTreeSet<_>>() {
        eprintln!("gateway: NOT TESTED: {why}");
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
    let no_htb = missing.is_empty() && !rate::has_htb();
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
        if (no_shaper || no_htb) && name.starts_with("rate::") {
            return Some(format!(
                "{name}; missing: the queueing discipline htb or tbf"
            ));
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
