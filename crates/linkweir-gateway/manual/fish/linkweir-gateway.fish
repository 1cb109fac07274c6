# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_linkweir_gateway_global_optspecs
    string join \n h/help V/version
end

function __fish_linkweir_gateway_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_linkweir_gateway_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_linkweir_gateway_using_subcommand
    set -l cmd (__fish_linkweir_gateway_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -s V -l version -d 'Print version'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "keygen" -d 'Make a secret key in a new file and print the public key'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "check" -d 'Read a configuration and report what is wrong with it'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "import" -d 'Make a configuration and its key files of a file of wg-quick, with voice first'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "up" -d 'Carry packets until stopped; SIGHUP reads the configuration again'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "show" -d 'Show the queues, drops, waiting times and capacities of a running gateway'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "page" -d 'Serve a web page with the figures of a running gateway to browsers on this host'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "metrics" -d 'Print the figures of a running gateway for Prometheus, or serve them'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "emulate" -d 'Emulate a link between two devices until stopped; exit with 1 if its rate, delay or loss was not as set'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "rate" -d 'Follow a link whose capacity is unknown with the rate of an HTB class, until stopped; no tunnel, no gateway at the far end'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_needs_command" -f -a "set" -d 'Change a running gateway'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand keygen" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand check" -l cleartext -d 'Allow mode = "cleartext", as for up'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand check" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand import" -l rate -d 'Capacity of the link, a little less than it carries, such as 18Mbit' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand import" -l folder -d 'Folder for the configuration and the keys' -r -F
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand import" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand up" -l cleartext -d 'Allow mode = "cleartext": anyone on the path can read and forge packets'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand up" -s n -l dry-run -d 'Only report what would be set up; needs no privileges except to read the configuration and the keys'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand up" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand show" -l control -d 'Control socket; by default the only one in /run/linkweir' -r -F
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand show" -l json -d 'Print JSON; with --watch one object a line'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand show" -l watch -d 'Show it every second until stopped, with the rate of each class'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand show" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand page" -l listen -d 'Loopback address to serve it at' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand page" -l control -d 'Control socket; by default the only one in /run/linkweir' -r -F
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand page" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand metrics" -l listen -d 'Serve /metrics at this address, such as 127.0.0.1:9705, until stopped' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand metrics" -l name -d 'Name of this host by which Prometheus asks, where it does not ask by an address; may be given several times' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand metrics" -l control -d 'Control socket; by default the only one in /run/linkweir' -r -F
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand metrics" -l per-peer -d 'Give the figures of each peer also where there are more than 100; otherwise those of all together'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand metrics" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand emulate" -l duration -d 'Stop after this time, such as 100s' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand emulate" -l json -d 'Print JSON'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand emulate" -l normal-priority -d 'Do not ask for real-time priority'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand emulate" -l check -d 'Only read the configuration and report what is wrong with it'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand emulate" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l device -d 'Device that sends to the link' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l class -d 'Class of HTB whose rate is set, as tc writes it' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l reflector -d 'Host behind the link that answers pings, up to 50 a second; may be given several times' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l floor -d 'Least rate that is set' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l ceiling -d 'Greatest rate that is set' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -l delay -d 'Queue in front of the link that is tolerated' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand rate" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and not __fish_seen_subcommand_from capacity" -s h -l help -d 'Print help'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and not __fish_seen_subcommand_from capacity" -f -a "capacity" -d 'Set the capacity of the link to a peer, until it is set again or `stale` has passed'
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and __fish_seen_subcommand_from capacity" -l peer -d 'Name of the peer; by default all peers' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and __fish_seen_subcommand_from capacity" -l path -d 'Name of the path, for peers that have several' -r
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and __fish_seen_subcommand_from capacity" -l control -d 'Control socket; by default the only one in /run/linkweir' -r -F
complete -c linkweir-gateway -n "__fish_linkweir_gateway_using_subcommand set; and __fish_seen_subcommand_from capacity" -s h -l help -d 'Print help'
