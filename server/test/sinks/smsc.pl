#!/usr/bin/perl
# A message centre made of Net::SMPP, which knows nothing of our code or of the package that we use: what it reads is what a
# stranger reads. Prints one line of JSON for each thing that it sees; serves one connection after the other until it is killed.
#
#   perl smsc.pl SYSTEM_ID PASSWORD
#
# Some numbers are refused with a status (see REFUSED); one gets no answer, and the connection
# is closed. All others are taken; where a report is asked for, it comes, and then a text with the word STOP.
use strict;
use warnings;
use JSON::PP;
use Net::SMPP;

$| = 1;
my ($system_id, $password) = @ARGV;
my $json = JSON::PP->new->canonical->ascii;
sub report { print $json->encode({@_}), "\n" }

my %REFUSED = ('5550058' => 0x58, '5550011' => 0x0b);
my $HANG_UP = '5550099';

my $server = Net::SMPP->new_listen('127.0.0.1', port => 0, smpp_version => 0x34) or die "listen: $!";
report(event => 'listening', port => $server->sockport);

my $count = 0;
while (my $client = $server->accept) {
    while (my $pdu = $client->read_pdu) {
        last unless handle($client, $pdu);
    }
    $client->close;
    report(event => 'closed');
}

sub handle {
    my ($client, $pdu) = @_;
    my $command = $pdu->{cmd};
    if ($command == Net::SMPP::CMD_bind_transceiver) {
        my $is_right = $pdu->{system_id} eq $system_id && $pdu->{password} eq $password;
        report(event => 'bind', version => $pdu->{interface_version}, right => $is_right ? 1 : 0);
        $client->bind_transceiver_resp(system_id => 'perl', seq => $pdu->{seq}, status => $is_right ? 0 : 0x0e);
    }
    elsif ($command == Net::SMPP::CMD_submit_sm) { return submit($client, $pdu) }
    elsif ($command == Net::SMPP::CMD_enquire_link) { $client->enquire_link_resp(seq => $pdu->{seq}) }
    elsif ($command == Net::SMPP::CMD_deliver_sm_resp) { report(event => 'deliver_resp', status => $pdu->{status}) }
    elsif ($command == Net::SMPP::CMD_unbind) {
        $client->unbind_resp(seq => $pdu->{seq});
        return 0;
    }
    return 1;
}

sub submit {
    my ($client, $pdu) = @_;
    my $to = $pdu->{destination_addr};
    report(event => 'submit', hex => unpack('H*', $pdu->{short_message}),
        map { $_ => $pdu->{$_} } qw(source_addr source_addr_ton source_addr_npi destination_addr dest_addr_ton
            dest_addr_npi data_coding esm_class registered_delivery));
    my $end = substr($to, -7);
    return 0 if $end eq $HANG_UP;
    if (my $status = $REFUSED{$end}) {
        $client->submit_sm_resp(message_id => '', seq => $pdu->{seq}, status => $status);
        return 1;
    }
    my $id = sprintf '%08x', ++$count;
    $client->submit_sm_resp(message_id => $id, seq => $pdu->{seq}, status => 0);
    return 1 unless $pdu->{registered_delivery} & 1;
    my @back = (async => 1, source_addr => $to, destination_addr => $pdu->{source_addr});
    $client->deliver_sm(@back, esm_class => 4, short_message =>
        "id:$id sub:001 dlvrd:001 submit date:2601010000 done date:2601010001 stat:DELIVRD err:000 text:");
    $client->deliver_sm(@back, esm_class => 0, short_message => 'Stop');
    return 1;
}
