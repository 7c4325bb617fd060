#!/usr/bin/env bash
# system_packages.sh PYTHON: see that what tests need of the system is here: what gssapi is built against, the programs of
# two Kerberos realms, a browser, promtool, shells to complete in, Compose and Postgres.
# Searched by command, because it may come from anywhere. As root on Debian what is absent is installed. What is still
# absent is named, and is not a failure: the tests that need it fail, each with a sentence.
set -euo pipefail
python=$1
export PATH=$PATH:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive

has_python_headers() {
    "$python" -c 'import pathlib, sysconfig, sys
sys.exit(not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists())'
}

absent=()
while read -r command package; do
    command -v "$command" >/dev/null || absent+=("$package")
done <<'END'
cc            gcc
krb5-config   libkrb5-dev
krb5kdc       krb5-kdc
kdb5_util     krb5-kdc
kadmin.local  krb5-admin-server
kinit         krb5-user
chromium      chromium
promtool      prometheus
zsh           zsh
fish          fish
END
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || absent+=(docker-compose)
# Debian keeps the server's programs out of PATH.
[ -n "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || absent+=(postgresql)
[ -e /usr/include/stdio.h ] || absent+=(libc6-dev)
has_python_headers || absent+=(python3-dev)
[ ${#absent[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    printf '\033[1m==> Installing Debian packages: %s\033[0m\n' "${absent[*]}"
    if apt-get update -qq && apt-get install --yes --no-install-recommends -qq "${absent[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "Packages are missing for tests: ${absent[*]} (as Debian names them). The tests that need them will fail." \
    "Install them, on Debian with make prerequisites." >&2
