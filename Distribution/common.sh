# shellcheck shell=bash disable=SC2034 # The variables are for the scripts that source this file.
# Names and functions shared by the scripts in this folder. Source it with the root of the repository as working folder.

version=$(cat VERSION)
repository=$(cat Distribution/repository)
architecture=$(uname -m)
# What `make dist` delivers, and what it needs to make that.
output=.build/dist
parts=.build/dist-parts
# Compiling again takes minutes, so this folder is only used with the flags in build-program.
scratch=.build/dist-static
folder=apns-mock-$version-linux-$architecture
tarball=$output/$folder.tar.gz

export LC_ALL=C

fail() { # fail MESSAGE: prints an error and exits
  echo "error: $*" >&2
  exit 1
}

require() { # require TOOL:SOURCE: fails unless the program TOOL is in PATH; SOURCE is its Debian package or its site
  command -v "${1%%:*}" >/dev/null 2>&1 ||
    fail "${1%%:*} is missing; install it (Debian package, or site: ${1#*:}) and run this command again"
}

# Sets the timestamp in all files that are made, so that the same commit gives the same files.
use_commit_date() {
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} ||
    fail "cannot read the date of the last commit; set SOURCE_DATE_EPOCH to seconds since 1970, or build in a git clone"
  export SOURCE_DATE_EPOCH
}

# Runs a program and prints how long it took. On a terminal the program's output shows the progress; elsewhere it is
# printed only if the program fails.
step() { # step TEXT PROGRAM ARGUMENT…
  local text=$1 started=$SECONDS status=0 log
  shift
  if [ -t 2 ]; then
    echo "$text …" >&2
    "$@" || status=$?
  else
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then cat "$log" >&2; fi
    rm -f "$log"
  fi
  if [ "$status" -ne 0 ]; then fail "$text: $1 failed with status $status; its output is above"; fi
  echo "$text: $((SECONDS - started)) s" >&2
}
