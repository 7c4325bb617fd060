#!/usr/bin/env bash
# secrets.sh [FOLDER]: make what compose.yaml mounts as secrets, in FOLDER (secrets, next to this script, unless given). What is there
# stays, so it may be run again; to change a secret delete its file (docs/containers.md says what else that takes).
# The folder is this user's alone (0700). The files in it are readable (0444), for Compose mounts them as they are, and
# each container has a user of its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/secrets}
umask 077
mkdir -p "$folder"
chmod 700 "$folder"

random() { # BYTES: in Base64 without padding or what an address or a quoted string cannot hold
    head -c "$1" /dev/urandom | base64 -w 0 | tr '+/' '-_' | tr -d '='
}
make() { # NAME, its text on standard input
    if [ -e "$folder/$1" ]; then
        cat >/dev/null
    else
        cat >"$folder/.$1" && chmod 444 "$folder/.$1" && mv "$folder/.$1" "$folder/$1"
    fi
}

for name in postgres_password kafka_primary_password kafka_backup_password airflow_jwt_secret airflow_api_secret_key; do
    printf '%s' "$(random 33)" | make $name
done
# 32 bytes and with padding, as Fernet wants its key.
head -c 32 /dev/urandom | base64 -w 0 | tr '+/' '-_' | make airflow_fernet_key
printf '{"admin": "%s"}\n' "$(random 15)" | make airflow_passwords
printf 'postgresql+psycopg2://airflow:%s@postgres:5432/airflow' "$(cat "$folder/postgres_password")" | make airflow_database
{ cat "$here/spark/spark-defaults.conf" && printf '\nspark.authenticate.secret %s\n' "$(random 33)"; } | make spark_defaults
echo "secrets: $folder; log in to Airflow with: $(cat "$folder/airflow_passwords")"
