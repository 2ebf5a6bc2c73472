# Runs a command until standard input ends. Then kills it, and removes the directory $1.
# If a line comes on standard input, waits for the command to end instead, and keeps the directory.
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
