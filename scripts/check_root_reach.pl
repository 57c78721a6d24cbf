# The program of scripts/check_root_reach: perl check_root_reach.pl check|list TABLE, in the folder that has src.
use strict;
use warnings;
use File::Find;

my ($mode, $table) = @ARGV;
my (@rooms, @without, %is_call, %is_word, %member_in, %rows);
my $problems = 0;
sub say_problem {
  my ($text) = @_;
  print "$text\n" if $mode eq "check";
  ++$problems;
}

# ---- the table

my %hows = map { ($_ => 1) } qw(none handle compared user kernel);

open my $in, "<", $table or die "$table: $!\n";
while (my $line = <$in>) {
  next if $line =~ /^\s*(#|$)/;
  if ($line =~ /^room\s+(\S+)\s/) { push @rooms, $1 }
  elsif ($line =~ /^without\s+(\S+)\s+--\s+\S/) { push @without, $1 }
  elsif ($line =~ /^call\s+\S+\s+--\s+(.+?)\s*$/) { $is_call{$_} = 1 for split " ", $1 }
  elsif ($line =~ /^word\s+\S+\s+--\s+(.+?)\s*$/) { $is_word{$_} = 1 for split " ", $1 }
  elsif ($line =~ /^member\s+(\S+)\s+--\s+(.+?)\s*$/) { $member_in{$_} = $1 for split " ", $2 }
  elsif ($line =~ /^place\s+(\S+)\s+(\S+)\s+--\s+(.+?)\s*\|\s*(\S+)\s*\|\s*(.+?)\s*\|\s*(.+?)\s*$/) {
    my ($file, $function, $calls, $how, $touches, $tests) = ($1, $2, $3, $4, $5, $6);
    my $place = "$file $function";
    say_problem("$table:$.: $place is there twice") if $rows{$place};
    say_problem("$table:$.: '$how' is none of " . join(" ", sort keys %hows)) unless $hows{$how};
    say_problem("$table:$.: $place touches something of a user's, so a test has to prove how")
      if $how ne "none" && $tests eq "-";
    $rows{$place} = {calls => $calls, how => $how, touches => $touches, tests => $tests, line => $.};
  }
  else { die "$table:$.: not a row: $line" }
}
close $in;

# ---- the sources

# The text without comments, directives and what is inside literals. Each line stays one.
sub plain {
  my ($text) = @_;
  $text =~ s{(//[^\n]*|/\*.*?\*/)|R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<![A-Za-z0-9_])'(?:\\.|[^'\\\n])*'}
            {my $all = $&; my $lines = () = $all =~ /\n/g; (defined $1 ? " " : '""') . "\n" x $lines}gse;
  $text =~ s/^[ \t]*#(?:[^\n]*\\\n)*[^\n]*//gm;
  return $text;
}

# What begins with this text and a brace: (kind, name).
sub block_of {
  my ($head) = @_;
  return ("namespace", "") if $head =~ /\bnamespace\b/ || $head =~ /\bextern\s*""\s*$/;
  $head =~ s/\[\[.*?\]\]//g;
  1 while $head =~ s/<[^<>]*>//;
  $head =~ s/\s*::\s*/::/g;
  $head =~ s/~\s+/~/g;
  return ("class", $1) if $head =~ /^\s*(?:template\s*)?(?:class|struct|union)\s+(?:alignas\([^)]*\)\s*)?(\w+(?:::\w+)*)/;
  return ("other", "") if $head =~ /^\s*enum\b/;
  if ($head =~ /^([^(]*?)([~\w]+(?:::[~\w]+)*|operator\s*\W+)\s*\(/s && $1 !~ /=/) {
    return ("function", $2 =~ s/\s+//gr);
  }
  return ("other", "");
}

my %is_also_ours = map { ($_ => 1) } qw(open remove connect bind kill mount stat link clone system);
my %is_no_type = map { ($_ => 1) } qw(return else do case throw co_return co_await not and or);

# What the last of the tokens calls, and whether a row has to name it. The text stands behind that token.
sub call_at {
  my ($file, $text, $tokens, $is_outside) = @_;
  my ($before_that, $before, $token) = @$tokens;
  if ($token =~ /^SYS_(\w+)$/) {
    my $is_known = $is_call{$1} || $is_call{$token};
    return ($token, $is_known && $before eq "(" && $before_that =~ /^(raw_call6?|syscall)$/);
  }
  return ($token, 1) if $is_word{$token};
  return ($token, 0) unless $$text =~ /\G(?=\s*\()/;
  # Without an argument it is a function of ours that has the name.
  return ($token, 0) if $is_also_ours{$token} && $$text =~ /\G(?=\s*\(\s*\))/;
  if ($before eq "->" || $before eq ".") {
    return ($token, $member_in{$token} && index($file, $member_in{$token}) == 0);
  }
  if ($before eq "::" && $before_that =~ /^\w+$/ && !$is_no_type{$before_that}) {
    $token = "${before_that}::$token" unless $before_that =~ /^(os|node|std)$/;
    return ($token, $is_call{$token});
  }
  # After a type it is declared.
  my $is_declared = $before =~ /^\w+$/ && !$is_no_type{$before} || $is_outside && $before =~ /^[>&*]$/;
  return ($token, $is_call{$token} && !$is_declared);
}

my $begins_members = qr/\)[\w\s]*:(?!:)/;  # of a constructor

# Counts the calls of a text by the function that has them: {function => {call => count}}.
sub places_of {
  my ($file, $text) = @_;
  my (%found, @blocks);
  my $head = "";
  my @before = ("", "", "");  # the last tokens, with the present one
  my $function = "";          # outermost; empty: outside of any
  my @classes;
  while ($text =~ /\G\s*([A-Za-z_]\w*|::|->|""|[^\s])/gc) {
    my $token = $1;
    if ($token eq "{") {
      if ($function ne "") { push @blocks, {kind => "inner"} }
      else {
        my ($kind, $name) = block_of($head);
        my $is_member = $kind eq "function" && $head =~ /$begins_members(?:.*,)?\s*\w+\s*$/s;  # "x_{…}" of a constructor
        push @blocks, {kind => $is_member ? "member" : $kind, head => $head};
        push @classes, $name if $kind eq "class";
        $function = join "::", @classes, $name if $kind eq "function";
        $head = "";
      }
    } elsif ($token eq "}") {
      my $block = pop @blocks // {kind => "none"};
      $head = "" if $function eq "";
      pop @classes if $block->{kind} eq "class";
      $function = "" if $block->{kind} eq "function" || $block->{kind} eq "member";
      $head = "$block->{head} x" if $block->{kind} eq "member";
      $head = "$block->{head} x" if $block->{kind} eq "other" && $function eq "";
    } elsif ($token eq ";" && $function eq "") {
      $head = "";
    } elsif ($function eq "") {
      $head .= ($token =~ /^\w/ ? " " : "") . $token;
      $head = "" if $head =~ /^\s*(public|private|protected)\s*:$/;
    }
    push @before, $token;
    shift @before;
    if ($token =~ /^[A-Za-z_]/) {
      my ($call, $is_one) = call_at($file, \$text, \@before, $function eq "");
      next unless $is_one;
      my $where = $function;
      if ($where eq "" && $head =~ $begins_members) { $where = join "::", @classes, (block_of($head))[1] }
      $found{$where eq "" ? "-" : $where}{$call}++;
    }
  }
  return \%found;
}

my @files;
find({no_chdir => 1, wanted => sub {
  return unless /\.(cpp|h)$/ && !m{(_test\.cpp|_test\.h|_contract\.h|_fixture\.h|test_support\.h)$|/testing/};
  my $file = $_;
  return if grep { $file eq $_ || index($file, "$_/") == 0 } @without;
  push @files, $file;
}}, grep { -e } @rooms);

sub text_of {
  my ($file) = @_;
  open my $in, "<", $file or die "$file: $!\n";
  local $/;
  return <$in> // "";
}

my %places;
for my $file (sort @files) {
  my $found = places_of($file, plain(text_of($file)));
  for my $function (keys %$found) {
    my $calls = $found->{$function};
    $places{"$file $function"} = join " ", map { $calls->{$_} > 1 ? "$_*$calls->{$_}" : $_ } sort keys %$calls;
  }
}

# ---- the comparison

if ($mode eq "list") {
  for my $place (sort keys %places) {
    my $row = $rows{$place} // {how => "?", touches => "?", tests => "?"};
    print "place $place -- $places{$place} | $row->{how} | $row->{touches} | $row->{tests}\n";
  }
  exit 0;
}

my %tests;
find({no_chdir => 1, wanted => sub {
  return unless /_test\.cpp$/;
  my $text = text_of($_);
  $tests{"$1.$2"} = 1 while $text =~ /\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)/g;
}}, grep { -d } "src", "tests");

for my $place (sort keys %places) {
  my $row = $rows{$place};
  if (!$row) {
    say_problem("$place: $places{$place}: root's rights are used here, and $table has no row that says on what of a user's");
  } elsif ($row->{calls} ne $places{$place}) {
    say_problem("$table:$row->{line}: $place: the row has '$row->{calls}', the source '$places{$place}'");
  }
}
for my $place (sort { $rows{$a}{line} <=> $rows{$b}{line} } keys %rows) {
  my $row = $rows{$place};
  say_problem("$table:$row->{line}: $place: no such place") unless $places{$place};
  next if $row->{tests} eq "-";
  $tests{$_} or say_problem("$table:$row->{line}: $place: no such test: $_") for split " ", $row->{tests};
}
my $page = "docs/isolation.md";
if (-e $page) {
  my $text = text_of($page);
  $tests{$1} or say_problem("$page: no such test: $1") while $text =~ /`([A-Z]\w+\.[A-Z]\w+)`/g;
  -e "tests/e2e/$1_test.cpp" or say_problem("$page: no such file of tests: $1") while $text =~ /`((?:attack|isolation)\w*)`/g;
}
if ($problems) {
  print "$problems violations of $table (scripts/check_root_reach --list prints the places)\n";
  exit 1;
}
