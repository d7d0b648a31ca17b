#!/usr/bin/env bash
# Makes a Debian package of a program that is built: packaging/deb/build.sh PROGRAM FOLDER. Prints the package's path. Needs dpkg-deb,
# and no root. The same program and files give the same bytes: all files have the time SOURCE_DATE_EPOCH, that of the newest commit where
# nothing is said. COMPRESSION=none is quicker than xz.
set -euo pipefail
program="${1:?the program}"
to="${2:?the folder for the package}"
source="$(cd "$(dirname "$0")/../.." && pwd)"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || echo 0)}"

version="$("$program" --version | cut -d' ' -f2)"
architecture="$(dpkg --print-architecture)"
maintainer="The authors of Entente <entente@example.org>"
tree="$(mktemp -d)"
chmod 755 "$tree"
trap 'rm -rf "$tree"' EXIT
umask 022

put() { install -D -m "$1" "$source/$2" "$tree/$3"; }
install -D -m 755 "$program" "$tree/usr/bin/entente"
put 644 packaging/systemd/entente.service usr/lib/systemd/system/entente.service
put 644 packaging/systemd/sysusers.conf usr/lib/sysusers.d/entente.conf
put 644 packaging/systemd/tmpfiles.conf usr/lib/tmpfiles.d/entente.conf
put 644 packaging/systemd/environment etc/entente/environment
put 644 packaging/systemd/journald@entente.conf etc/systemd/journald@entente.conf
put 644 packaging/prometheus/alerts.yaml usr/share/entente/prometheus/alerts.yaml
put 644 packaging/grafana/entente.json usr/share/entente/grafana/entente.json
put 644 packaging/deb/copyright usr/share/doc/entente/copyright
mkdir -p "$tree/usr/share/man/man1"
gzip -9 -n <"$source/packaging/deb/entente.1" >"$tree/usr/share/man/man1/entente.1.gz"
for page in "$source"/docs/*.md; do
  gzip -9 -n <"$page" >"$tree/usr/share/doc/entente/$(basename "$page").gz"
done
gzip -9 -n >"$tree/usr/share/doc/entente/changelog.gz" <<END
entente ($version) stable; urgency=medium

  * What it does, and what it does not: /usr/share/doc/entente.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
chmod 644 "$tree"/usr/share/doc/entente/*

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: entente
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -ks --apparent-size "$tree" | cut -f1)
Section: database
Priority: optional
Depends: systemd (>= 247)
Recommends: ca-certificates
Suggests: postgresql-client, prometheus
Description: SQL database that organisations run together without trusting one another
 Each organisation runs a node, and every node has the same tables. The nodes
 agree on the order of all transactions and on the result of each one. Clients
 connect with psql or any driver for PostgreSQL.
 .
 This package has the program, a systemd service for one node, alert rules for
 Prometheus and a dashboard for Grafana.
END
printf '%s\n' /etc/entente/environment /etc/systemd/journald@entente.conf >"$tree/DEBIAN/conffiles"
install -m 755 "$source"/packaging/deb/{postinst,prerm,postrm} "$tree/DEBIAN/"
(cd "$tree" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
chmod 644 "$tree"/DEBIAN/{control,conffiles,md5sums}
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$to"
package="$to/entente_${version}_${architecture}.deb"
dpkg-deb --root-owner-group -Z"${COMPRESSION:-xz}" --build "$tree" "$package" >/dev/null
echo "$package"
