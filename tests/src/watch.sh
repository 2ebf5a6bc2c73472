# Runs a command until standard input ends; then kills it and removes the directory $1.
# A line on standard input says that the command has ended and that the directory stays.
directory=$1
shift
"$@" &
exec >/dev/null 2>&1
if read -r _; then
    wait $!
else
    kill -9 $!
    wait $!
    rm -rf "$directory"
fi
