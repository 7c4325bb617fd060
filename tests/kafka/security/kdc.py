"""Kerberos realms on this machine, by MIT's KDC as Debian packages it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry.ports import LOOPBACK, free_ports
from tests.commands import gssapi, installed
from tests.harness import wait_until

COMMANDS = {"krb5kdc": "krb5-kdc", "kdb5_util": "krb5-kdc", "kadmin.local": "krb5-admin-server", "kinit": "krb5-user"}
SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
START_SECONDS = 20.0


def listens(port: int) -> bool:
    """Whether somebody accepts connections on a local port."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def command(name: str) -> str:
    """The path of a Kerberos command. Its absence fails the test, and says how to get it."""
    return installed(name, COMMANDS[name], path=SEARCHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Realm:
    """One realm with its KDC."""

    name: str
    folder: Path
    port: int

    @property
    def krb5_conf(self) -> Path:
        """The configuration of those to whom this realm is the default one."""
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which Kerberos' commands act on this realm."""
        return {
            **os.environ,
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
        }

    def create(self) -> None:
        """Make the realm's database."""
        (self.folder / "kdc.conf").write_text(
            f"""[kdcdefaults]
 kdc_listen = {LOOPBACK}:{self.port}
 kdc_tcp_listen = {LOOPBACK}:{self.port}
[realms]
{self.name} = {{
 database_name = {self.folder}/principal
 key_stash_file = {self.folder}/stash
 max_life = 1h
}}
"""
        )
        self._run("kdb5_util", "create", "-s", "-r", self.name, "-P", "a password of the test's own")

    def start(self) -> subprocess.Popen[bytes]:
        """Start the KDC; it ends with this process."""
        setpriv = installed("setpriv", "util-linux")
        process = subprocess.Popen(
            [setpriv, "--pdeathsig", "KILL", command("krb5kdc"), "-n", "-r", self.name],
            env=self.environment,
            stdout=(self.folder / "kdc.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        wait_until(lambda: listens(self.port) or process.poll() is not None, "a KDC that listens", START_SECONDS)
        assert process.poll() is None, (self.folder / "kdc.log").read_text()
        return process

    def keytab(self, path: Path, principal: str) -> Path:
        """A new principal of this realm, with its key in a keytab."""
        self._run("kadmin.local", "-r", self.name, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", self.name, "ktadd", "-k", str(path), principal)
        return path

    def ticket_cache(self, path: Path, keytab: Path, principal: str) -> Path:
        """A ticket cache, filled by kinit."""
        self._run("kinit", "-c", str(path), "-k", "-t", str(keytab), f"{principal}@{self.name}")
        return path

    def _run(self, name: str, *arguments: str) -> None:
        run = subprocess.run(
            [command(name), *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{name} {arguments}: {run.stdout}{run.stderr}"


def realms(folder: Path, *names: str) -> tuple[Realm, ...]:
    """Realms below `folder`, none started yet, and for each a krb5.conf that knows all and has it as its default.

    One for each, because Java's brokers take their own realm to be the default one.
    """
    gssapi()
    ports = free_ports(len(names))
    made = tuple(Realm(name=name, folder=folder / name, port=port) for name, port in zip(names, ports, strict=True))
    listed = "\n".join(f"{realm.name} = {{\n kdc = {LOOPBACK}:{realm.port}\n}}" for realm in made)
    for realm in made:
        realm.folder.mkdir(parents=True)
        realm.krb5_conf.write_text(
            f"""[libdefaults]
 default_realm = {realm.name}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
{listed}
"""
        )
    return made
